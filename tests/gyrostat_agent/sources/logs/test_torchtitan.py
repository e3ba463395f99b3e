"""torchtitan's console: the same row of every rank, stages without a loss, validation, RL, checkpoints."""

import math

import pytest
from log_readers import long_lines_are_quick, mangled_are_read, prefixes_are_read, records, said, same, told

from gyrostat_agent.sources.logs.formats.torchtitan import TORCHTITAN
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, TRAIN, Note, Told

NAN = math.nan
HEAD = "[titan] 2026-01-02 03:04:05,678 - root - INFO - "
COLOURED = (
    HEAD
    + "\x1b[31mstep: 12  \x1b[32mloss:  3.14159  \x1b[38;2;180;60;0mgrad_norm:  0.1873  \x1b[38;2;54;234;195mmemory: "
    "61.20GiB(77.41%)  \x1b[34mtps: 1,530  \x1b[36mtflops: 120.10  \x1b[35mmfu: 12.14%\x1b[39m"
)
PLAIN = (
    "[rank3]:" + HEAD + "step: 12  loss:  3.14159  grad_norm:  0.1873  memory: 61.20GiB(77.41%)  tps: 1,530  tflops: "
    "120.10  mfu: N/A"
)
VALIDATE = HEAD + "validate step: 20  loss:  3.1000  memory: 61.20GiB(77.41%)  tps: 1,530"
RL = "Train | Step:  7  loss/mean: 0.42   trainer/entropy/mean: 0.31  trainer/grad_norm/mean: 0.19  reward/_mean: 0.5"
FULL = {"loss": 3.14159, "grad_norm": 0.1873, "memory": 61.2, "tps": 1530.0, "tflops": 120.1}


def row(step: int, loss: str = "3.14159", norm: str = "0.1873", rank: int | None = None) -> str:
    """A row, with a rank's prefix where one is given."""
    prefix = "" if rank is None else f"[rank{rank}]:"
    return f"{prefix}{HEAD}step: {step:2d}  loss: {loss:>8}  grad_norm: {norm:>7}  memory:  2.47GiB(3.12%)  tps: 3,502"


@pytest.mark.parametrize(
    ("line", "step", "phase", "values"),
    [
        pytest.param(COLOURED, 12, TRAIN, {**FULL, "mfu": 0.1214}, id="coloured"),
        pytest.param(PLAIN, 12, TRAIN, FULL, id="mfu-not-known"),
        pytest.param(VALIDATE, 20, EVAL, {"loss": 3.1, "memory": 61.2, "tps": 1530.0}, id="validate"),
        pytest.param(HEAD + "step:  1  loss: 12.2254  memory: 27.34GiB(28.78%)  tps: 375  tflops: 21.73  mfu: 2.20%", 1,
                     TRAIN, {"loss": 12.2254, "memory": 27.34, "tps": 375.0, "tflops": 21.73, "mfu": 0.022},
                     id="without-gradient"),
        pytest.param(row(3, "nan", "nan"), 3, TRAIN, {"loss": NAN, "grad_norm": NAN, "memory": 2.47, "tps": 3502.0},
                     id="nan"),
        pytest.param(row(3, "inf", "inf"), 3, TRAIN,
                     {"loss": math.inf, "grad_norm": math.inf, "memory": 2.47, "tps": 3502.0}, id="inf"),
        pytest.param(row(3, "-1.00000"), 3, TRAIN, {"grad_norm": 0.1873, "memory": 2.47, "tps": 3502.0},
                     id="stage-without-a-loss"),
        pytest.param(row(123456, "0.00001"), 123456, TRAIN,
                     {"loss": 0.00001, "grad_norm": 0.1873, "memory": 2.47, "tps": 3502.0}, id="large-step"),
        pytest.param(HEAD + "step:  9  loss:  1.5000  memory:  2.47GiB(3.12%)  tps: 1,234,567  tflops: 1,120.10", 9,
                     TRAIN, {"loss": 1.5, "memory": 2.47, "tps": 1234567.0, "tflops": 1120.1}, id="commas"),
        pytest.param("2026-01-02 03:04:05,678 - root - INFO - step: 10  loss: 10.7069  grad_norm:  2.1376", 10, TRAIN,
                     {"loss": 10.7069, "grad_norm": 2.1376}, id="other-logger"),
        pytest.param(HEAD + "step: 12  loss:  3.14159  grad_no", 12, TRAIN, {"loss": 3.14159}, id="cut"),
        pytest.param(HEAD + "step: 12  loss:  3.1  lr: 3.0e-04", 12, TRAIN, {"loss": 3.1, "lr": 3e-4}, id="more"),
        pytest.param(RL, 7, TRAIN, {"loss/mean": 0.42, "trainer/entropy/mean": 0.31, "trainer/grad_norm/mean": 0.19,
                                    "reward/_mean": 0.5}, id="rl"),
        pytest.param("Train | Step:  7  trainer/entropy/mean: nan  timing/step: 12  perf/tokens_per_second: 1.5e+03", 7,
                     TRAIN, {"trainer/entropy/mean": NAN, "timing/step": 12.0, "perf/tokens_per_second": 1500.0},
                     id="rl-nan"),
        pytest.param("Train | Step:  7 | loss:  0.42 | grad_norm:  0.01", 7, TRAIN, {"loss": 0.42, "grad_norm": 0.01},
                     id="rl-bars"),
        pytest.param("Validation | Step:  7  validation_reward/_mean: 0.5", 7, EVAL, {"validation_reward/_mean": 0.5},
                     id="rl-validation"),
        pytest.param(HEAD + "Train | Step: 12  trainer/grad_norm: 0.2", 12, TRAIN, {"trainer/grad_norm": 0.2},
                     id="rl-behind-the-logger"),
    ],
)  # fmt: skip
def test_rows(line: str, step: int, phase: str, values: dict[str, float]) -> None:
    """Each line's step, phase and numbers."""
    [(found, kind, read)] = told(TORCHTITAN, line)
    assert (found, kind) == (step, phase) and same(read, values)


def test_time_and_rank() -> None:
    """The logger's time and the rank of torchrun's prefix."""
    [one] = said(TORCHTITAN, PLAIN)
    assert isinstance(one, Told) and one.rank == 3 and one.at == pytest.approx(1767323045.678)


def test_canonical_names() -> None:
    """What a rule sees, of training and of the RL experiment."""
    [one] = records(TORCHTITAN, COLOURED)
    assert one.values["loss"] == 3.14159 and one.values["throughput"] == 1530.0
    [one] = records(TORCHTITAN, RL)
    assert {"loss": 0.42, "entropy": 0.31, "grad_norm": 0.19, "reward": 0.5}.items() <= one.values.items()


def test_validation_is_kept_apart() -> None:
    """Its loss is not the loss."""
    [one] = records(TORCHTITAN, row(20), VALIDATE)
    assert one.values["loss"] == 3.14159 and one.values["eval/loss"] == 3.1


def test_every_rank_prints_the_same() -> None:
    """Eight ranks' rows of one step are one."""
    lines = [row(step, rank=rank) for step in (1, 2, 3) for rank in range(8)]
    assert [one.step for one in records(TORCHTITAN, *lines)] == [1, 2, 3]


@pytest.mark.parametrize("ranks", [(0, 1), (None, None)], ids=["with-prefix", "without"])
def test_a_rank_that_is_late_is_no_step_back(ranks: tuple[int | None, int | None]) -> None:
    """Rank 1 prints step 2 when rank 0 has printed step 3: no run was taken up again."""
    first, second = ranks
    lines = [row(1, "3.1", rank=first), row(1, "3.1", rank=second), row(2, "3.2", rank=first),
             row(3, "3.3", rank=first), row(2, "3.2", rank=second), row(3, "3.3", rank=second),
             row(4, "3.4", rank=first)]  # fmt: skip
    assert [(one.segment, one.step) for one in records(TORCHTITAN, *lines)] == [(0, 1), (0, 2), (0, 3), (0, 4)]


def test_a_late_rank_that_is_sick_is_seen() -> None:
    """A NaN on a rank that is late is told with the newest step rather than lost."""
    lines = [row(1, rank=0), row(1, rank=1), row(2, rank=0), row(3, rank=0), row(2, "nan", rank=1), row(4, rank=0)]
    found = records(TORCHTITAN, *lines)
    assert [(one.segment, one.step) for one in found] == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert math.isnan(found[2].values["loss"])


def test_one_sick_rank_of_a_step() -> None:
    """Where ranks differ, what is not finite stays."""
    [one] = records(TORCHTITAN, row(1, rank=0), row(1, "nan", rank=1), row(1, rank=2))
    assert math.isnan(one.values["loss"])


@pytest.mark.parametrize("ranks", [(0, 1), (None,)], ids=["with-prefix", "without"])
def test_a_run_that_is_taken_up_again(ranks: tuple[int | None, ...]) -> None:
    """The same rank going back is a new segment, whose steps all count."""
    lines = [row(step, f"3.{step}", rank=rank) for step in (10, 20, 30, 40) for rank in ranks]
    again = [row(step, f"3.{step}", rank=rank) for step in (20, 30, 40, 50) for rank in ranks]
    found = [(one.segment, one.step) for one in records(TORCHTITAN, *lines, *again)]
    assert found == [(0, 10), (0, 20), (0, 30), (0, 40), (1, 20), (1, 30), (1, 40), (1, 50)]


def test_two_ranks_in_one_line() -> None:
    """Rows of two ranks without a newline between: both are read, and are the same one."""
    assert [step for step, _, _ in told(TORCHTITAN, row(5, rank=0) + row(6, rank=1))] == [5, 6]
    assert len(told(TORCHTITAN, row(5, rank=0) + row(5, rank=1))) == 1


@pytest.mark.parametrize(
    ("lines", "notes"),
    [
        pytest.param(["Saving the checkpoint.", "Finished saving the checkpoint in 12.30 seconds."], [Note(SAVED, 12)],
                     id="saved"),
        pytest.param(["Finished saving the checkpoint in 12.30 seconds."] * 8, [Note(SAVED, 12)], id="by-all-ranks"),
        pytest.param(["Staging the checkpoint.", "Finished saving the checkpoint in 0.30 seconds."], [],
                     id="staged-is-not-saved"),
        pytest.param(["Finished saving the checkpoint (or staging if async is enabled)in 1.20 seconds."], [],
                     id="saved-or-staged"),
        pytest.param(["Saving a full checkpoint at last step, step 500.", "Finished saving the checkpoint in 2 s."],
                     [Note(SAVED, 500)], id="last-step"),
        pytest.param(["Loading the checkpoint from outputs/checkpoint/step-40."], [Note(RESUMED, 40)], id="loading"),
        pytest.param(["Loading the checkpoint from assets/models/dcp/llama3.1-8B."], [Note(RESUMED, -1)],
                     id="loading-elsewhere"),
        pytest.param(["No checkpoint was provided, this is a fresh start."], [], id="fresh"),
    ],
)  # fmt: skip
def test_checkpoints(lines: list[str], notes: list[Note]) -> None:
    """What is on disk is a note, what is staged is not."""
    found = said(TORCHTITAN, COLOURED, *(HEAD + line for line in lines))
    assert [one for one in found if isinstance(one, Note)] == notes


@pytest.mark.parametrize(
    "line",
    [
        HEAD + "Training starts at step 1, with local batch size 8, total steps 1000 (warmup 200).",
        HEAD + "Building 1-D device mesh with ['dp_shard'], [8]",
        "[titan] 2026-01-02 03:04:05,678 - torchft.manager - INFO - [ft_0/0 - step 21] should_commit=False",
        HEAD + "[RESUME DEBUG] Before checkpoint load: self.step = 0",
        "global_step: 12  loss: 3.0",
        "step: 12",
        "----------",
        "",
    ],
    ids=range(8),
)
def test_what_says_nothing(line: str) -> None:
    """Lines that only speak of steps are no rows."""
    assert said(TORCHTITAN, line) == []


@pytest.mark.parametrize(
    ("line", "sign"),
    [(PLAIN, 3), (VALIDATE, 3), (RL, 3), (HEAD + "Starting job", 1), ("Step 12 | loss:1.2 ", 0), ("step: 1  x", 0)],
    ids=["row", "validate", "rl", "logger", "torchtune", "bare"],
)
def test_sign(line: str, sign: int) -> None:
    """Its rows are its own; its logger's name makes it likely."""
    assert TORCHTITAN.sign(line) == sign


def test_hostile_lines() -> None:
    """Cut or mangled, nothing raises; long, nothing is slow."""
    lines = [PLAIN, COLOURED, VALIDATE, RL, HEAD + "Loading the checkpoint from outputs/checkpoint/step-40."]
    assert prefixes_are_read(TORCHTITAN, lines) and mangled_are_read(TORCHTITAN, lines)
    assert long_lines_are_quick(TORCHTITAN, lines)
