"""Table: what a backtest came to, as a person reads it and as a machine does."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from gyrostat_agent.backtest.rates import Rate
from gyrostat_agent.backtest.score import Scored
from gyrostat_agent.backtest.tally import Count, Tally

_HEAD = ("kind", "found", "recall", "95 %", "healthy kept", "precision", "onset error", "lead", "would have done")
_ACTIONS = 3


def lines(found: Tally) -> Iterator[str]:
    """The whole of it, for a terminal."""
    yield from _aligned(
        [_HEAD, *(_row(kind, count) for kind, count in found.kinds.items()), _row("all", found.overall)]
    )
    yield ""
    if found.marked.cases:
        yield f"of those marked `replay` (three points or more): {_recall(found.marked)}"
    yield f"false incidents: {_often(found.incidents, found.steps, found.false_rate)}"
    yield f"warnings on healthy runs: {_often(found.warnings, found.steps, found.warning_rate)}"
    if found.early:
        yield f"incidents of ill runs before their fault began: {found.early}"
    yield from _listed("missed", [one for one in found.cases if one.well is False and not one.case.healthy])
    yield from _listed("false", [one for one in found.cases if one.well is False and one.case.healthy])
    yield from _passed_over([one for one in found.cases if one.well is None])


def as_json(found: Tally) -> dict[str, Any]:
    """The same for machines; what is not known is null."""
    return {
        "overall": {
            **_figures(found.overall), "false_incidents": found.incidents, "warnings": found.warnings,
            "healthy_steps": found.steps, "false_incidents_per_1000": _plain(found.false_rate),
            "warnings_per_1000": _plain(found.warning_rate), "early_incidents": found.early, "runs": found.runs,
            "listed": len(found.cases), "not_replayable": sum(one.well is None for one in found.cases),
            "marked_replay": _figures(found.marked),
        },
        "kinds": {kind: _figures(count) for kind, count in found.kinds.items()},
        "cases": [_case(one) for one in found.cases],
    }  # fmt: skip


def _row(name: str, count: Count) -> tuple[str, ...]:
    often = [f"{action} {times}" for action, times in count.actions.most_common(_ACTIONS)]
    return (
        name, f"{count.found} of {count.faulty}", _share(count.recall), _bounds(count.recall),
        f"{count.healthy - count.failed} of {count.healthy}", _share(count.precision),
        _middle(count.errors), _middle(count.leads), ", ".join(often) or "-",
    )  # fmt: skip


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _share(rate: Rate) -> str:
    return "-" if rate.value is None else f"{rate.value:.0%}"


def _bounds(rate: Rate) -> str:
    return "-" if rate.value is None else f"{rate.low:.0%}-{rate.high:.0%}"


def _middle(values: Sequence[int]) -> str:
    return f"{median(values):g}" if values else "-"


def _recall(count: Count) -> str:
    return f"{count.found} of {count.faulty} found, {count.healthy - count.failed} of {count.healthy} healthy kept"


def _often(count: int, steps: int, rate: Rate) -> str:
    if rate.value is None:
        return "no healthy steps to count them in"
    return f"{count} in {steps} healthy steps: {rate.value:.1f} in 1,000 (95 %: {rate.low:.1f} to {rate.high:.1f})"


def _listed(title: str, cases: Sequence[Scored]) -> Iterator[str]:
    if cases:
        yield ""
        yield f"{title}:"
    for one in cases:
        yield f"  {one.case.id} ({one.case.kind}, {one.case.signal}): {one.why}"


def _passed_over(cases: Sequence[Scored]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for one in cases:
        reasons.setdefault(one.why, []).append(one.case.id)
    if reasons:
        yield ""
        yield f"not replayable, {len(cases)}:"
    for why, ids in reasons.items():
        yield f"  {why}: {', '.join(ids)}"


def _figures(count: Count) -> dict[str, Any]:
    recall, precision = count.recall, count.precision
    return {
        "recall": recall.value, "recall_95": [recall.low, recall.high], "precision": precision.value,
        "precision_95": [precision.low, precision.high], "cases": count.cases, "faulty": count.faulty,
        "found": count.found, "healthy": count.healthy, "failed": count.failed,
        "onset_error": median(count.errors) if count.errors else None,
        "lead": median(count.leads) if count.leads else None, "actions": dict(count.actions),
    }  # fmt: skip


def _plain(rate: Rate) -> dict[str, float | None]:
    known = rate.value is not None
    return {"rate": rate.value, "low": rate.low if known else None, "high": rate.high if known else None}


def _case(one: Scored) -> dict[str, Any]:
    case = one.case
    failed = not one.well if case.healthy and one.well is not None else None
    return {
        "id": case.id, "group": case.run, "file": case.file, "line": case.line, "kind": case.kind,
        "signal": case.signal, "healthy": case.healthy, "replayed": one.well is not None,
        "found": None if case.healthy else one.well, "failed": failed, "why": one.why, "alert": one.alert or None,
        "severity": one.severity or None, "fired_step": one.fired, "alert_onset_step": one.began,
        "onset_step": case.onset, "must_fire_by_step": case.deadline, "onset_error": one.error, "lead": one.lead,
        "action": one.action or None, "opened_by": one.opened or None,
    }  # fmt: skip
