"""Sight: what one rule looked at in one moment of a run, what it measured there, and what became of its alerts."""

from collections.abc import Mapping
from typing import NamedTuple

from gyrostat_rules.detectors.gauge import Gauge
from gyrostat_rules.lasting import Lasting
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Rule
from gyrostat_rules.phases import is_in
from gyrostat_rules.state import Alert, State

Key = tuple[tuple[tuple[str, str], ...], str, str, str]  # labels, series, side and measure: one gauge, step by step


class Standing(NamedTuple):
    """An alert as it stood: ``lasted`` of what must last, in words; ``muted_by``: an alert or an incident, or ''."""

    state: str
    since: int
    onset: int
    muted_by: str
    incident: str
    why: str
    lasted: str


class Sight(NamedTuple):
    """One look. ``breached``: the alerts whose readings were breached then; ``standing``: all that stood after it.

    ``out``: why the rule does not speak of a gauge's labels then (its ``match``, its ``when``), by the gauge's key.
    """

    step: int
    segment: int
    at: float
    gauges: Mapping[Key, Gauge]
    breached: frozenset[str]
    standing: Mapping[str, Standing]
    out: Mapping[Key, str]


def key_of(gauge: Gauge) -> Key:
    """What stays the same of a gauge from step to step."""
    return tuple(sorted(gauge.labels.items())), gauge.series, gauge.side, gauge.measure


def seen(rule: Rule, state: State, moment: Moment, gauges: Mapping[Key, Gauge], breached: frozenset[str]) -> Sight:
    """The sight of a moment in which the rule was asked."""
    out = {key: why for key, gauge in gauges.items() if (why := _unmeant(rule, gauge, state))}
    return Sight(moment.step, state.segment, moment.at, gauges, breached, standing(rule, state, moment), out)


def standing(rule: Rule, state: State, moment: Moment) -> dict[str, Standing]:
    """The rule's alerts as they stand."""
    return {
        key: Standing(a.state, a.since_step, a.onset, a.muted_by, a.incident, a.why, _lasted(rule.lasts, a, moment))
        for key, a in state.alerts.items()
        if a.rule == rule.alert
    }


def _lasted(lasts: Lasting, alert: Alert, moment: Moment) -> str:
    if lasts.of:
        return f"{lasts.steps} of {lasts.of} looks are needed: {sum(look[1] for look in alert.looks)} were breached"
    if lasts.seconds:
        return f"{lasts.seconds:g} s are needed: {moment.at - alert.since_at:.0f} s have passed"
    return f"{lasts.steps} steps are needed: {moment.step - alert.since_step} have passed" if lasts.steps else ""


def _unmeant(rule: Rule, gauge: Gauge, state: State) -> str:
    """Why the rule does not want to hear of these labels, or ''; a label that the gauge has not is let be."""
    for name, values in rule.match.items():
        if gauge.labels.get(name, values[0]) not in values:
            return f"the rule is for {name} {' or '.join(values)} alone"
    if rule.when and not is_in(rule.when, state, gauge.labels.get("role", ""), int(gauge.labels.get("rank", "0"))):
        return f"the rule speaks {' or '.join(rule.when)} alone, and the process was elsewhere"
    return ""
