"""Table: a shadow report as a person reads it and as a machine does."""

from collections.abc import Iterator, Sequence
from typing import Any

from gyrostat_agent.backtest.rates import Rate
from gyrostat_agent.shadow.exported import KIND, VERSION, plain
from gyrostat_agent.shadow.occasion import Occasion, Verdict, saved
from gyrostat_agent.shadow.report import Report, Score

_HEAD = ("rule", "would have acted", "hits", "misses", "undecided", "acted", "hit rate", "at least", "saved", "lost")
_SHOWN = 20


def lines(found: Report) -> Iterator[str]:
    """The whole of it, for a terminal."""
    yield f"interventions: {_often(found.interventions, found.healthy, found.rate)}"
    yield f"not called for: {_often(found.uncalled, found.healthy, found.uncalled_rate)}"
    runs = len(found.evidence.runs)
    yield f"over {runs} run{'' if runs == 1 else 's'} and {found.steps} steps, of which {found.healthy} healthy"
    yield ""
    yield from rows(found.scores)
    if found.pooled:
        yield "hits and misses hold those of backtests"
    yield from _of_backtests(found)
    yield from _differing(found.scores)
    yield from _occasions([one for run in found.evidence.runs for one in run.occasions])
    yield from _passed_over(found)


def rows(scores: Sequence[Score]) -> Iterator[str]:
    """The table alone; a line that says so where there is nothing."""
    if not scores:
        yield "no rule would have acted, in any of it: that is no evidence for one, and none against it"
        return
    table = [_HEAD, *map(_row, scores)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def as_json(found: Report) -> dict[str, Any]:
    """The same for machines; what is not known is null. It can be given as evidence again."""
    return {
        "what": KIND, "version": VERSION,
        "interventions": found.interventions, "not_called_for": found.uncalled, "steps": found.steps,
        "healthy_steps": found.healthy, "interventions_per_1000": _plain(found.rate),
        "not_called_for_per_1000": _plain(found.uncalled_rate), "with_backtests": found.pooled,
        "rules": {one.rule: _figures(one) for one in found.scores},
        "runs": [plain(run) for run in found.evidence.runs],
        "backtests": [{"path": b.path, "name": b.name, "hits": dict(b.hits), "misses": dict(b.misses)}
                      for b in found.evidence.backtests],
        "left_out": [{"path": path, "why": why} for path, why in found.evidence.left_out],
        "counted_once": list(found.evidence.twice),
    }  # fmt: skip


def _row(one: Score) -> tuple[str, ...]:
    known = one.share.value is not None
    return (
        one.rule, str(one.occasions - one.acted), str(one.hits), str(one.misses), str(one.undecided), str(one.acted),
        f"{one.share.value:.0%}" if known else "-", f"{one.share.low:.1%}" if known else "-",
        f"{one.saved} steps" if one.saved_of else "-", f"{one.lost} steps" if one.lost_of else "-",
    )  # fmt: skip


def _often(count: int, steps: int, rate: Rate) -> str:
    if rate.value is None:
        return f"{count}, and no healthy steps to count them in"
    return f"{rate.value:.2f} in 1,000 healthy steps (95 %: {rate.low:.2f} to {rate.high:.2f}; {count} in {steps})"


def _of_backtests(found: Report) -> Iterator[str]:
    tested = [one for one in found.scores if any(one.tested)]
    if not found.evidence.backtests:
        return
    yield ""
    apart = "counted above" if found.pooled else "not counted above; --with-backtests counts them"
    yield f"backtests, {len(found.evidence.backtests)} ({apart}; the corpus that comes with Gyrostat shaped its rules):"
    for one in tested:
        yield f"  {one.rule}: {one.tested[0]} faults found in time, {one.tested[1]} healthy runs called ill"


def _differing(scores: Sequence[Score]) -> Iterator[str]:
    for one in scores:
        if one.ways > 1:
            yield f"{one.rule} has {one.ways} declarations in these runs; gyrostat arm counts those like the run's own"


def _occasions(every: Sequence[Occasion]) -> Iterator[str]:
    if not every:
        return
    yield ""
    for one in every[:_SHOWN]:
        gain = saved(one)
        steps = "" if gain is None else f"; about {gain} steps saved" if gain >= 0 else f"; {-gain} steps lost"
        yield f"step {one.step:>6}  {one.verdict:<9}  {one.rule}, {one.remedy} ({one.incident}): {one.why}{steps}"
    if len(every) > _SHOWN:
        yield f"and {len(every) - _SHOWN} more; --json has them all"


def _passed_over(found: Report) -> Iterator[str]:
    if found.evidence.left_out or found.evidence.twice:
        yield ""
    for path, why in found.evidence.left_out:
        yield f"left out: {path}: {why}"
    for path in found.evidence.twice:
        yield f"counted once: {path} is a copy of another"


def _figures(one: Score) -> dict[str, Any]:
    rate = one.share
    known = rate.value is not None
    return {
        "would_have_acted": one.occasions - one.acted, Verdict.HIT: one.hits, Verdict.MISS: one.misses,
        Verdict.UNDECIDED: one.undecided, Verdict.ACTED: one.acted, "runs": one.runs, "hit_rate": rate.value,
        "hit_rate_95": [rate.low, rate.high] if known else None, "steps_saved": one.saved if one.saved_of else None,
        "saved_of_hits": one.saved_of, "steps_lost": one.lost if one.lost_of else None, "lost_of_misses": one.lost_of,
        "backtests": {"hit": one.tested[0], "miss": one.tested[1]}, "declarations": one.ways,
    }  # fmt: skip


def _plain(rate: Rate) -> dict[str, float | None]:
    known = rate.value is not None
    return {"rate": rate.value, "low": rate.low if known else None, "high": rate.high if known else None}
