"""Megatron-LM's console: every spelling of its row, the losses that are missing, counts of a window, its own checks."""

import math

import pytest
from log_readers import long_lines_are_quick, mangled_are_read, prefixes_are_read, records, said, same, told

from gyrostat_agent.sources.logs.formats.megatron import MEGATRON
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, TRAIN, Fault, Note, Told

NAN = math.nan
FULL = (
    " [2026-01-02 03:04:05.678901] iteration      250/    9000 | consumed samples:        16000 | elapsed time per "
    "iteration (ms): 701.2 | throughput per GPU (TFLOP/s/GPU): 44.4 | learning rate: 5.500000E-05 | global batch size: "
    "   64 | lm loss: 3.141593E+00 | load_balancing_loss: 1.020000E+00 | z_loss: 1.300000E-02 | loss scale: 1.0 | grad "
    "norm: 0.777 | params norm: 1234.500 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
SICK = (
    " [2026-01-02 03:04:06] iteration      251/    9000 | consumed samples:        16064 | elapsed time per iteration "
    "(ms): 700.0 | learning rate: 5.510000E-05 | global batch size:    64 | loss scale: 1.0 | grad norm: nan | number "
    "of skipped iterations:   0 | number of nan iterations:   0 |"
)
VALIDATION = " validation loss at iteration 1000 | lm loss value: 3.000000E+00 | lm loss PPL: 2.008554E+01 | "
GUARD = (
    "RuntimeError: Rank 5, node n1, device 5, iteration 204: Unexpected result nan (message='found NaN in local "
    "forward loss calculation')"
)


def row(step: int, body: str = "", skipped: int = 0, nan: int = 0, head: str = " ") -> str:
    """A row with what matters here."""
    return (
        f"{head}iteration {step:8d}/    9000 | consumed samples: {64 * step:12d} |{body} number of skipped iterations: "
        f"{skipped:3d} | number of nan iterations: {nan:3d} |"
    )


def only(values: dict[str, float], *names: str) -> dict[str, float]:
    """Those of these names that there are."""
    return {name: values[name] for name in names if name in values}


def test_the_full_row() -> None:
    """Every number of the row, under the names that Megatron prints; its time in seconds beside it."""
    [(step, phase, values)] = told(MEGATRON, FULL)
    assert (step, phase) == (250, TRAIN)
    assert same(values, {
        "consumed samples": 16000.0, "elapsed time per iteration (ms)": 701.2, "elapsed time per iteration (s)": 0.7012,
        "throughput per GPU (TFLOP/s/GPU)": 44.4, "learning rate": 5.5e-05, "global batch size": 64.0,
        "lm loss": 3.141593, "load_balancing_loss": 1.02, "z_loss": 0.013, "loss scale": 1.0, "grad norm": 0.777,
        "params norm": 1234.5, "number of skipped iterations": 0.0, "number of nan iterations": 0.0,
    })  # fmt: skip


def test_canonical_names() -> None:
    """What a rule sees: loss, gradient norm, balance; the scale of fp16 is no loss."""
    [record] = records(MEGATRON, FULL)
    assert record.step == 250 and record.time == pytest.approx(1767323045.678901)
    assert same(only(record.values, "loss", "grad_norm", "learning_rate", "balance_loss", "z_loss", "loss_scale",
                     "throughput", "step_time", "skipped_steps", "nan_steps"),
                {"loss": 3.141593, "grad_norm": 0.777, "learning_rate": 5.5e-05, "balance_loss": 1.02, "z_loss": 0.013,
                 "loss_scale": 1.0, "throughput": 44.4, "step_time": 0.7012, "skipped_steps": 0.0,
                 "nan_steps": 0.0})  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(" grad norm: 23.285 |", {"grad norm": 23.285}, id="gradient"),
        pytest.param(" grad norm: inf |", {"grad norm": math.inf, "lm loss": NAN}, id="gradient-inf"),
        pytest.param(" grad norm: -inf |", {"grad norm": -math.inf, "lm loss": NAN}, id="gradient-minus-inf"),
        pytest.param(" lm loss: NAN | grad norm: nan |", {"lm loss": NAN, "grad norm": NAN}, id="NAN-of-E-format"),
        pytest.param(" z_loss: NAN | lm loss: 2.0E+00 |", {"z_loss": NAN, "lm loss": 2.0}, id="aux-NAN"),
        pytest.param(" lm loss: 0.7563179 | mtp_1 loss: 1.115410E+00 |", {"lm loss": 0.7563179, "mtp_1 loss": 1.11541},
                     id="mtp"),
        pytest.param(" seq_load_balancing_loss: 9.9E-01 |", {"seq_load_balancing_loss": 0.99}, id="below-one"),
        pytest.param(" consumed tokens:     88899584 | actual seqlen:  2048 |", {"consumed tokens": 88899584.0,
                     "actual seqlen": 2048.0}, id="megatron-deepspeed"),
        pytest.param(" elapsed time per iteration (s): 769.99 |", {"elapsed time per iteration (s)": 769.99},
                     id="seconds"),
        pytest.param(" elapsed time per iteration (ms): 13372.8/13364.7 |",
                     {"elapsed time per iteration (ms)": 13372.8, "elapsed time per iteration (s)": 13.3728},
                     id="now-and-average"),
        pytest.param(" hip mem usage/free/total/usage_ratio: 153.81GB/102.17GB/255.98GB/60.09% |",
                     {"hip mem usage/free/total/usage_ratio": 153.81}, id="memory"),
        pytest.param(" rl/kl_term: 1.5E-03 | rl/entropy_term: 4.1E-01 | rl/truncated_from_above: 2.0E-02 |",
                     {"rl/kl_term": 0.0015, "rl/entropy_term": 0.41, "rl/truncated_from_above": 0.02}, id="rl"),
        pytest.param(" num zeros: 0.0 |", {"num zeros": 0.0}, id="zeros"),
        pytest.param(" fix-router or fix-sub-seq-length is set, current loss is not reliable |", {}, id="remark"),
        pytest.param(" skipped samples:           64 |", {"skipped samples": 64.0}, id="skipped-samples"),
        pytest.param("  lm loss: 1.0E+00 |", {"lm loss": 1.0}, id="two-spaces"),
    ],
)  # fmt: skip
def test_parts_of_a_row(body: str, expected: dict[str, float]) -> None:
    """Each part that some build prints is read to its number."""
    [(step, _, values)] = told(MEGATRON, row(7, body))
    rest = ("consumed samples", "number of skipped iterations", "number of nan iterations")
    assert step == 7 and same({n: v for n, v in values.items() if n not in rest}, expected)


@pytest.mark.parametrize(
    ("head", "at"),
    [
        pytest.param(" ", None, id="none"),
        pytest.param(" [2026-01-02 03:04:05] ", 1767323045.0, id="seconds"),
        pytest.param(" [2026-01-02 03:04:05.678901] ", 1767323045.678901, id="microseconds"),
        pytest.param("[2026-01-02T11:04:05+08:00] ", 1767323045.0, id="zone"),
        pytest.param("[2026-13-45 03:04:05] ", None, id="no-such-day"),
        pytest.param("[default7]: [2026-01-02 03:04:05] ", 1767323045.0, id="torchrun"),
    ],
)
def test_head(head: str, at: float | None) -> None:
    """Old builds bear no time, new ones microseconds, some a zone."""
    [one] = said(MEGATRON, row(3, head=head))
    assert isinstance(one, Told) and one.step == 3
    assert one.at == (None if at is None else pytest.approx(at))


def test_the_rank_of_torchrun() -> None:
    """The rank of a prefix is the row's."""
    [one] = said(MEGATRON, "[default7]:" + row(3))
    assert isinstance(one, Told) and one.rank == 7


@pytest.mark.parametrize(
    ("rows", "loss"),
    [
        pytest.param([SICK], NAN, id="never-seen-but-gradient-nan"),
        pytest.param([FULL, SICK], NAN, id="gone-and-gradient-nan"),
        pytest.param([FULL, row(251, " grad norm: 0.7 |")], NAN, id="gone-while-gradient-finite"),
        pytest.param([FULL, row(251, " load_balancing_loss: 1.0E+00 | grad norm: 0.7 |")], NAN, id="gone-beside-aux"),
        pytest.param([FULL, row(251, " grad norm: 0.7 |", nan=1)], NAN, id="nan-counted"),
        pytest.param([row(250, " rl/kl_term: 1.0E-3 | lm loss: 1.0E-1 | grad norm: 0.7 |"),
                      row(251, " rl/kl_term: 1.0E-3 | grad norm: 0.7 |")], None, id="rl-loss-is-negative"),
        pytest.param([row(250, " rl/kl_term: 1.0E-3 | lm loss: 1.0E-1 | grad norm: 0.7 |"),
                      row(251, " rl/kl_term: 1.0E-3 | grad norm: nan |")], NAN, id="rl-and-gradient-nan"),
        pytest.param([row(10, " loss scale: 8388608.0 |", skipped=10)], None, id="fp16-seeks-its-scale"),
        pytest.param([row(10, " lm loss: 0.0E+00 | loss scale: 8.0 |", skipped=10)], None, id="mean-over-nothing"),
        pytest.param([row(10, " lm loss: 2.0E+00 |"), row(11, " loss scale: 4.0 |", skipped=1)], None,
                     id="one-skipped"),
        pytest.param([row(10, " lm loss: 2.0E+00 |"), row(11, " loss scale: 4.0 |", skipped=1, nan=1)], None,
                     id="one-skipped-for-a-nan"),
        pytest.param([row(10, " lm loss: 2.0E+00 |"), row(20, " lm loss: 1.5E+00 | grad norm: 1.0 |", skipped=3)], 1.5,
                     id="some-skipped"),
        pytest.param([row(10), row(20, " grad norm: 1.0 |")], None, id="never-had-one"),
    ],
)  # fmt: skip
def test_a_loss_that_is_missing(rows: list[str], loss: float | None) -> None:
    """A missing loss is NaN where it must be, and is not where a step was skipped or a policy's loss is negative."""
    values = told(MEGATRON, *rows)[-1][2]
    assert same(only(values, "lm loss"), {} if loss is None else {"lm loss": loss})


@pytest.mark.parametrize("cut", range(20, len(FULL), 7))
def test_a_line_that_is_cut(cut: int) -> None:
    """Half a line lacks no loss and has no half number."""
    whole = told(MEGATRON, FULL)[0][2]
    for _, _, values in told(MEGATRON, FULL.replace("250/", "249/"), FULL[:cut])[1:]:
        assert all(whole[name] == value for name, value in values.items())


@pytest.mark.parametrize(
    ("rows", "skipped"),
    [
        pytest.param([(1, 0), (2, 1), (3, 1), (4, 0)], [0, 1, 1, 0], id="each-step"),
        pytest.param([(10, 4), (20, 2), (30, 2)], [4, 2, 2], id="windows"),
        pytest.param([(1, 1), (10, 4), (20, 2)], [1, 3, 2], id="iteration-1-told-twice"),
        pytest.param([(1, 1), (2, 1)], [1, 1], id="iteration-1-of-each-step"),
        pytest.param([(10, 2), (20, 2), (11, 1)], [2, 2], id="begun-again"),
    ],
)
def test_counts_are_of_the_window(rows: list[tuple[int, int]], skipped: list[int]) -> None:
    """Two skipped in each window of ten are two each time; the first step is not counted twice."""
    found = records(MEGATRON, *(row(step, " lm loss: 1.0E+00 |", skipped=count) for step, count in rows))
    assert [one.values["skipped_steps"] for one in found][: len(skipped)] == skipped


@pytest.mark.parametrize(
    ("rows", "applied"),
    [
        pytest.param([(1, 0), (2, 1), (3, 0)], [None, 0.0, None], id="one"),
        pytest.param([(10, 10), (20, 9)], [0.0, None], id="all-of-a-window"),
    ],
)
def test_a_step_that_was_skipped(rows: list[tuple[int, int]], applied: list[float | None]) -> None:
    """Where the whole window was skipped, the row's step was not applied."""
    body = " lm loss: 1.0E+00 |"
    found = records(MEGATRON, *(row(s, "" if s == count else body, skipped=count) for s, count in rows))
    assert [one.values.get("step_applied") for one in found] == applied


@pytest.mark.parametrize(
    ("line", "step", "values"),
    [
        pytest.param(VALIDATION, 1000, {"lm loss value": 3.0, "lm loss PPL": 20.08554}, id="plain"),
        pytest.param(" validation loss at iteration 10 on validation set | lm loss value: NAN | lm loss PPL: NAN | ",
                     10, {"lm loss value": NAN, "lm loss PPL": NAN}, id="nan"),
        pytest.param("0: validation loss at iteration 238 [hplt] | lm loss value: 1.262000 |", 238,
                     {"lm loss value": 1.262}, id="panel-behind-srun"),
        pytest.param(" validation loss at the end of training | lm loss value: 1.5E+00 | ", None,
                     {"lm loss value": 1.5}, id="at-the-end"),
    ],
)  # fmt: skip
def test_validation(line: str, step: int | None, values: dict[str, float]) -> None:
    """Validation is kept apart from training."""
    [(found, phase, read)] = told(MEGATRON, line)
    assert (found, phase) == (step, EVAL) and same(read, values)


def test_validation_joins_its_step() -> None:
    """A validation of step 1000 is part of the record of step 1000, and no loss of training."""
    [one] = records(MEGATRON, row(1000, " lm loss: 2.0E+00 |"), VALIDATION)
    assert one.values["loss"] == 2.0 and one.values["eval/lm loss value"] == 3.0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("  successfully saved checkpoint from iteration     120 to /ck [ t 1/4, p 1/2 ]", Note(SAVED, 120),
                     id="saved"),
        pytest.param(" successfully loaded checkpoint from /ck", Note(RESUMED, -1), id="loaded"),
        pytest.param("  successfully loaded checkpoint from /ck [ t 1/4, p 1/2 ] at iteration 120", Note(RESUMED, 120),
                     id="loaded-at"),
        pytest.param(GUARD, Fault("nan", "Megatron's check of results: found NaN in local forward loss calculation at "
                                         "iteration 204", 5), id="loss"),
        pytest.param("RuntimeError: Rank 3, node n1, device 3, iteration 7: Unexpected result tensor(inf, "
                     "device='cuda:3') (message='found NaN in local grad norm for bucket #0 in backward pass before "
                     "data-parallel communication collective')",
                     Fault("nan", "Megatron's check of results: found NaN in local grad norm for bucket #0 in backward "
                                  "pass before data-parallel communication collective at iteration 7", 3),
                     id="gradient"),
        pytest.param("ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 5 at iteration #204 "
                     "invocation #1 (message='found NaN in local forward loss calculation')",
                     Fault("nan", "Megatron's check of results: found NaN in local forward loss calculation at "
                                  "iteration 204", 5), id="rerun"),
    ],
)  # fmt: skip
def test_notes_and_faults(line: str, expected: Note | Fault) -> None:
    """Checkpoints and what Megatron's own checks found."""
    assert said(MEGATRON, line) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "saving checkpoint at iteration     120 to /ck in torch_dist format",
        "  scheduled an async checkpoint save at iteration 120",
        "WARNING: could not find the metadata file /ck/latest_checkpointed_iteration.txt",
        "exiting program after receiving SIGTERM.",
        "[after training is done] datetime: 2026-01-02 03:04:05 ",
        "Evaluating iter 1/10",
        "-" * 98,
        "Unexpected result 9.1 on rank 5 at iteration #204 invocation #1 (message='Spiky loss')",
        "[Rank 0] (after 1 iterations) memory (GB) | mem-allocated-gigabytes: 51.072 | mem-max: 195.46 |",
        "time (ms) | forward-compute: 53.79 | batch-generator: 2.35",
        " > finished creating GPT datasets ...",
        "iteration 5/10 | nothing here",
        "",
    ],
    ids=range(13),
)
def test_what_says_nothing(line: str) -> None:
    """What only looks like a row or is no end of a save is left alone."""
    assert said(MEGATRON, line) == []


def test_two_ranks_in_one_line() -> None:
    """Two writers share a line: both rows are read."""
    found = told(MEGATRON, FULL + SICK)
    assert [step for step, _, _ in found] == [250, 251] and math.isnan(found[1][2]["grad norm"])


def test_half_a_row_before_another() -> None:
    """What is whole of a half row is read, and the row behind it."""
    found = told(MEGATRON, FULL[:200] + SICK)
    assert [step for step, _, _ in found] == [250, 251] and found[0][2]["elapsed time per iteration (ms)"] == 701.2


@pytest.mark.parametrize(
    ("line", "sign"),
    [(FULL, 3), (SICK, 3), (VALIDATION, 1), ("iteration 3/9 | loss: 2 |", 1), ("step:12 - actor/entropy:0.4", 0)],
    ids=["row", "sick", "validation", "bare", "verl"],
)
def test_sign(line: str, sign: int) -> None:
    """Only Megatron's own row is sure."""
    assert MEGATRON.sign(line) == sign


def test_hostile_lines() -> None:
    """Cut or mangled, nothing raises; long, nothing is slow."""
    lines = [FULL, SICK, VALIDATION, GUARD, "  successfully saved checkpoint from iteration     120 to /ck"]
    assert prefixes_are_read(MEGATRON, lines) and mangled_are_read(MEGATRON, lines)
    assert long_lines_are_quick(MEGATRON, lines)
