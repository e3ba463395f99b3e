"""ROLL: JSON behind a prefix of brackets, and the step in it or behind it."""

from typing import Any

import pytest
from rl_log_runs import NAN, read, records, said, segments, survives, told

from gyrostat_agent.sources.logs.formats.roll import ROLL
from gyrostat_agent.sources.logs.said import SKIPPED, TRAIN, Note, Step

PREFIX = "[2026-01-02 03:04:05] [rlvr_pipeline.py (838)] [INFO] [DRIVER 0 / 1][PID 4242] "
ROW = PREFIX + (
    '{"actor/pg_loss": -0.01, "actor/kl_loss": 0.002, "actor/clipfrac": 0.001, "actor_train/grad_norm": 0.21, '
    '"critic/score/mean": 0.44, "critic/entropy/mean": 0.31, "tokens/response_length/mean": 811.2, '
    '"system/step": 12, "system/tps": 1530.0, "time/step_rollout": 41.2}'
)
FINISHED = PREFIX + "pipeline step 12 finished"
EXAMPLES = PREFIX + '[{"prompt": "what is loss?", "response": "loss: 3"}]'
NO_STEP = PREFIX + "Warning: final_response_mask.sum() == 0! Current step will be skipped."


def finished(step: int) -> str:
    """The line that ends a step."""
    return FINISHED.replace("12", str(step))


ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ('{"actor/pg_loss": 0.5}', {"actor/pg_loss": 0.5}),
    "two": ('{"actor/pg_loss": 0.5, "a": 1e-05}', {"actor/pg_loss": 0.5, "a": 1e-5}),
    "no blanks": ('{"actor/pg_loss":0.5,"a":1}', {"actor/pg_loss": 0.5, "a": 1.0}),
    "bare nan": ('{"actor/pg_loss": NaN, "a": 1}', {"actor/pg_loss": NAN, "a": 1.0}),
    "infinity": ('{"actor/pg_loss": Infinity, "a": -Infinity}', {"actor/pg_loss": float("inf"), "a": float("-inf")}),
    "whole": ('{"a": 12}', {"a": 12.0}),
    "too large for a float": ('{"a": ' + "9" * 400 + "}", {"a": float("inf")}),
    "words are left out": ('{"a": 1.0, "b": "word", "c": [1, 2], "d": {"e": 1}}', {"a": 1.0}),
    "truth is left out": ('{"a": 1.0, "b": true}', {"a": 1.0}),
    "escaped": ('{"a\\u002fb": 1.0}', {"a/b": 1.0}),
    "cut in a value": ('{"a": 1.0, "b": 0.2', {"a": 1.0}),
    "cut in a name": ('{"a": 1.0, "b', {"a": 1.0}),
    "cut, with a nan": ('{"a": NaN, "b": 0.2', {"a": NAN}),
    "a dict of the fine-tuning pipeline": (
        "metrics: {'sft_train/loss': 0.5, 'a': nan}",
        {"sft_train/loss": 0.5, "a": NAN},
    ),
    "with a mark": ('{"sft_train/loss@sum": 0.5}', {"sft_train/loss@sum": 0.5}),
    "blank behind": ('{"a": 1.0} ', {"a": 1.0}),
}


@pytest.mark.parametrize(("text", "values"), ROWS.values(), ids=ROWS.keys())
def test_every_spelling_of_a_row_is_read(text: str, values: dict[str, Any]) -> None:
    """What is whole is read, a bare NaN too, which JSON does not know; what is cut is not guessed."""
    assert told(ROLL, PREFIX + text) == [(None, TRAIN, values)]


def test_names_are_canonical() -> None:
    """One rule serves all trainers."""
    [(step, values)] = records(ROLL, f"{ROW}\n{FINISHED}\n")
    assert step == 12
    assert values == {
        "loss": -0.01, "kl": 0.002, "clip_fraction": 0.001, "grad_norm": 0.21, "reward": 0.44, "entropy": 0.31,
        "response_length": 811.2, "throughput": 1530.0, "time/step_rollout": 41.2,
    }  # fmt: skip


def test_a_step_said_behind_its_row() -> None:
    """Rows without a step take that of the line which ends it."""
    rows = [PREFIX + f'{{"actor/pg_loss": {value}}}' for value in ("0.1", "NaN")]
    log = "\n".join((rows[0], finished(20), rows[1], finished(21)))
    assert records(ROLL, log) == [(20, {"loss": 0.1}), (21, {"loss": NAN})]


def test_steps_without_rows() -> None:
    """Rows come every few steps; the steps between are said and hold nothing."""
    log = "\n".join((ROW, FINISHED, finished(13), finished(14), ROW.replace("12", "15"), finished(15)))
    assert [step for step, _ in records(ROLL, log)] == [12, 15]


def test_the_last_step_is_said_twice() -> None:
    """``reached max steps`` repeats the step: nothing is told twice."""
    log = f"{ROW}\n{FINISHED}\n{FINISHED}, reached max steps: 12\n"
    assert [step for step, _ in records(ROLL, log)] == [12]


def test_a_run_that_was_started_anew() -> None:
    """Going back is a new segment and no fault."""
    log = "\n".join((ROW, finished(12), ROW.replace('"system/step": 12', '"system/step": 3'), finished(3)))
    assert segments(ROLL, log) == [(0, 12), (1, 3)]


def test_a_row_without_a_prefix() -> None:
    """Where a launcher took the brackets off, the JSON is enough."""
    assert told(ROLL, '{"actor/pg_loss": 0.5, "system/step": 7}') == [(7, TRAIN, {"actor/pg_loss": 0.5})]


def test_behind_ray() -> None:
    """Ray's prefix and colours are no part of it."""
    assert told(ROLL, f"\x1b[36m(RLVRPipeline pid=99)\x1b[0m {ROW}")[0][0] == 12


def test_two_processes_in_one_line() -> None:
    """Where two wrote into one another, both are read, the torn value is not."""
    torn = PREFIX + '{"a": 1.0, "b": 0.2' + ROW
    assert [(step, len(values)) for step, _, values in told(ROLL, torn)] == [(None, 1), (12, 9)]


def test_validation_stands_apart() -> None:
    """``val_correct`` is told under eval/."""
    log = PREFIX + '{"val_correct/all/mean": 0.4, "val/score": 0.3, "system/step": 7}'
    assert records(ROLL, log)[0][1]["eval/val/score"] == 0.3


def test_the_critic_is_not_the_actor() -> None:
    """A critic's gradient norm and learning rate keep their own names."""
    log = PREFIX + '{"critic_train/grad_norm": 300.0, "critic/lr": 9e-6, "actor/lr": 1e-6, "system/step": 7}'
    assert records(ROLL, log) == [(7, {"critic_train/grad_norm": 300.0, "critic/lr": 9e-6, "learning_rate": 1e-6})]


def test_a_step_that_was_left_out_is_noted() -> None:
    """Nothing was left to train on: said, and no harm was done."""
    [note] = said(ROLL, NO_STEP)
    assert isinstance(note, Note) and note.kind == SKIPPED
    assert any(isinstance(one, Note) for one in read(ROLL, NO_STEP))


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (FINISHED, 12),
        (FINISHED + "...", 12),
        ("pipeline step 3 finished", 3),
        (FINISHED + ", reached max steps: 9", 12),
    ],
)
def test_the_end_of_a_step(line: str, step: int) -> None:
    """Every spelling of it."""
    assert said(ROLL, line) == [Step(step, ends=True)]


@pytest.mark.parametrize(
    "line",
    ["", PREFIX, PREFIX + "pipeline complete!", PREFIX + "epoch 12 finished", EXAMPLES, PREFIX + "{", PREFIX + "{}",
     PREFIX + '{"a": "b"}', "[PID 4242] loss: 3", "[INFO] start", PREFIX + "null", '{"a": "b"}'],
)  # fmt: skip
def test_other_lines_say_nothing(line: str) -> None:
    """Examples of what was drawn, in JSON too, are no numbers; neither are process numbers."""
    assert said(ROLL, line) == []


def test_it_is_recognised() -> None:
    """Its prefix gives it away; those of others do not."""
    assert [ROLL.sign(line) for line in (ROW, FINISHED, EXAMPLES, "pipeline step 3 finished")] == [3, 3, 3, 1]
    others = ("[2026-01-02 03:04:05,678] [INFO] [logging.py:96:log_dist] [Rank 0] step=20", '{"a": 1}', "step:1 - a:2")
    assert [ROLL.sign(line) for line in others] == [0, 0, 0]


def test_nothing_in_a_line_raises() -> None:
    """Cut, damaged and mixed lines cost their line."""
    deep = PREFIX + '{"a": ' + "[" * 5000
    survives(ROLL, (ROW, FINISHED, NO_STEP, EXAMPLES, *(PREFIX + text for text, _ in ROWS.values())))
    assert said(ROLL, deep) == []
