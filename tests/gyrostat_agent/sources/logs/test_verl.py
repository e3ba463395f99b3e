"""verl's console and JSON lines: numbers of NumPy, Ray's prefixes, ranks in one line, warnings that say no step."""

import math

import pytest
from log_readers import long_lines_are_quick, mangled_are_read, prefixes_are_read, records, said, same, told

from gyrostat_agent.sources.logs.formats.verl import VERL
from gyrostat_agent.sources.logs.said import RESUMED, SAVED, SKIPPED, Note
from gyrostat_rules.series import STEP_APPLIED

NAN, INF = math.nan, math.inf
RAY = "\x1b[36m(TaskRunner pid=4711, ip=10.0.0.3)\x1b[0m "
ROW = (
    "step:12 - global_seqlen/min:40211 - actor/entropy:0.4127 - actor/pg_loss:np.float64(-0.0113) - "
    "actor/grad_norm:np.float64(0.1873) - actor/lr:np.float64(1e-06) - training/global_step:12 - "
    "critic/score/mean:0.4414 - timing_s/step:61.4"
)
FULL = {"global_seqlen/min": 40211.0, "actor/entropy": 0.4127, "actor/pg_loss": -0.0113, "actor/grad_norm": 0.1873,
        "actor/lr": 1e-6, "training/global_step": 12.0, "critic/score/mean": 0.4414, "timing_s/step": 61.4}  # fmt: skip
JSON = '{"step":12,"data":{"actor/entropy":0.4127,"actor/grad_norm":null,"training/epoch":0}}'
WARN = "(WorkerDict pid=77) WARN: rank 3 grad_norm is not finite: nan"


def row(step: int, gradient: str = "0.2") -> str:
    """A short line of the console."""
    return f"step:{step} - actor/pg_loss:0.01 - actor/grad_norm:{gradient}"


@pytest.mark.parametrize(
    ("line", "step", "values"),
    [
        pytest.param(ROW, 12, FULL, id="row"),
        pytest.param(RAY + ROW, 12, FULL, id="ray"),
        pytest.param("(main_task pid=812) " + ROW, 12, FULL, id="ray-without-colour"),
        pytest.param(f"  3%|▎ | 12/435 [01:02<7:30:12, 62.2s/it]{RAY}{ROW}", 12, FULL, id="behind-a-bar"),
        pytest.param(ROW + " [repeated 7x across cluster]", 12, FULL, id="ray-says-again"),
        pytest.param("step:13 - actor/entropy_loss:0.402 - actor/lr:0.000", 13,
                     {"actor/entropy_loss": 0.402, "actor/lr": 0.0}, id="old-decimals"),
        pytest.param("step:1 - a/b:nan - c:-inf - d:inf", 1, {"a/b": NAN, "c": -INF, "d": INF}, id="not-finite"),
        pytest.param("step:1 - a:np.float32(nan) - b:np.float64(-inf)", 1, {"a": NAN, "b": -INF}, id="numpy-nan"),
        pytest.param("step:1 - a:np.int64(4) - b:np.float16(0.5)", 1, {"a": 4.0, "b": 0.5}, id="numpy-kinds"),
        pytest.param("step:1 - a:tensor(nan, device='cuda:0') - b:1.0", 1, {"a": NAN, "b": 1.0}, id="tensor-nan"),
        pytest.param("step:1 - a:tensor(0.5) - b:tensor(2., dtype=torch.bfloat16)", 1, {"a": 0.5, "b": 2.0},
                     id="tensor"),
        pytest.param("step:1 - a:None - b:1e-06", 1, {"a": NAN, "b": 1e-6}, id="none"),
        pytest.param("step:1 - a:True - b:False", 1, {"a": 1.0, "b": 0.0}, id="truth"),
        pytest.param("step:0 - val-core/openai/gsm8k/reward/mean@1:0.025", 0,
                     {"val-core/openai/gsm8k/reward/mean@1": 0.025}, id="validation"),
        pytest.param("step:0 - val/test_score/demo:0.031", 0, {"val/test_score/demo": 0.031}, id="old-validation"),
        pytest.param("step:2 - train/loss:1.1 - train/lr(1e-3):0.002 - train/time(s):3.2", 2,
                     {"train/loss": 1.1, "train/lr(1e-3)": 0.002, "train/time(s)": 3.2}, id="supervised"),
        pytest.param("step:3 - actor/grad_norm:0.5 - actor/ent", 3, {"actor/grad_norm": 0.5}, id="cut-in-a-name"),
        pytest.param("step:3 - actor/grad_norm:0.5 - actor/entropy:", 3, {"actor/grad_norm": 0.5}, id="cut-at-a-value"),
        pytest.param("step:3 - actor/grad_norm:0.5 - note:high", 3, {"actor/grad_norm": 0.5}, id="a-word"),
        pytest.param("step:100000000000 - a:1.0", 10**11, {"a": 1.0}, id="far"),
        pytest.param(JSON, 12, {"actor/entropy": 0.4127, "actor/grad_norm": NAN, "training/epoch": 0.0}, id="json"),
        pytest.param('{"step": 3, "data": {"actor/pg_loss": -1e-05}}', 3, {"actor/pg_loss": -1e-5}, id="json-spaced"),
        pytest.param('{"step":3,"data":{"a":1,"b":"word","c":[1],"d":true}}', 3, {"a": 1.0, "d": 1.0}, id="json-kinds"),
    ],
)  # fmt: skip
def test_rows(line: str, step: int, values: dict[str, float]) -> None:
    """Each line's step and numbers."""
    [(number, _, read)] = told(VERL, line)
    assert number == step and same(read, values)


@pytest.mark.parametrize(
    "line",
    [
        "training/global_step:12 - training/epoch:0", "global_step:3 - a:1.0", "timing_s/step:61.4 - timing_s/gen:8.0",
        "step:12", "step:12 - ", "step: 12 loss: 0.3", '{"step":12}', '{"step":-1,"data":{"a":1}}',
        '{"step":1e3,"data":{"a":1}}', '{"step":12,"data":[1]}', '{"step":12,"data":{"a":', "{'a': 1}",
        '("Initial validation metrics: {\'val-core/x/mean@1\': 0.5}")', "Training Progress:   4%|4   | 12/300",
        "After update_actor, memory allocated (GB): 21.5, memory reserved (GB): 60.2",
    ],
)  # fmt: skip
def test_what_is_no_row(line: str) -> None:
    """A step's name within another name, settings, bars, and JSON that is another's or cut."""
    assert told(VERL, line) == []


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        (f"{row(1)} {row(2, 'nan')}", {1: {"actor/pg_loss": 0.01, "actor/grad_norm": 0.2},
                                       2: {"actor/pg_loss": 0.01, "actor/grad_norm": NAN}}),
        (f"{row(1, '0.0')}{row(2)}", {1: {"actor/pg_loss": 0.01}, 2: {"actor/pg_loss": 0.01, "actor/grad_norm": 0.2}}),
        (f"step:1 - actor/pg_l(WorkerDict pid=4) {row(2)}", {2: {"actor/pg_loss": 0.01, "actor/grad_norm": 0.2}}),
    ],
    ids=["whole", "glued", "half"],
)  # fmt: skip
def test_two_ranks_in_one_line(line: str, rows: dict[int, dict[str, float]]) -> None:
    """Each keeps its step and its numbers; a value that the other may have cut is no number."""
    found = {step: values for step, _, values in told(VERL, line)}
    assert found.keys() == rows.keys() and all(same(found[step or 0], rows[step or 0]) for step in found)


@pytest.mark.parametrize(
    ("lines", "sick"),
    [
        pytest.param([row(1), row(2), WARN, row(3, "nan"), row(4)], [3], id="one-rank"),
        pytest.param([row(1), row(2), *[WARN] * 8, row(3, "nan"), row(4)], [3], id="eight-ranks"),
        pytest.param([row(1), row(2, "nan"), WARN, WARN, row(3), row(4)], [2], id="passed-on-late"),
        pytest.param([*[WARN] * 3, row(1, "nan"), row(2)], [1], id="before-any-row"),
        pytest.param(["Setting global step to 40", WARN, WARN, row(41, "nan"), row(42)], [41], id="taken-up"),
        pytest.param([row(1), WARN, row(2, "nan"), WARN, row(3, "nan"), row(4)], [2, 3], id="two-on-end"),
        pytest.param([row(1), WARN.replace("rank 3 ", ""), row(2, "nan"), row(3)], [2], id="no-rank"),
        pytest.param([row(1), WARN, WARN, row(2), row(3)], [2], id="one-mini-batch-of-many"),
    ],
)
def test_a_warning_is_of_one_step(lines: list[str], sick: list[int]) -> None:
    """However many ranks say it: a single step that verl left out itself must not read as several in a row."""
    found = records(VERL, *lines)
    assert [one.step for one in found if not math.isfinite(one.values.get("grad_norm", 0.0))] == sick
    assert [one.step for one in found if one.values.get(STEP_APPLIED) == 0.0] == sick
    assert len({one.step for one in found}) == len(found) and {one.segment for one in found} == {0}


def test_a_warning_that_ends_a_log_is_told() -> None:
    """Of a run that died in its first step, it is all that there is."""
    [one] = records(VERL, WARN)
    assert math.isnan(one.values["grad_norm"])


def test_canonical_names() -> None:
    """What a rule sees; validation apart, and the critic's gradient is not the policy's."""
    [one] = records(VERL, ROW + " - critic/grad_norm:300.0 - val-core/x/mean@1:0.5 - actor/loss_scale:65536.0")
    assert {"loss": -0.0113, "grad_norm": 0.1873, "entropy": 0.4127, "reward": 0.4414, "learning_rate": 1e-6,
            "eval/val-core/x/mean@1": 0.5, "critic/grad_norm": 300.0}.items() <= one.values.items()  # fmt: skip
    assert one.values["loss_scale"] == 65536.0


def test_notes() -> None:
    """What is saved, taken up and left out."""
    notes = [one for one in said(VERL, "local_global_step_folder: ckpt/global_step_40", "Setting global step to 40",
                                 row(41), WARN) if isinstance(one, Note)]  # fmt: skip
    assert [(one.kind, one.step) for one in notes] == [(SAVED, 40), (RESUMED, 40), (SKIPPED, 42)]


def test_nothing_in_a_line_raises_or_takes_long() -> None:
    """Cut, damaged, mixed and endless lines cost their line."""
    lines = [ROW, RAY + ROW, JSON, WARN, f"{row(1)}{row(2)}", "step:1 - a:tensor(nan, device='cuda:0')"]
    assert prefixes_are_read(VERL, lines) and mangled_are_read(VERL, lines) and long_lines_are_quick(VERL, lines)
