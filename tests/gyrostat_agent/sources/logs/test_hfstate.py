"""trainer_state.json: rows over many lines or in one, whatever stands around them."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from gyrostat_agent.sources.logs.formats.hfstate import HF_STATE, HfStateReader
from gyrostat_agent.sources.logs.lines import Lines
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Told

STATE = Path(__file__).parent / "data" / "trl-trainer_state.json"
NAN = math.nan
BASE = {"epoch": 0.5, "step": 7}
ROWS: dict[str, tuple[dict[str, Any], dict[str, float] | None]] = {
    "plain": ({"loss": 0.5, **BASE}, {"loss": 0.5}),
    "bare-nan": ({"loss": NAN, **BASE}, {"loss": NAN}),
    "infinity": ({"grad_norm": math.inf, **BASE}, {"grad_norm": math.inf}),
    "minus-infinity": ({"reward": -math.inf, **BASE}, {"reward": -math.inf}),
    "null": ({"kl": None, "loss": 1.0, **BASE}, {"kl": NAN, "loss": 1.0}),
    "integer": ({"loss": 1, **BASE}, {"loss": 1.0}),
    "negative": ({"loss": -0.25, **BASE}, {"loss": -0.25}),
    "exponent": ({"learning_rate": 9.9e-07, **BASE}, {"learning_rate": 9.9e-07}),
    "large": ({"num_tokens": 4.1e21, **BASE}, {"num_tokens": 4.1e21}),
    "zero": ({"kl": 0.0, **BASE}, {"kl": 0.0}),
    "slashes": ({"completions/mean_length": 14.25, **BASE}, {"completions/mean_length": 14.25}),
    "blanks-in-a-name": ({"my own": 2.0, **BASE}, {"my own": 2.0}),
    "hidden-nan": ({"loss": 0.0, "grad_norm": NAN, **BASE}, {"loss": NAN, "grad_norm": NAN}),
    "text": ({"note": "a, b", "loss": 1.0, **BASE}, {"loss": 1.0}),
    "text-that-looks-like-a-row": ({"note": "{x: 1}", "loss": 1.0, **BASE}, {"loss": 1.0}),
    "list": ({"sizes": [1, 2], "loss": 1.0, **BASE}, {"loss": 1.0}),
    "dict": ({"more": {"loss": 9.0}, "loss": 1.0, **BASE}, {"loss": 1.0}),
    "truth": ({"done": True, "loss": 1.0, **BASE}, {"loss": 1.0, "done": 1.0}),
    "string-number": ({"loss": "0.5", **BASE}, {}),
    "evaluation": ({"eval_loss": 1.5, **BASE}, {"eval_loss": 1.5}),
    "aux-loss": ({"aux_loss": 2.0, **BASE}, {"aux_loss": 2.0}),
    "step-time-is-no-step": ({"step_time": 0.5, **BASE}, {"step_time": 0.5}),
    "closing": ({"train_runtime": 9.0, "train_loss": 0.1, **BASE}, None),
    "no-step": ({"loss": 0.5}, None),
    "negative-step": ({"loss": 0.5, "step": -1}, None),
    "endless-step": ({"loss": 0.5, "step": math.inf}, None),
    "only-a-step": ({"step": 7}, None),
    "empty": ({}, None),
}


def told(text: str) -> list[Told]:
    """All rows of a file with this text."""
    reader, lines = HfStateReader(), Lines()
    found = [*lines.feed(text.encode()), *lines.end()]
    said = [*(one for line in found for one in reader.read(line)), *reader.end()]
    assert all(isinstance(one, Told) for one in said)
    return [one for one in said if isinstance(one, Told)]


def state(*rows: dict[str, Any], indent: int | None = 2) -> str:
    """A whole file, as the Trainer writes it."""
    around = {"best_metric": None, "epoch": 3.0, "global_step": 99, "log_history": [*rows], "logging_steps": 1}
    whole = {**around, "stateful_callbacks": {"a": {"loss": 3, "step": 1}}}
    return json.dumps(whole, indent=indent, sort_keys=True) + "\n"


@pytest.mark.parametrize("indent", [2, None], ids=["lines", "one-line"])
@pytest.mark.parametrize(("row", "expected"), ROWS.values(), ids=ROWS)
def test_a_row_is_read(row: dict[str, Any], expected: dict[str, float] | None, indent: int | None) -> None:
    """Its numbers and its step, however the file is laid out; what stands around the history is none of it."""
    found = told(state(row, indent=indent))
    assert [one.step for one in found] == ([] if expected is None else [7])
    if expected is not None:
        values = {name: value for name, value in found[0].values.items() if name != "epoch"}
        assert str(dict(sorted(values.items()))) == str(dict(sorted(expected.items())))


def test_phases_and_steps() -> None:
    """Rows come in their order, evaluations as such."""
    rows = told(state({"loss": 1.0, "step": 10}, {"eval_loss": 2.0, "step": 10}, {"loss": 0.9, "step": 20}))
    assert [(row.step, row.phase) for row in rows] == [(10, TRAIN), (10, EVAL), (20, TRAIN)]


def test_true_output() -> None:
    """Of a true state each row is told as a JSON parser reads it."""
    rows = told(STATE.read_text())
    assert [{**row.values, "step": row.step} for row in rows] == json.loads(STATE.read_text())["log_history"]


def test_a_file_that_is_cut_short() -> None:
    """Rows that are whole are told; of the one that is not, nothing, for a step cut short is another step."""
    text = state({"loss": 1.0, "step": 10}, {"loss": 0.9, "step": 20})
    assert [row.step for row in told(text[: text.index("20") + 1])] == [10]


def test_no_state_at_all() -> None:
    """Other JSON, and none, says nothing."""
    assert told('{"loss": 1, "step": 2}\n[{"loss": 1, "step": 2}]\nlog_history\n') == []


def test_broken_files() -> None:
    """Any cut and any changed byte raises nothing."""
    text, random_ = state(*(row for row, _ in ROWS.values())), random.Random(7)
    for end in range(0, len(text), 3):
        told(text[:end])
    for _ in range(300):
        data = bytearray(text.encode())
        for _ in range(random_.randint(1, 9)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        told(data.decode("utf-8", "replace"))


@pytest.mark.parametrize("piece", ['"', '"a":', "{", "[", "]", '{"step":1,"loss":2},', '"log_history": ['])
def test_a_hostile_line_costs_no_more_than_its_length(piece: str) -> None:
    """A long line of what a history is made of is read as fast as any."""
    told('{"log_history": [' + piece * (200_000 // len(piece)))


def test_how_it_is_recognised() -> None:
    """By its history, by its first lines, and by its name."""
    assert HF_STATE.sign('  "log_history": [') == 3 and HF_STATE.sign(state(indent=None)) == 3
    assert HF_STATE.sign('  "best_metric": null,') == 1 and HF_STATE.sign('{"loss": 1}') == 0
    assert HF_STATE.files == ("trainer_state*.json",)
