"""Verdict: what a test expects held against what came; each difference with both sides of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gyrostat_agent.ruletest.draft import ANY, ActionDraft, AlertDraft, CaseDraft, ExpectDraft, IncidentDraft
from gyrostat_agent.ruletest.play import Course, Done, Opened, Raised
from gyrostat_agent.ruletest.rows import Row, row_of
from gyrostat_rules.alerts import FIRING


class Difference(NamedTuple):
    """What did not hold: ``about`` alerts, incidents, actions or never; what was expected and what came, in words.

    ``beside``: what else may help to see why: an alert that is pending, or others that fire.
    """

    row: Row
    about: str
    expected: tuple[str, ...]
    got: tuple[str, ...]
    beside: tuple[str, ...] = ()


def differences(case: CaseDraft, course: Course) -> list[Difference]:
    """All that does not hold, in the order of the file."""
    found = list[Difference]()
    for expected in case.expect:
        row = row_of(course.rows, expected.step, expected.segment)
        assert row is not None  # the file's reader has looked
        found += _at(expected, row, course)
    return [*found, *_never(case, course)]


def _at(expected: ExpectDraft, row: Row, course: Course) -> Iterator[Difference]:
    if expected.alerts is not None:
        yield from _alerts(expected.alerts, row, course.looks[row.number])
    if expected.incidents is not None:
        opened = [o for o in course.opened if o.row.number <= row.number]
        missing = [i for i in expected.incidents if not any(_is_opened(i, o) for o in opened)]
        if missing or (opened and not expected.incidents):
            yield Difference(row, "incidents", _all(map(_incident, missing)), _all(map(_opened, opened)))
    if expected.actions is not None:
        done = [d for d in course.done if d.row.number <= row.number]
        lacking = [a for a in expected.actions if not any(_is_done(a, d) for d in done)]
        if lacking or (done and not expected.actions):
            yield Difference(row, "actions", _all(map(_action, lacking)), _all(map(_done, done)))


def _alerts(expected: Sequence[AlertDraft], row: Row, seen: Sequence[Raised]) -> Iterator[Difference]:
    """Of each rule that is named exactly these; none at all where none is named."""
    names = {alert.rule for alert in expected}
    left = [r for r in seen if r.state == FIRING and (r.rule in names or not expected)]
    missing = []
    for alert in expected:
        match = next((r for r in left if _is_raised(alert, r)), None)
        if match is None:
            missing.append(alert)
        else:
            left.remove(match)
    if missing or left:
        beside = [r for r in seen if r.state != FIRING or r.rule not in names] if missing else []
        yield Difference(
            row, "alerts", _all(map(_alert, missing)), _all(map(_raised, left)),
            tuple(f"{r.state}: {_raised(r)}" for r in beside),
        )  # fmt: skip


def _never(case: CaseDraft, course: Course) -> Iterator[Difference]:
    """One for each alert and incident that should never have come, at the step at which it first did."""
    told = set[str]()
    for raised in course.fired:
        if (raised.rule in case.never.alerts or ANY in case.never.alerts) and raised.rule not in told:
            told.add(raised.rule)
            yield Difference(raised.row, "never", (f"no {raised.rule}, at any step",), (_raised(raised),))
    for opened in course.opened:
        if (opened.kind in case.never.incidents or ANY in case.never.incidents) and f"/{opened.kind}" not in told:
            told.add(f"/{opened.kind}")
            yield Difference(opened.row, "never", (f"no incident of kind {opened.kind}",), (_opened(opened),))


# -- what is what -------------------------------------------------------------------------------------


def _is_raised(alert: AlertDraft, raised: Raised) -> bool:
    return (
        alert.rule == raised.rule
        and alert.labels.items() <= dict(raised.labels).items()
        and alert.onset in (None, raised.onset)
        and alert.muted in (None, raised.muted)
    )


def _is_opened(incident: IncidentDraft, opened: Opened) -> bool:
    return incident.kind == opened.kind and incident.onset in (None, opened.onset)


def _is_done(action: ActionDraft, done: Done) -> bool:
    near = (abs(done.knobs.get(n, float("inf")) - v) <= 1e-9 * max(1.0, abs(v)) for n, v in action.knobs.items())
    return action.remedy == done.remedy and all(near)


# -- and in words -------------------------------------------------------------------------------------


def _all(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(lines) or ("none",)


def _alert(alert: AlertDraft) -> str:
    onset = "" if alert.onset is None else f", onset {alert.onset}"
    muted = "" if alert.muted is None else ", muted" if alert.muted else ", not muted"
    return f"{alert.rule}{_labels(alert.labels)}{onset}{muted}"


def _raised(raised: Raised) -> str:
    muted = ", muted" if raised.muted else ""
    return f"{raised.rule}{_labels(raised.labels)}, onset {raised.onset}{muted}: {raised.why}"


def _incident(incident: IncidentDraft) -> str:
    return incident.kind if incident.onset is None else f"{incident.kind}, onset {incident.onset}"


def _opened(opened: Opened) -> str:
    return f"{opened.kind}, onset {opened.onset}, at step {opened.row.step}: {opened.why}"


def _action(action: ActionDraft) -> str:
    return f"{action.remedy}{_labels(action.knobs)}"


def _done(done: Done) -> str:
    return f"{done.remedy}{_labels(done.knobs)}, at step {done.row.step}: {done.why}"


def _labels(labels: Mapping[str, object]) -> str:
    said = (f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in sorted(labels.items()))
    return f"{{{', '.join(said)}}}" if labels else ""
