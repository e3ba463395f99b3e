"""Course: what a run came to so far, folded from its records and, beside a sidecar, from its entries.

A step that comes again was undone: the run went back. What was undone is kept apart, for it was paid for.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from gyrostat.wire import Record
from gyrostat_agent.demo.cases import Case, Deed, note
from gyrostat_agent.demo.sources import News
from gyrostat_agent.demo.story import Line, tell
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.experts import balance

_LAST = 10


class Point(NamedTuple):
    """One step: ``reward`` (0 to 1), ``entropy`` (nats), ``gradient`` (norm), NaN where it was not said.

    ``balance`` is rho_eff (0 to 1) of each layer and loop, ``dead`` the share of experts that get next to nothing;
    ``applied`` is false where the guard skipped the step; ``values``: all that was told.
    """

    at: float
    step: int
    reward: float
    entropy: float
    gradient: float
    balance: tuple[float, ...]
    applied: bool
    dead: tuple[float, ...]
    values: Mapping[str, float]

    @property
    def finite(self) -> bool:
        """True where all three numbers are."""
        return math.isfinite(self.reward + self.entropy + self.gradient)


@dataclass(slots=True)
class Course:
    """``points`` stand, one a step in order; ``undone`` are the stretches that the run went back from."""

    points: list[Point] = field(default_factory=list)
    undone: list[list[Point]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    cases: dict[str, Case] = field(default_factory=dict)
    checkpoint: int = -1
    began: float = 0.0

    def take(self, news: Iterable[News]) -> list[Point | Line]:
        """Take in what was read; returns what there is to show of it, in order."""
        shown: list[Point | Line] = []
        for one in news:
            if isinstance(one, Entry):
                shown += self._take_entry(one)
            elif one.role == "trainer" and one.rank == 0:
                shown.append(self._take_record(one))
        return shown

    @property
    def told(self) -> list[Point]:
        """Every step as it was told, those that were undone among them, in order."""
        return sorted((*chain.from_iterable(self.undone), *self.points), key=attrgetter("at"))

    @property
    def deeds(self) -> list[Deed]:
        """All that was done or passed by, in order."""
        return [deed for case in self.cases.values() for deed in case.deeds.values()]

    @property
    def step(self) -> int:
        """The last step that stands, 0 before the first."""
        return self.points[-1].step if self.points else 0

    @property
    def lost(self) -> int:
        """Steps of work undone by going back, and steps skipped."""
        return sum(map(len, self.undone)) + sum(not p.applied for p in self.points)

    @property
    def reward(self) -> float:
        """Mean reward of the last ten steps that stand, NaN where there is none."""
        last = [p.reward for p in self.points[-_LAST:]]
        return sum(last) / len(last) if last else math.nan

    def _take_record(self, record: Record) -> Point:
        point = _point(record)
        self.began = self.began or point.at
        kept = [p for p in self.points if p.step < point.step]
        if len(kept) < len(self.points):
            self.undone.append(self.points[len(kept) :])
        self.points = [*kept, point]
        return point

    def _take_entry(self, entry: Entry) -> list[Line]:
        note(self.cases, entry)
        self.began = self.began or entry.at
        if entry.kind == EntryKind.CHECKPOINT and entry.state == "verified":
            self.checkpoint = entry.step
        line = tell(entry)
        self.lines += [line] if line else []
        return [line] if line else []


def _point(record: Record) -> Point:
    values = record.values
    loads = [balance(counts) for _, _, counts in record.load.rows()] if record.load else []
    return Point(
        record.time,
        record.step,
        values.get("reward", math.nan),
        values.get("entropy", math.nan),
        values.get("grad_norm", math.nan),
        tuple(load.rho_eff for load in loads),
        values.get("step_applied", 1.0) == 1.0,
        tuple(load.dead_share for load in loads),
        values,
    )
