"""entropy_log.txt: what ``awk '{print $1,$NF}'`` prints of it."""

import math
import random

import pytest

from gyrostat_agent.sources.logs.formats.entropylog import ENTROPY_LOG, EntropyLogReader
from gyrostat_agent.sources.logs.lines import Lines
from gyrostat_agent.sources.logs.said import Said, Told

NAN = math.nan
ROWS: dict[str, tuple[str, int, float]] = {
    "two": ("120 0.4312", 120, 0.4312),
    "more-between": ("120 0.9 17 0.4312", 120, 0.4312),
    "a-time-between": ("120 2026-01-02 03:04:05 0.4312", 120, 0.4312),
    "tabs": ("120\t0.9\t0.4312", 120, 0.4312),
    "many-blanks": ("  120     0.4312   ", 120, 0.4312),
    "comma": ("120, 0.4312", 120, 0.4312),
    "csv": ("120,0.9,0.4312", 120, 0.4312),
    "colon": ("120: 0.4312", 120, 0.4312),
    "named": ("step=120 tau=1.0 entropy=0.4312", 120, 0.4312),
    "named-colons": ("step:120 entropy:0.4312", 120, 0.4312),
    "named-policy": ("step=120 policy_entropy=0.4312", 120, 0.4312),
    "named-mean": ("global_step=120 entropy_mean=0.4312", 120, 0.4312),
    "nan": ("121 nan", 121, NAN),
    "capital-nan": ("121 NaN", 121, NAN),
    "inf": ("121 inf", 121, math.inf),
    "minus-inf": ("121 -inf", 121, -math.inf),
    "named-nan": ("step=121 entropy=nan", 121, NAN),
    "null": ("121 null", 121, NAN),
    "whole": ("120 2", 120, 2.0),
    "zero": ("0 0.0", 0, 0.0),
    "exponent": ("120 4.3e-05", 120, 4.3e-05),
    "negative": ("120 -0.1", 120, -0.1),
    "step-as-a-float": ("120.0 0.4312", 120, 0.4312),
    "large-step": ("123456789 0.4312", 123456789, 0.4312),
    "words-between": ("120 policy entropy is 0.4312", 120, 0.4312),
    "torchrun": ("[rank0]: 120 0.4312", 120, 0.4312),
}


def said(*lines: str) -> list[Said]:
    """All that a log of these lines says."""
    reader, text = EntropyLogReader(), Lines()
    found = [*text.feed("\n".join(lines).encode()), *text.end()]
    return [*(one for line in found for one in reader.read(line)), *reader.end()]


@pytest.mark.parametrize(("line", "step", "entropy"), ROWS.values(), ids=ROWS)
def test_a_row_is_read(line: str, step: int, entropy: float) -> None:
    """The first field is the step, the last the entropy."""
    assert str(said(line)) == str([Told({"entropy": entropy}, step)])


@pytest.mark.parametrize(
    "line", ["", "120", "step entropy", "# step entropy", "0.5 0.4312", "a 0.4312", "120 high", "-1 0.5", "120 0.4.3"]
)
def test_what_is_no_row(line: str) -> None:
    """Headers, comments, and what lacks a step or a number."""
    assert said(line) == []


def test_half_and_broken_lines() -> None:
    """Any cut and any changed byte raises nothing."""
    random_ = random.Random(7)
    for line, _, _ in ROWS.values():
        for end in range(len(line)):
            said(line[:end], line[end:])
    for _ in range(2000):
        data = bytearray(random_.choice([*ROWS.values()])[0].encode())
        for _ in range(random_.randint(1, 6)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        said(data.decode("utf-8", "replace"))


@pytest.mark.parametrize("piece", ["1", "1 ", " ", "entropy", "entropy=", "step", "a,"])
def test_a_hostile_line_costs_no_more_than_its_length(piece: str) -> None:
    """A long line of what rows are made of is read as fast as any."""
    line = piece * (200_000 // len(piece))
    assert said(line, "1 " + line, line + " 1") is not None


def test_how_it_is_recognised() -> None:
    """Surely where entropy is named; a little by a step and a number that is no count."""
    assert [ENTROPY_LOG.sign(one) for one in ("# step entropy", "step=1 entropy=0.5", "step,loss,entropy")] == [3] * 3
    assert [ENTROPY_LOG.sign(one) for one in ("120 0.43", "120 nan", "120 9 0.43")] == [1] * 3
    assert [ENTROPY_LOG.sign(one) for one in ("120 3 17", "step=1 loss=0.5", "loss 0.5", "")] == [0] * 4
