"""Tally: the judged cases of a corpus counted, of each kind and over all.

Lines of one run that tell the same kind of fault are one case here: else a run would weigh as much as it has series.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gyrostat_agent.backtest.rates import Rate, wilson
from gyrostat_agent.backtest.score import Scored, Verdict

A_THOUSAND = 1000.0


@dataclass(slots=True)
class Count:
    """Cases of one kind, or all: one a run and kind. ``errors`` and ``leads`` are of those that were found."""

    faulty: int = 0
    found: int = 0
    healthy: int = 0
    failed: int = 0
    errors: list[int] = field(default_factory=list)
    leads: list[int] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)

    @property
    def cases(self) -> int:
        """How many were replayed."""
        return self.faulty + self.healthy

    @property
    def recall(self) -> Rate:
        """Of the faulty ones, those found."""
        return wilson(self.found, self.faulty)

    @property
    def precision(self) -> Rate:
        """Of the cases that were called ill, those that are."""
        return wilson(self.found, self.found + self.failed)

    def add(self, one: Scored) -> None:
        """Count a case that was replayed."""
        if one.case.healthy:
            self.healthy += 1
            self.failed += not one.well
            return
        self.faulty += 1
        if one.well:
            self.found += 1
            self.actions[one.action] += 1
            self.errors += [one.error] if one.error is not None else []
            self.leads += [one.lead] if one.lead is not None else []


@dataclass(slots=True)
class Tally:
    """All that a backtest came to. ``marked``: the lines whose corpus says that they are fit to test a detector;
    ``cases``: every line, judged.

    ``steps``: of healthy runs; ``incidents`` and ``warnings`` that they gave; ``early``: incidents of ill runs before
    their fault began.
    """

    overall: Count = field(default_factory=Count)
    marked: Count = field(default_factory=Count)
    kinds: dict[str, Count] = field(default_factory=dict)
    cases: list[Scored] = field(default_factory=list)
    runs: int = 0
    steps: int = 0
    incidents: int = 0
    warnings: int = 0
    early: int = 0

    @property
    def false_rate(self) -> Rate:
        """False incidents in a thousand healthy steps."""
        return wilson(self.incidents, self.steps).times(A_THOUSAND)

    @property
    def warning_rate(self) -> Rate:
        """Warnings in a thousand healthy steps."""
        return wilson(self.warnings, self.steps).times(A_THOUSAND)


def tally(verdicts: Iterable[Verdict]) -> Tally:
    """Count the runs as they come."""
    whole = Tally()
    for verdict in verdicts:
        add(whole, verdict)
    whole.kinds = dict(sorted(whole.kinds.items()))
    return whole


def add(whole: Tally, verdict: Verdict) -> None:
    """Count one run."""
    whole.runs += 1
    whole.steps += verdict.steps
    whole.incidents += verdict.incidents
    whole.warnings += verdict.warnings
    whole.early += verdict.early
    whole.cases += verdict.cases
    for one in _distinct(verdict.cases):
        whole.overall.add(one)
        whole.kinds.setdefault(one.case.kind, Count()).add(one)
    for one in _distinct([line for line in verdict.cases if line.case.marked]):
        whole.marked.add(one)


def _distinct(lines: Iterable[Scored]) -> list[Scored]:
    """One for all lines of a run that tell one kind and were replayed: the worst, for a fault that one line shows in
    time and another does not was not told in time.
    """
    worst: dict[tuple[str, bool], Scored] = {}
    for one in lines:
        key = (one.case.kind, one.case.healthy)
        if one.well is not None and (key not in worst or _worth(one) < _worth(worst[key])):
            worst[key] = one
    return list(worst.values())


def _worth(one: Scored) -> tuple[bool, float, float]:
    """Found or kept, then the steps left, then how well the onset was told."""
    return bool(one.well), math.inf if one.lead is None else one.lead, -(one.error or 0)
