"""open-instruct's box: prefixes in column 1, rows that go on, names that were broken, boxes that are never closed."""

import math

import pytest
from log_readers import long_lines_are_quick, mangled_are_read, prefixes_are_read, records, said, same, told

from gyrostat_agent.sources.logs.formats.openinstruct import OPEN_INSTRUCT
from gyrostat_agent.sources.logs.said import Told

NAN = math.nan
TOP = "╭─────────────────────────────── Metrics ───────────────────────────────╮"
BOTTOM = "╰────────────────────────────────────────────────────────────────────────╯"
ROWS = [
    "│  debug      vllm_vs_local_logprob_diff_mean: 0.01                      │",
    "│  loss       policy_avg: 0.00 | total_avg: 0.00 | kl_avg: 1.20e-06      │",
    "│  objective  kl2_avg: 0.01 | ...                                        │",
    "│  optim      grad_norm: 0.19                                            │",
    "│  other      training_step: 12 | lr: 1.00e-06 | scores: 4.41            │",
]
BOX = [TOP, *ROWS, BOTTOM]
STEP = "│  other      training_step: 12                                          │"


def box(*rows: str, step: int = 12) -> list[str]:
    """A box of these rows and a step."""
    return [TOP, *(f"│  {row:<70}│" for row in rows), f"│  {f'other      training_step: {step}':<70}│", BOTTOM]


def test_the_box() -> None:
    """A whole box is one row; names have their prefix again, and those of no prefix have none."""
    [(step, _, values)] = told(OPEN_INSTRUCT, *BOX)
    assert step == 12 and same(values, {
        "debug/vllm_vs_local_logprob_diff_mean": 0.01, "loss/policy_avg": 0.0, "loss/total_avg": 0.0,
        "loss/kl_avg": 1.2e-06, "objective/kl2_avg": 0.01, "optim/grad_norm": 0.19, "lr": 1e-06, "scores": 4.41,
    })  # fmt: skip


def test_canonical_names() -> None:
    """What a rule sees."""
    [one] = records(OPEN_INSTRUCT, *BOX)
    assert one.step == 12 and {"loss": 0.0, "grad_norm": 0.19, "learning_rate": 1e-06, "reward": 4.41, "kl": 0.01,
                               "mismatch_diff": 0.01}.items() <= one.values.items()  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        pytest.param(["optim      grad_norm: nan"], {"optim/grad_norm": NAN}, id="nan"),
        pytest.param(["optim      grad_norm: inf"], {"optim/grad_norm": math.inf}, id="inf"),
        pytest.param(["loss       policy_avg: -1.20e-06"], {"loss/policy_avg": -1.2e-06}, id="small-and-negative"),
        pytest.param(["loss       policy_avg: 0.00e+00"], {"loss/policy_avg": 0.0}, id="nothing"),
        pytest.param(["policy     entropy_avg: 0.31 | clipfrac_avg: 0.01"],
                     {"policy/entropy_avg": 0.31, "policy/clipfrac_avg": 0.01}, id="entropy"),
        pytest.param(["objective  kl0_avg: 0.01 | kl3_avg: 0.02"],
                     {"objective/kl0_avg": 0.01, "objective/kl3_avg": 0.02}, id="kls"),
        pytest.param(["debug      vllm_local_reverse_kl: 0.02"], {"debug/vllm_local_reverse_kl": 0.02}, id="mismatch"),
        pytest.param(["val        sequence_lengths: 811.20 | ratio: 1.00"], {"sequence_lengths": 811.2, "ratio": 1.0},
                     id="rollouts"),
        pytest.param(["val        stop_rate: 0.75"], {"stop_rate": 0.75, "truncated_fraction": 0.25}, id="stop-rate"),
        pytest.param(["time       training: 12.50 | saving: 0.10"], {"time/training": 12.5, "time/saving": 0.1},
                     id="time"),
        pytest.param(["loss       policy_avg: 0.00 | total_avg:", "           0.25 | kl_avg: 0.50"],
                     {"loss/policy_avg": 0.0, "loss/total_avg": 0.25, "loss/kl_avg": 0.5}, id="before-a-number"),
        pytest.param(["loss       policy_avg: 0.00 |", "           total_avg: 0.25 |", "           kl_avg: 0.50"],
                     {"loss/policy_avg": 0.0, "loss/total_avg": 0.25, "loss/kl_avg": 0.5}, id="wrapped-twice"),
        pytest.param(["loss       policy_avg: 0.00", "           | total_avg: 0.25"],
                     {"loss/policy_avg": 0.0, "loss/total_avg": 0.25}, id="wrapped-before-a-bar"),
        pytest.param(["debug      vllm_vs_local_logpr", "           ob_diff_mean: 0.01"],
                     {"debug/vllm_vs_local_logprob_diff_mean": 0.01}, id="broken-name"),
        pytest.param(["optim      grad_norm: 0.19", "           ", "policy     entropy_avg: 0.31"],
                     {"optim/grad_norm": 0.19, "policy/entropy_avg": 0.31}, id="empty-row"),
        pytest.param(["other      lr: 1.00e-06 | epoch: 0.01 | episode: 2048"],
                     {"lr": 1e-06, "epoch": 0.01, "episode": 2048.0}, id="no-prefix"),
        pytest.param(["objective  verifiable_correct_rate: 0.44 | note: a word"],
                     {"objective/verifiable_correct_rate": 0.44}, id="a-word"),
        pytest.param(["objective  ... | kl_avg: 0.10"], {"objective/kl_avg": 0.1}, id="dots"),
        pytest.param(["eval       scores: 3.20"], {"eval/scores": 3.2}, id="evaluation"),
    ],
)  # fmt: skip
def test_rows(rows: list[str], values: dict[str, float]) -> None:
    """Each row's names and numbers, also where it goes on in the next."""
    [(step, _, read)] = told(OPEN_INSTRUCT, *box(*rows))
    assert step == 12 and same(read, values)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([f"\x1b[1;32m{line}\x1b[0m" for line in BOX], id="coloured"),
        pytest.param([f"(PolicyTrainer pid=4711) {line}" for line in BOX], id="ray"),
        pytest.param([BOX[0], "INFO: other says", *BOX[1:3], "", *BOX[3:]], id="lines-of-others-between"),
        pytest.param(BOX[:-1], id="never-closed"),
        pytest.param([*BOX[:-1], TOP], id="the-next-begins"),
        pytest.param([line.translate(str.maketrans("╭╮╰╯─│", "++++-|")) for line in BOX], id="ascii"),
        pytest.param([line.translate(str.maketrans("╭╮╰╯─│", "┏┓┗┛━┃")) for line in BOX], id="heavy"),
        pytest.param([f"   {line}   " for line in BOX], id="indented"),
    ],
)
def test_boxes(lines: list[str]) -> None:
    """However it is drawn, and whoever wrote between: the same numbers."""
    [(step, _, values)] = told(OPEN_INSTRUCT, *lines)
    assert step == 12 and len(values) == 8 and values["optim/grad_norm"] == 0.19


def test_evaluation_is_kept_apart_and_rollouts_are_not() -> None:
    """``val`` is of the rollouts that are trained on; ``eval`` is an evaluation."""
    [one] = records(OPEN_INSTRUCT, *box("eval       scores: 3.20", "val        sequence_lengths: 811.20"))
    assert one.values == {"eval/scores": 3.2, "response_length": 811.2}


def test_steps_follow_each_other() -> None:
    """A box a step."""
    lines = [line for step in (1, 2, 3) for line in box(f"loss       total_avg: 0.{step}", step=step)]
    assert [(one.step, one.values["loss"]) for one in records(OPEN_INSTRUCT, *lines)] == [(1, 0.1), (2, 0.2), (3, 0.3)]


def test_a_box_without_a_step_is_counted() -> None:
    """Where no row says the step, the row has none."""
    assert [step for step, _, _ in told(OPEN_INSTRUCT, TOP, ROWS[3], BOTTOM)] == [None]


def test_a_step_that_is_none() -> None:
    """A step that is no number is not taken for one."""
    nan = [TOP, ROWS[3], STEP.replace("12", "nan"), BOTTOM]
    assert [one.step for one in said(OPEN_INSTRUCT, *nan) if isinstance(one, Told)] == [None]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(ROWS, id="rows-without-a-top"),
        pytest.param([TOP, BOTTOM], id="empty"),
        pytest.param([TOP.replace("Metrics", "Config"), *ROWS, BOTTOM], id="another-box"),
        pytest.param([TOP, "debug  x: 1", BOTTOM], id="no-sides"),
        pytest.param([""], id="nothing"),
    ],
)
def test_what_says_nothing(lines: list[str]) -> None:
    """Rows of other boxes are not read."""
    assert said(OPEN_INSTRUCT, *lines) == []


def test_a_box_without_end_is_bounded() -> None:
    """Rows without end in a box that is never closed are not all kept."""
    rows = (f"│  optim      x{number}: 1.0                                         │" for number in range(5000))
    assert sum(len(values) for _, _, values in told(OPEN_INSTRUCT, TOP, *rows)) < 1000


@pytest.mark.parametrize(
    ("line", "sign"), [(TOP, 3), (BOTTOM, 0), (ROWS[0], 0), ("+-- Metrics --+", 3)], ids=["top", "end", "row", "ascii"]
)
def test_sign(line: str, sign: int) -> None:
    """The title is its own."""
    assert OPEN_INSTRUCT.sign(line) == sign


def test_hostile_lines() -> None:
    """Cut or mangled, nothing raises; long, nothing is slow."""
    assert prefixes_are_read(OPEN_INSTRUCT, BOX) and mangled_are_read(OPEN_INSTRUCT, BOX)
    assert long_lines_are_quick(OPEN_INSTRUCT, BOX)
