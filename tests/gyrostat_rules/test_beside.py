"""Ranks beside each other: the one that is slow is named, and where all are slow none is."""

from collections.abc import Sequence
from typing import Any

import pytest

from gyrostat.wire import Hello, Record
from gyrostat_rules.detectors import Reading
from gyrostat_rules.detectors.beside import Beside, beside
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Batch, Pack
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import RulePack

PACK = """
pack: beside
groups:
  - name: one
    rules:
      - {alert: Slow, detector: beside, with: {series: [busy_time]}, severity: warning}
playbooks: []
"""


def readings(columns: Sequence[Sequence[float]], role: str = "trainer", **how: Any) -> dict[int, list[Reading]]:
    """What is breached at each step, of ranks that tell a column each."""
    engine, found = Engine(), dict[int, list[Reading]]()
    engine.feed(Pack(0.0, "digest", PACK))  # of many ranks only that is kept by which a rule compares them
    engine.feed(Batch(0.0, tuple(Hello("run", "trainer", r, len(columns), "a") for r in range(len(columns)))))
    for step, row in enumerate(zip(*columns, strict=True)):
        records = tuple(
            Record(role, rank, "a", 0, step, step, float(step), {"busy_time": value}) for rank, value in enumerate(row)
        )
        engine.feed(Batch(float(step), records))
        moment = Moment(float(step), 1, RulePack("none", (), ()), records, step)
        found[step] = list(beside(Beside(("busy_time",), **how), engine.state, moment))
    return {step: those for step, those in found.items() if those}


def slow(at: int, count: int = 20, by: float = 2.0) -> list[float]:
    """A rank that takes longer from a step on."""
    return [1.0 if step < at else by for step in range(count)]


@pytest.mark.parametrize("ranks", [2, 3, 4, 64])
def test_the_slow_rank_is_named_within_three_steps(ranks: int) -> None:
    """Whether there are two of them or many."""
    found = readings([*[[1.0] * 20] * (ranks - 1), slow(10)])
    assert min(found) == 12
    assert all([reading.labels["rank"] for reading in those] == [str(ranks - 1)] for those in found.values())
    assert {reading.onset for reading in found[12]} == {10}


def test_two_slow_ranks_of_five_are_both_named() -> None:
    """The median of the others is that of the fast ones."""
    found = readings([*[[1.0] * 20] * 3, slow(10), slow(10)])
    assert [reading.labels["rank"] for reading in found[12]] == ["3", "4"]


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param([slow(10)] * 4, id="all of them"),
        pytest.param([[1.0] * 20] * 3 + [[1.0, 1.0, 1.0, 1.0, 9.0] * 4], id="one step in five"),
        pytest.param([[1.0] * 20] * 3 + [[1.4] * 20], id="a little"),
        pytest.param([[0.0] * 20] * 3 + [[1.0] * 20], id="the others tell nothing"),
        pytest.param([slow(10)], id="one alone"),
    ],
)
def test_who_is_no_straggler(columns: list[list[float]]) -> None:
    """Longer steps of all, a pause, a share more of the work."""
    assert not readings(columns)


def test_a_rank_that_does_not_tell_is_not_compared() -> None:
    """Values that are not finite are another detector's."""
    assert not readings([[1.0] * 20, [1.0] * 20, [float("nan")] * 20, [1.0] * 20])
