"""Report: the evidence counted by rule, over all runs, and how often the agent would have intervened at all."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gyrostat_agent.backtest.rates import Rate, wilson
from gyrostat_agent.shadow.bound import share
from gyrostat_agent.shadow.evidence import Evidence
from gyrostat_agent.shadow.occasion import Occasion, Verdict, saved, thrown_away

A_THOUSAND = 1000.0


class Score(NamedTuple):
    """One rule. ``saved``: steps, by estimate, of ``saved_of`` hits whose run died; ``lost``: steps that acting would
    have thrown away in ``lost_of`` misses. ``tested``: hits and misses of backtests, which the others hold as well
    where they were asked for. ``ways``: how many declarations of the rule these are of.
    """

    rule: str
    occasions: int = 0
    hits: int = 0
    misses: int = 0
    undecided: int = 0
    acted: int = 0
    runs: int = 0
    saved: int = 0
    saved_of: int = 0
    lost: int = 0
    lost_of: int = 0
    tested: tuple[int, int] = (0, 0)
    ways: int = 0

    @property
    def share(self) -> Rate:
        """Hits of what is decided, with its bounds."""
        return share(self.hits, self.misses)


class Report(NamedTuple):
    """All of it. ``healthy`` and ``steps`` are of all runs, as are the ``interventions`` and the misses among them."""

    evidence: Evidence
    scores: tuple[Score, ...]
    steps: int
    healthy: int
    interventions: int
    uncalled: int
    pooled: bool = False

    @property
    def rate(self) -> Rate:
        """Interventions in a thousand healthy steps."""
        return wilson(self.interventions, self.healthy).times(A_THOUSAND)

    @property
    def uncalled_rate(self) -> Rate:
        """Those that were not called for, in a thousand healthy steps."""
        return wilson(self.uncalled, self.healthy).times(A_THOUSAND)


def report(
    evidence: Evidence, *, pooled: bool = False, counts: Callable[[Occasion], bool] = lambda one: True
) -> Report:
    """Count it; ``pooled``: with the backtests; ``counts`` leaves occasions out of the rules' scores."""
    runs = evidence.runs
    every = [one for run in runs for one in run.occasions]
    by_rule: dict[str, list[Occasion]] = {}
    for one in every:
        if counts(one):
            by_rule.setdefault(one.rule, []).append(one)
    tested = _tested(evidence)
    scores = [score(rule, by_rule.get(rule, ()), tested.get(rule, (0, 0)), pooled) for rule in {*by_rule, *tested}]
    met = {rule: sum(any(one.rule == rule for one in run.occasions) for run in runs) for rule in by_rule}
    scores = [one._replace(runs=met.get(one.rule, 0)) for one in scores]
    scores.sort(key=lambda one: (-one.occasions, one.rule))
    uncalled = sum(one.verdict == Verdict.MISS for one in every)
    steps, healthy = sum(run.steps for run in runs), sum(run.healthy for run in runs)
    return Report(evidence, tuple(scores), steps, healthy, len(every), uncalled, pooled)


def score(rule: str, found: Iterable[Occasion], tested: tuple[int, int], pooled: bool) -> Score:
    """One rule's score."""
    mine = list(found)
    counted = {word: sum(one.verdict == word for one in mine) for word in (
        Verdict.HIT, Verdict.MISS, Verdict.UNDECIDED, Verdict.ACTED)}  # fmt: skip
    gains = [steps for one in mine if (steps := saved(one)) is not None]
    losses = [steps for one in mine if (steps := thrown_away(one)) is not None]
    more = tested if pooled else (0, 0)
    return Score(
        rule, len(mine), counted[Verdict.HIT] + more[0], counted[Verdict.MISS] + more[1], counted[Verdict.UNDECIDED],
        counted[Verdict.ACTED], 0, sum(gains), len(gains), sum(losses), len(losses), tested,
        len({one.declared for one in mine}),
    )  # fmt: skip


def _tested(evidence: Evidence) -> Mapping[str, tuple[int, int]]:
    rules = {rule for one in evidence.backtests for rule in (*one.hits, *one.misses)}
    return {
        rule: (
            sum(one.hits.get(rule, 0) for one in evidence.backtests),
            sum(one.misses.get(rule, 0) for one in evidence.backtests),
        )
        for rule in rules
    }
