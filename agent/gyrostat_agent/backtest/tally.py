"""Tally: the judged cases of a corpus counted, of each kind and over all."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gyrostat_agent.backtest.rates import Rate, wilson
from gyrostat_agent.backtest.score import Scored, Verdict

A_THOUSAND = 1000.0


@dataclass(slots=True)
class Count:
    """Cases of one kind, or all. ``errors`` and ``leads`` are of those that were found."""

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
    """All that a backtest came to. ``marked``: those whose corpus says that they are fit to test a detector.

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
        whole.runs += 1
        whole.steps += verdict.steps
        whole.incidents += verdict.incidents
        whole.warnings += verdict.warnings
        whole.early += verdict.early
        for one in verdict.cases:
            whole.cases.append(one)
            if one.well is not None:
                for count in _counts(whole, one):
                    count.add(one)
    whole.kinds = dict(sorted(whole.kinds.items()))
    return whole


def _counts(whole: Tally, one: Scored) -> list[Count]:
    marked = [whole.marked] if one.case.marked else []
    return [whole.overall, whole.kinds.setdefault(one.case.kind, Count()), *marked]
