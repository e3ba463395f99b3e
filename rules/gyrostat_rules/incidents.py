"""Incidents: critical alerts folded by cause. One cause, one incident; the gravest leads."""

from typing import Any

from gyrostat_rules.alerts import FIRING
from gyrostat_rules.causes import family, graver
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Rule
from gyrostat_rules.state import Alert, Incident, State

OPEN, ACTING, PROBATION, RESOLVED, HELD, STOPPED = "open", "acting", "probation", "resolved", "held", "stopped"
_REMEMBERED = 50


def fold(state: State, moment: Moment) -> None:
    """Open incidents for new critical alerts, join those of one cause, refresh the evidence of open ones."""
    rules = {r.alert: r for r in moment.pack.rules}
    for key, alert in state.alerts.items():
        rule = rules.get(alert.rule)
        if rule is None or not rule.incident or alert.state != FIRING or alert.muted_by:
            continue
        incident = _open_in_family(state, rule.incident)
        if incident is None:
            _open(state, moment, key, alert, rule)
        elif key not in incident.alerts:
            _join(moment, incident, key, alert, rule)
    for incident in state.incidents:
        if incident.open:
            _refresh(state, moment, incident)


def move(moment: Moment, incident: Incident, state: str, why: str, **data: Any) -> None:
    """Put an incident into a state and say why; nothing is written where nothing changed."""
    if incident.state == state and incident.why == why:
        return
    incident.state, incident.why = state, why
    if state == RESOLVED:
        incident.resolved_step = moment.step
    moment.write(EntryKind.INCIDENT, incident.id, state, f"{incident.kind}: {why}", incident_kind=incident.kind,
                 onset=incident.onset, fired_step=incident.fired_step, **data)  # fmt: skip


def still_bad(state: State, incident: Incident, since: int) -> bool:
    """True where one of the incident's alerts is firing on a step from ``since`` on."""
    return any(
        (a := state.alerts.get(k)) is not None and a.state == FIRING and a.last_step >= since for k in incident.alerts
    )


def _open_in_family(state: State, kind: str) -> Incident | None:
    return next((i for i in state.incidents if i.open and family(i.kind) == family(kind)), None)


def _open(state: State, moment: Moment, key: str, alert: Alert, rule: Rule) -> None:
    state.incident_count += 1
    incident = Incident(
        f"i{state.incident_count:04d}", rule.incident, "", alert.onset, moment.step, moment.at, [key], alert.last_step,
        segment=state.segment,
    )  # fmt: skip
    state.incidents = [*[i for i in state.incidents[-_REMEMBERED:]], incident]
    _refresh(state, moment, incident)
    move(moment, incident, OPEN, alert.why, alerts=[key], runbook=rule.runbook, evidence=incident.evidence)


def _join(moment: Moment, incident: Incident, key: str, alert: Alert, rule: Rule) -> None:
    """An alert of the same cause joins; one that is graver takes the lead while nothing has been done yet."""
    incident.alerts.append(key)
    incident.onset = min(incident.onset, alert.onset)
    leads = graver(rule.incident, incident.kind) and not incident.actions
    if leads:
        incident.kind, incident.rung = rule.incident, 0
    text = f"{key} {'leads' if leads else 'joins'}: {alert.why}"
    moment.write(
        EntryKind.INCIDENT, incident.id, incident.state, text, incident_kind=incident.kind, onset=incident.onset
    )


def _refresh(state: State, moment: Moment, incident: Incident) -> None:
    for key in incident.alerts:
        alert = state.alerts.get(key)
        if alert is None or alert.last_step < moment.step:
            continue
        incident.last_bad_step = max(incident.last_bad_step, alert.last_step)
        incident.evidence = {**incident.evidence, **alert.evidence}
        incident.update_applied = incident.update_applied or bool(alert.evidence.get("applied"))
