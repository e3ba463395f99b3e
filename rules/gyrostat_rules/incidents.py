"""Incidents: critical alerts folded by cause. One cause, one incident; the gravest leads."""

from typing import Any

from gyrostat_rules.alerts import FIRING
from gyrostat_rules.causes import DIVERGENCE, family, graver
from gyrostat_rules.circumstances import circumstances
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.evidence import joined
from gyrostat_rules.moment import Moment
from gyrostat_rules.news import news
from gyrostat_rules.pack import Rule
from gyrostat_rules.state import Alert, Incident, State

OPEN, ACTING, PROBATION, RESOLVED, HELD, STOPPED = "open", "acting", "probation", "resolved", "held", "stopped"
_REMEMBERED = 50
_JUST_BEFORE = 10  # steps from a warning to the trouble that it may explain, and from a cause to its consequences
QUIET_STEPS = 20  # clean steps after which a cause that nobody mended is over


def fold(state: State, moment: Moment) -> None:
    """Open incidents for new critical alerts, join those of one cause, refresh the evidence of open ones."""
    if not state.alerts and not any(i.open or i.state == STOPPED for i in state.incidents):
        return
    rules = {r.alert: r for r in moment.pack.rules}
    for key, alert in state.alerts.items():
        rule = rules.get(alert.rule)
        if rule is None or not rule.incident or alert.state != FIRING or alert.muted_by or _is_told(state, alert):
            continue
        incident = _of_this_cause(state, rule.incident, alert, moment.step)
        if incident is not None and incident.state == PROBATION and (why := news(state, incident, alert, rules)):
            incident.ousted, incident = why, None
        if incident is None:
            incident = _open(state, moment, key, alert, rule)
        elif key not in incident.alerts:
            _join(moment, incident, key, alert, rule)
        alert.incident = incident.id
    for incident in state.incidents:
        if incident.open and not incident.actions:
            _explain(state, moment, incident, rules)
        if incident.open or incident.state == STOPPED:
            _refresh(state, moment, incident, rules)


def move(moment: Moment, incident: Incident, state: str, why: str, **data: Any) -> None:
    """Put an incident into a state and say why; nothing is written where nothing changed."""
    if incident.state == state and incident.why == why:
        return
    _stop_the_clock(moment, incident, state)
    incident.state, incident.why = state, why
    if state == RESOLVED:
        incident.resolved_step = moment.step
    moment.write(EntryKind.INCIDENT, incident.id, state, f"{incident.kind}: {why}", incident_kind=incident.kind,
                 onset=incident.onset, fired_step=incident.fired_step, **data)  # fmt: skip


def _stop_the_clock(moment: Moment, incident: Incident, to: str) -> None:
    """Note for the bill when the incident is held, for how long, and when something was first done."""
    meter = incident.meter
    if incident.state == HELD != to and meter.held_at:
        meter.held, meter.held_at = meter.held + max(0.0, moment.at - meter.held_at), 0.0
    elif to == HELD != incident.state:
        meter.held_at = moment.at
    if to == ACTING and meter.acted_told < 0:
        meter.acted_at, meter.acted_step, meter.acted_told = moment.at, moment.step, max(0, meter.told)
        meter.waited = meter.held


def still_bad(state: State, moment: Moment, incident: Incident, since: int) -> bool:
    """True where one of the incident's own alerts is firing on a step from ``since`` on.

    Its consequences do not count: what is left of them when it is over opens an incident of its own.
    """
    rules = {r.alert: r for r in moment.pack.rules}
    return any(
        (a := state.alerts.get(k)) is not None
        and a.state == FIRING
        and a.last_step >= since
        and a.incident in ("", incident.id)
        and _is_own(incident, a, rules)
        for k in incident.alerts
    )


def undone_at(incident: Incident) -> int:
    """The step at which its newest undo was answered, -1 where nothing was taken back."""
    return max((a.applied_step for a in incident.actions if a.remedy == "undo"), default=-1)


def _is_own(incident: Incident, alert: Alert, rules: dict[str, Rule]) -> bool:
    """True for an alert of the kind that the incident opened as, or of the one that leads it."""
    rule = rules.get(alert.rule)
    return rule is None or (rule.incident or rule.joins) in (incident.first_kind, incident.kind)


def _explain(state: State, moment: Moment, incident: Incident, rules: dict[str, Rule]) -> None:
    """Let a warning that began just before the trouble join it, and lead where it is graver: it may be the cause."""
    for key, alert in state.alerts.items():
        rule = rules.get(alert.rule)
        if rule is None or not rule.joins or alert.state != FIRING or key in incident.alerts:
            continue
        if family(rule.joins) == family(incident.kind) and 0 <= incident.onset - alert.onset <= _JUST_BEFORE:
            _join(moment, incident, key, alert, rule)
            incident.evidence = joined(incident.evidence, alert.evidence)
            alert.incident = incident.id


def _is_told(state: State, alert: Alert) -> bool:
    """True where an incident has it, unless that one was mended and the alert, never cleared, is bad again."""
    incident = next((i for i in reversed(state.incidents) if i.id == alert.incident), None)
    if incident is None:
        return bool(alert.incident)
    return incident.state != RESOLVED or alert.last_step <= incident.resolved_step


def _of_this_cause(state: State, kind: str, alert: Alert, step: int) -> Incident | None:
    """The incident that this belongs to: an open one, or one that was stopped and whose cause goes on.

    Where nothing more may be tried, the same cause coming back is no news: a
    person has been asked already.
    """
    for incident in reversed(state.incidents):
        if family(incident.kind) != family(kind):
            continue
        if kind not in (incident.kind, incident.first_kind) and _stands_apart(incident, kind, alert):
            continue
        here = (incident.segment, incident.life) == (state.segment, _life(state))
        goes_on = here and step - incident.last_bad_step < QUIET_STEPS  # a rank may be ahead of the others
        if incident.open or (incident.state == STOPPED and goes_on):
            return incident
    return None


def _stands_apart(incident: Incident, kind: str, alert: Alert) -> bool:
    """True for another kind that is no consequence of this incident, though they are of one family.

    Entropy that falls long after a NaN is no work of the NaN, and no remedy must be judged by it. And what is graver
    than an incident that cannot be led any more needs one of its own: in that one nobody would act on it.
    """
    settled = bool(incident.actions) or incident.state == STOPPED
    late = alert.since_step - incident.fired_step > _JUST_BEFORE
    return late or (settled and graver(kind, incident.kind))


def _open(state: State, moment: Moment, key: str, alert: Alert, rule: Rule) -> Incident:
    state.incident_count += 1
    fired = _first_fired(state, alert, rule)
    incident = Incident(
        f"i{state.incident_count:04d}", rule.incident, "", alert.onset, fired, moment.at, [key], alert.last_step,
        segment=state.segment, update_applied=rule.incident == DIVERGENCE, first_kind=rule.incident, leader=rule.alert,
    )  # fmt: skip
    old = [i for i in state.incidents[:-_REMEMBERED] if i.open]  # what is not over is never forgotten
    state.incidents = [*old, *state.incidents[-_REMEMBERED:], incident]
    _refresh(state, moment, incident, {alert.rule: rule})
    move(
        moment, incident, OPEN, alert.why, alerts=[key], runbook=rule.runbook_url, evidence=incident.evidence,
    )  # fmt: skip
    if said := circumstances(state, incident.kind):
        moment.write(EntryKind.INCIDENT, incident.id, OPEN, said, incident_kind=incident.kind, onset=incident.onset,
                     fired_step=incident.fired_step, circumstances=True)  # fmt: skip
    return incident


def _first_fired(state: State, alert: Alert, rule: Rule) -> int:
    """The step at which this cause first fired: a warning that turns out to be its consequence fired before it."""
    same = (a for a in state.alerts.values() if a.rule in rule.inhibits and a.labels == alert.labels)
    return min([alert.since_step, *(a.since_step for a in same if a.state == FIRING)])


def _join(moment: Moment, incident: Incident, key: str, alert: Alert, rule: Rule) -> None:
    """An alert of the same cause joins; one that is graver takes the lead while nothing has been done yet."""
    incident.alerts.append(key)
    kind = rule.incident or rule.joins
    incident.update_applied = incident.update_applied or kind == DIVERGENCE
    leads = graver(kind, incident.kind) and not incident.actions
    if leads:
        incident.kind, incident.rung, incident.leader = kind, 0, rule.alert
    if leads or kind in (incident.kind, incident.first_kind):  # a consequence's own onset may lie anywhere
        incident.onset = min(incident.onset, alert.onset)
    text = f"{key} {'leads' if leads else 'joins'}: {alert.why}"
    moment.write(
        EntryKind.INCIDENT, incident.id, incident.state, text, incident_kind=incident.kind, onset=incident.onset
    )


def _refresh(state: State, moment: Moment, incident: Incident, rules: dict[str, Rule]) -> None:
    for key in incident.alerts:
        alert = state.alerts.get(key)
        if alert is None or alert.last_step < moment.step or alert.incident not in ("", incident.id):
            continue
        if not _is_own(incident, alert, rules):
            continue
        incident.last_bad_step = max(incident.last_bad_step, alert.last_step)
        incident.onset = min(incident.onset, alert.onset)
        incident.segment, incident.life = state.segment, _life(state)
        incident.evidence = joined(incident.evidence, alert.evidence)
        incident.update_applied = incident.update_applied or bool(alert.evidence.get("applied"))


def _life(state: State) -> str:
    trainer = state.trainer()
    return trainer.incarnation if trainer else ""
