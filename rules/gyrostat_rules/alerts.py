"""Alerts: inactive, pending, firing, resolved; and which of them are muted by another (inhibition)."""

from gyrostat_rules.detectors import DETECTORS, Reading
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Rule
from gyrostat_rules.state import Alert, State

PENDING, FIRING, RESOLVED = "pending", "firing", "resolved"


def detect(state: State, moment: Moment) -> None:
    """Run every rule's detector; a step that is not complete is only looked at for what cannot wait."""
    for rule in moment.pack.rules:
        detector = DETECTORS[rule.detector]
        if detector.by_time and moment.records:
            continue
        if moment.closed or detector.by_record:
            readings = {alert_id(rule, r): r for r in detector.read(rule.params, state, moment)}
            moment.readings.append((rule, readings))


def advance(state: State, moment: Moment) -> None:
    """Move each alert along by what its detector returned."""
    for rule, readings in moment.readings:
        for key, reading in readings.items():
            _breached(state, moment, rule, key, reading)
        for key in [k for k, a in state.alerts.items() if a.rule == rule.alert and k not in readings]:
            if _speaks(rule, state.alerts[key], moment):
                _cleared(state, moment, rule, key)


def inhibit(state: State, moment: Moment) -> None:
    """Mute what a firing alert, or one whose incident is still open, lists as its consequence; then tell."""
    consequences = {r.alert: r.consequences for r in moment.pack.rules}
    active = {k: a for k, a in state.alerts.items() if a.state == FIRING}
    for incident in state.incidents:
        if incident.open:
            active.update({k: state.alerts[k] for k in incident.alerts if k in state.alerts})
    muted = {name: key for key, alert in active.items() for name in consequences.get(alert.rule, ())}
    for incident in state.incidents:
        if incident.open:
            rules = {k.partition("{")[0] for k in incident.alerts}
            muted.update({name: incident.id for rule in rules for name in consequences.get(rule, ())})
    for alert in state.alerts.values():
        by = muted.get(alert.rule, "")
        moment.changed = moment.changed or by != alert.muted_by
        alert.muted_by = by
    for key, alert, was in moment.turned:
        tell(moment, key, alert, was)


def alert_id(rule: Rule, reading: Reading) -> str:
    """``NonFiniteValue{rank=0,role=trainer}``."""
    return f"{rule.alert}{{{','.join(f'{k}={v}' for k, v in sorted(reading.labels.items()))}}}"


def _breached(state: State, moment: Moment, rule: Rule, key: str, reading: Reading) -> None:
    alert = state.alerts.get(key)
    if alert is None:
        onset = reading.onset
        alert = Alert(
            rule.alert, dict(reading.labels), "", moment.step, moment.at, onset, moment.step, reading.value, ""
        )
        state.alerts[key] = alert
    state_now = FIRING if moment.step - alert.since_step >= rule.for_steps else PENDING
    if alert.state in (FIRING, state_now) and alert.last_step == moment.step and not moment.records:
        return  # nothing but time has passed: a Tick that changes nothing is not journaled and must leave no trace
    alert.onset = min(alert.onset, reading.onset)
    moment.changed = moment.changed or alert.last_step != moment.step
    alert.last_step, alert.value, alert.why = moment.step, reading.value, reading.why
    alert.evidence = dict(reading.evidence)
    if alert.state != FIRING and alert.state != state_now:
        alert.state = state_now
        moment.turned.append((key, alert, state_now))
        moment.changed = True


def _cleared(state: State, moment: Moment, rule: Rule, key: str) -> None:
    alert = state.alerts[key]
    if rule.keep_firing_for and alert.state == FIRING and moment.step - alert.last_step <= rule.keep_firing_for:
        return
    del state.alerts[key]
    moment.changed = True
    if alert.state == FIRING:
        moment.turned.append((key, alert, RESOLVED))


def _speaks(rule: Rule, alert: Alert, moment: Moment) -> bool:
    """True where this moment could have shown the alert and did not: the same process gave a newer record."""
    if not DETECTORS[rule.detector].by_record:
        return True
    return any(
        r.role == alert.labels.get("role") and str(r.rank) == alert.labels.get("rank") and r.step > alert.last_step
        for r in moment.records
    )


def tell(moment: Moment, key: str, alert: Alert, state: str) -> None:
    """Write down that an alert has turned; its rule must be in the moment's pack."""
    rule = next(r for r in moment.pack.rules if r.alert == alert.rule)
    moment.write(
        EntryKind.ALERT, key, state, f"{alert.rule} {state}: {alert.why}", severity=rule.severity, onset=alert.onset,
        labels={**rule.labels, **alert.labels}, runbook=rule.runbook, muted_by=alert.muted_by or None,
        summary=_fill(rule.summary, alert) or None, evidence=alert.evidence,
    )  # fmt: skip


def _fill(summary: str, alert: Alert) -> str:
    """The rule's sentence with the alert's labels and step in it; the pack's reader allows plain names alone."""
    for name, value in {**alert.labels, "step": str(alert.last_step)}.items():
        summary = summary.replace(f"{{{name}}}", value)
    return summary
