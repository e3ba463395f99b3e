"""AReaL: boxes of four pairs a row, column by column."""

from typing import Any

import pytest
from rl_log_runs import NAN, records, said, segments, survives, told

from gyrostat_agent.sources.logs.formats.areal import AREAL
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Step

DONE = "(AReaL) 20260102-03:04:05.678 StatsLogger INFO: Epoch 1/5 Step 12/100 Train step 12/500 done."
LEAD = "(AReaL) 20260102-03:04:05.679 StatsLogger INFO: Stats (1/1):"
TOP = "╒══════════════════════════════════╤════════════╤════════════════════════════════╤════════════╕"
BETWEEN = "├──────────────────────────────────┼────────────┼────────────────────────────────┼────────────┤"
LAST = "╘══════════════════════════════════╧════════════╧════════════════════════════════╧════════════╛"
REWARD = "│ ppo_actor/task_reward/avg        │ 4.4140e-01 │ ppo_actor/update/entropy/avg   │ 3.1000e-01 │"
NORM = "│ ppo_actor/update/grad_norm       │ nan        │ ppo_actor/update/lr            │ 1.0000e-06 │"
BOX = "\n".join((DONE, LEAD, "(AReaL) 20260102-03:04:05.680 StatsLogger INFO: ", TOP, REWARD, BETWEEN, NORM, LAST, ""))


def row(*cells: object) -> str:
    """A row of a box."""
    return "│ " + " │ ".join(f"{cell!s:<12}" for cell in cells) + " │"


ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "one pair": (row("a/b", "1.0000e+00"), {"a/b": 1.0}),
    "two pairs": (row("a", "1.0000e+00", "b", "-2.5000e-01"), {"a": 1.0, "b": -0.25}),
    "four pairs": (row("a", 1, "b", 2, "c", 3, "d", 4), {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}),
    "a short last row": (row("a", 1, "b", 2, "", "", "", ""), {"a": 1.0, "b": 2.0}),
    "nan": (row("a", "nan", "b", 2), {"a": NAN, "b": 2.0}),
    "capital nan": (row("a", "NaN"), {"a": NAN}),
    "minus nan": (row("a", "-nan"), {"a": NAN}),
    "inf": (row("a", "inf", "b", "-inf"), {"a": float("inf"), "b": float("-inf")}),
    "none": (row("a", "None"), {"a": NAN}),
    "right-aligned": ("│ a     │  4.4140e-01 │ b │          12 │", {"a": 0.4414, "b": 12.0}),
    "whole": (row("n_seqs", 64), {"n_seqs": 64.0}),
    "large": (row("n_tokens", "1.2345e+06"), {"n_tokens": 1234500.0}),
    "truth": (row("update_successful", "True"), {"update_successful": 1.0}),
    "no number": (row("a", "word", "b", 2), {"b": 2.0}),
    "hyphen in a name": (row("x-y/z", 1), {"x-y/z": 1.0}),
    "many slashes": (
        row("ppo_actor/update/importance_weight/max", 2.5),
        {"ppo_actor/update/importance_weight/max": 2.5},
    ),
    "cut in a value": ("│ a │ 1.0 │ b │ 2.", {"a": 1.0}),
    "cut behind a value": ("│ a │ 1.0 │ b │ 2.5", {"a": 1.0}),
    "cut in a name": ("│ a │ 1.0 │ b", {"a": 1.0}),
    "cut in front": ("0e-01 │ a │ 1.0 │", {"a": 1.0}),
    "coloured": ("│ \x1b[31ma\x1b[0m │ 1.0 │", {"a": 1.0}),
    "behind Ray": ("(RayWorker pid=12) │ a │ 1.0 │", {"a": 1.0}),
}


@pytest.mark.parametrize(("line", "values"), ROWS.values(), ids=ROWS.keys())
def test_every_row_is_read(line: str, values: dict[str, Any]) -> None:
    """A name and its value are neighbours; a cell that nothing closes is not guessed."""
    assert told(AREAL, DONE, line) == [(12, TRAIN, values)]


def test_a_box_is_one_step() -> None:
    """All rows are one record, under canonical names, with the NaN among them."""
    assert records(AREAL, BOX) == [(12, {"reward": 0.4414, "entropy": 0.31, "grad_norm": NAN, "learning_rate": 1e-6})]


@pytest.mark.parametrize("prefix", ["ppo_actor/", "grpo_actor/", ""], ids=["ppo", "grpo", "bare"])
@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("update/actor_loss/avg", "loss"), ("update/grad_norm", "grad_norm"), ("update/entropy/avg", "entropy"),
        ("kl_rewards/avg", "kl"), ("update/approx_kl/avg", "ppo_kl"), ("update/behave_approx_kl/avg", "mismatch_kl"),
        ("task_reward/avg", "reward"), ("update/lr", "learning_rate"), ("update/clip_ratio/avg", "clip_fraction"),
        ("seq_len/avg", "response_length"), ("no_eos_ratios/avg", "truncated_fraction"),
        ("update/update_successful", "step_applied"),
    ],
)  # fmt: skip
def test_names_are_canonical(prefix: str, name: str, canonical: str) -> None:
    """One rule serves all trainers, whatever the experiment calls its actor."""
    assert records(AREAL, f"{DONE}\n{row(prefix + name, 1)}\n") == [(12, {canonical: 1.0})]


@pytest.mark.parametrize("name", ["update/entropy/max", "update/approx_kl/min", "task_reward/max"])
def test_extremes_are_no_means(name: str) -> None:
    """The largest entropy of a batch is not its entropy."""
    assert records(AREAL, f"{DONE}\n{row('ppo_actor/' + name, 1)}\n") == [(12, {"ppo_actor/" + name: 1.0})]


def test_an_update_that_was_left_out() -> None:
    """``update_successful`` 0 is a step that was not applied, so that its NaN did no harm."""
    log = f"{DONE}\n{row('ppo_actor/update/grad_norm', 'nan', 'ppo_actor/update/update_successful', '0.0000e+00')}\n"
    assert records(AREAL, log) == [(12, {"grad_norm": NAN, "step_applied": 0.0})]


def test_several_boxes_of_one_step() -> None:
    """Boxes of one train step are one record; where they differ, what is not finite stays."""
    second = "\n".join((LEAD.replace("1/1", "2/2"), TOP, row("ppo_actor/update/grad_norm", "nan"), LAST))
    log = f"{DONE}\n{row('ppo_actor/update/grad_norm', 0.5)}\n{second}\n"
    assert records(AREAL, log) == [(12, {"grad_norm": NAN})]


def test_steps_follow_one_another() -> None:
    """The line before a box says its step, and one that goes back is a new segment."""
    nxt = BOX.replace("Train step 12/", "Train step 13/")
    assert segments(AREAL, BOX + nxt + BOX) == [(0, 12), (0, 13), (1, 12)]
    assert said(AREAL, DONE) == [Step(12)]


def test_a_box_without_its_line() -> None:
    """A log that begins in a box: the step is counted, and the numbers are there."""
    assert [step for step, _ in records(AREAL, f"{REWARD}\n{NORM}\n{REWARD}\n")] == [0, 1]


def test_evaluation_stands_apart() -> None:
    """What was told of the evaluation's rollouts is no training's."""
    line = row("eval-rollout/task_reward", 0.25, "ppo_actor/task_reward/avg", 0.5)
    assert {(phase, *values) for _, phase, values in told(AREAL, DONE, line)} == {
        (EVAL, "eval-rollout/task_reward"), (TRAIN, "ppo_actor/task_reward/avg"),
    }  # fmt: skip


def test_the_critic_is_not_the_actor() -> None:
    """A critic's gradient norm keeps its own name."""
    line = row("ppo_critic/update/grad_norm", 300.0, "ppo_actor/update/grad_norm", 0.5)
    assert records(AREAL, f"{DONE}\n{line}\n") == [(12, {"ppo_critic/update/grad_norm": 300.0, "grad_norm": 0.5})]


@pytest.mark.parametrize("line", ["", "│", "│ │ │", "││││", TOP, BETWEEN, LAST, LEAD, "Train step", "Train step 3 done",
                                  "Step 12/100", "a │ b"])  # fmt: skip
def test_other_lines_say_nothing(line: str) -> None:
    """Rulers and half rows are no numbers."""
    assert said(AREAL, line) == []


def test_it_is_recognised() -> None:
    """Its lines give it away; a box alone is little; those of others are nothing."""
    assert [AREAL.sign(line) for line in (DONE, LEAD, TOP, BETWEEN)] == [3, 3, 1, 1]
    assert [AREAL.sign(line) for line in ("step:1 - a:2", "{'loss': 1}", "╭── Metrics ──╮")] == [0, 0, 0]


def test_nothing_in_a_line_raises() -> None:
    """Cut, damaged and mixed lines cost their line."""
    survives(AREAL, (DONE, LEAD, TOP, REWARD, NORM, *(line for line, _ in ROWS.values())))
