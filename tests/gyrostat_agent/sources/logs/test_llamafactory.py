"""LLaMA-Factory's trainer_log.jsonl: each row to the right numbers and step."""

import math
import random

import pytest

from gyrostat_agent.sources.logs.formats.llamafactory import LLAMAFACTORY, LlamaFactoryReader
from gyrostat_agent.sources.logs.lines import Lines
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Said, Told

NAN = math.nan
TRAINED = (
    '{"current_steps": 10, "total_steps": 500, "loss": 1.2345, "lr": 9.9e-06, "epoch": 0.02, "percentage": 2.0, '
    '"elapsed_time": "0:01:02", "remaining_time": "0:50:00", "throughput": 5120.1, "total_tokens": 317440}'
)
EVALUATED = (
    '{"current_steps": 20, "total_steps": 500, "eval_loss": 1.2, "epoch": 0.04, "percentage": 4.0, '
    '"elapsed_time": "0:02:04", "remaining_time": "0:49:00"}'
)
DONE = (
    '{"current_steps": 500, "total_steps": 500, "epoch": 1.0, "percentage": 100.0, "elapsed_time": "1 day, 0:01:02", '
    '"remaining_time": "0:00:00"}'
)
HEAD = '{"current_steps": 10, "total_steps": 500, '


def said(*lines: str) -> list[Said]:
    """All that a log of these lines says."""
    reader, text = LlamaFactoryReader(), Lines()
    found = [*text.feed("\n".join(lines).encode()), *text.end()]
    return [*(one for line in found for one in reader.read(line)), *reader.end()]


ROWS: dict[str, tuple[str, int | None, dict[str, float]]] = {
    "trained": (TRAINED, 10, {"loss": 1.2345, "lr": 9.9e-06, "throughput": 5120.1, "total_tokens": 317440.0}),
    "epoch": (TRAINED, 10, {"epoch": 0.02}),
    "evaluated": (EVALUATED, 20, {"eval_loss": 1.2}),
    "bare-nan": (HEAD + '"loss": NaN, "epoch": 0.1}', 10, {"loss": NAN}),
    "infinity": (HEAD + '"loss": Infinity, "epoch": 0.1}', 10, {"loss": math.inf}),
    "minus-infinity": (HEAD + '"loss": -Infinity, "epoch": 0.1}', 10, {"loss": -math.inf}),
    "null": (HEAD + '"loss": null, "epoch": 0.1}', 10, {"loss": NAN}),
    "negative": (HEAD + '"loss": -0.5, "epoch": 0.1}', 10, {"loss": -0.5}),
    "preference": (HEAD + '"loss": 0.69, "accuracy": 0.5, "lr": 0.0, "epoch": 0.1}', 10, {"accuracy": 0.5, "lr": 0.0}),
    "reward": (HEAD + '"loss": 0.1, "reward": 1.5, "epoch": 0.1}', 10, {"reward": 1.5}),
    "quoted": (HEAD + '"loss": "0.25", "epoch": "0.1"}', 10, {"loss": 0.25, "epoch": 0.1}),
    "integer": (HEAD + '"loss": 1, "epoch": 0}', 10, {"loss": 1.0}),
    "small": (HEAD + '"lr": 1e-12, "loss": 0.1}', 10, {"lr": 1e-12}),
    "step-0": ('{"current_steps": 0, "total_steps": 5, "loss": 3.5}', 0, {"loss": 3.5}),
    "large-step": ('{"current_steps": 1234567, "total_steps": 2000000, "loss": 3.5}', 1234567, {"loss": 3.5}),
    "cut-in-a-value": (HEAD + '"loss": 1.5, "lr": 9.9e', 10, {"loss": 1.5}),
    "cut-in-a-name": (HEAD + '"loss": 1.5, "l', 10, {"loss": 1.5}),
    "cut-in-a-time": (HEAD + '"loss": 1.5, "elapsed_time": "0:0', 10, {"loss": 1.5}),
    "beginning-cut-off": ('al_steps": 500, "loss": NaN, "epoch": 0.1}', None, {"loss": NAN}),
    "tight": ('{"current_steps":10,"total_steps":500,"loss": 1.5}', 10, {"loss": 1.5}),
    "launcher": (f"node-1: {TRAINED}", 10, {"loss": 1.2345}),
    "torchrun": (f"[rank0]: {TRAINED}", 10, {"loss": 1.2345}),
    "vram": (HEAD + '"loss": 1.5, "vram_allocated": 10.5, "vram_reserved": 12}', 10, {"vram_reserved": 12.0}),
    "unknown-name": (HEAD + '"loss": 1.5, "my/own": 2.5}', 10, {"my/own": 2.5}),
    "predicted": (HEAD + '"predict_loss": 1.5, "epoch": 1.0}', 10, {"predict_loss": 1.5}),
}


@pytest.mark.parametrize(("line", "step", "expected"), ROWS.values(), ids=ROWS)
def test_a_row_is_read(line: str, step: int | None, expected: dict[str, float]) -> None:
    """Its step and numbers; how far the run is is no metric."""
    [row] = said(line)
    assert isinstance(row, Told) and row.step == step
    assert {n: str(row.values[n]) for n in expected} == {n: str(v) for n, v in expected.items()}
    assert not {"current_steps", "total_steps", "percentage", "elapsed_time", "remaining_time"} & row.values.keys()


@pytest.mark.parametrize(
    "line", [DONE, "{}", '{"loss": 1}', "[INFO|2026-01-02 03:04:05] llamafactory.x:143 >> a: b", ""]
)
def test_what_is_no_row(line: str) -> None:
    """The row that ends a run holds no numbers, and a message is none."""
    assert said(line) == []


def test_phases() -> None:
    """Evaluations stand apart."""
    assert [one.phase for one in said(TRAINED, EVALUATED) if isinstance(one, Told)] == [TRAIN, EVAL]


def test_two_rows_in_a_line() -> None:
    """Two processes wrote at once: both are read."""
    assert [one.step for one in said(TRAINED[:80] + EVALUATED) if isinstance(one, Told)] == [10, 20]


def test_a_hidden_nan() -> None:
    """No gradient is told here: a loss that is 0 after one of two is a NaN that was filtered."""
    rows = said(HEAD + '"loss": 2.1}', HEAD + '"loss": 0.0}')
    assert isinstance(rows[1], Told) and math.isnan(rows[1].values["loss"])


def test_names() -> None:
    """The trainer's names under the canonical ones."""
    names = Names(LLAMAFACTORY.aliases)
    read = [names.of(name).canonical for name in ("loss", "lr", "throughput", "epoch", "reward")]
    assert read == ["loss", "learning_rate", "throughput", "", "reward"]
    assert names.of("eval_loss").phase == EVAL


def test_half_and_broken_lines() -> None:
    """Any cut and any changed byte raises nothing."""
    random_ = random.Random(7)
    for line, _, _ in ROWS.values():
        for end in range(len(line)):
            said(line[:end], line[end:])
    for _ in range(2000):
        data = bytearray(random_.choice([TRAINED, EVALUATED, DONE]).encode())
        for _ in range(random_.randint(1, 6)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        said(data.decode("utf-8", "replace"))


@pytest.mark.parametrize("piece", ['{"', '"a": ', '"loss": 1,', HEAD])
def test_a_hostile_line_costs_no_more_than_its_length(piece: str) -> None:
    """A long line of what a row is made of is read as fast as any."""
    assert said(HEAD + piece * (200_000 // len(piece))) is not None


def test_how_it_is_recognised() -> None:
    """By the row's first name."""
    assert LLAMAFACTORY.sign(TRAINED) == LLAMAFACTORY.sign(EVALUATED) == 3
    assert LLAMAFACTORY.sign('{"loss": 1.0, "step": 3}') == 0
