"""Alerts: inactive, pending, firing, resolved; and which of them are muted by another (inhibition)."""

from collections.abc import Sequence

from gyrostat_rules.breakage import breaks, reads
from gyrostat_rules.detectors import DETECTORS, Reading
from gyrostat_rules.detectors.looks import told
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Rule, RulePack
from gyrostat_rules.phases import is_in
from gyrostat_rules.state import Alert, State

_MOST_AWAKE = 1024  # kinds of moment; a run has a handful
_AWAKE: dict[tuple[frozenset[str], bool, bool], tuple[RulePack, Sequence[Rule]]] = {}  # a memo: no word of the state

PENDING, FIRING, RESOLVED = "pending", "firing", "resolved"


def detect(state: State, moment: Moment) -> None:
    """Run every rule's detector; a step that is not complete is only looked at for what cannot wait."""
    for rule in _awake(moment.pack, told(state, moment), bool(moment.records), moment.closed):
        _read(rule, state, moment)


def _awake(pack: RulePack, heard: frozenset[str], records: bool, closed: bool) -> Sequence[Rule]:
    """The rules that could say anything of such a moment; the same for nearly every one, so they are remembered."""
    key = heard, records, closed
    known, rules = _AWAKE.get(key, (None, ()))
    if known is not pack:
        rules = tuple(rule for rule in pack.rules if _may_speak(rule, heard, records, closed))
        if len(_AWAKE) >= _MOST_AWAKE:
            _AWAKE.clear()
        _AWAKE[key] = pack, rules
    return rules


def _may_speak(rule: Rule, heard: frozenset[str], records: bool, closed: bool) -> bool:
    detector = DETECTORS[rule.detector]
    if (detector.by_time and records) or not (closed or detector.by_record):
        return False
    if detector.by_record and not records and not detector.in_silence:
        return False
    return detector.series is None or not heard.isdisjoint(detector.series(rule.params))


def _read(rule: Rule, state: State, moment: Moment) -> None:
    """One rule's readings; none of it, where it throws: what was alerting stays."""
    readings: dict[str, Reading] = {}
    try:
        for reading in DETECTORS[rule.detector].read(rule.params, state, moment):
            if _is_meant(rule, reading, state):
                readings[alert_id(rule, reading)] = reading
    except Exception as error:  # a slip in one detector must not end the watch of all others
        breaks(state, moment, rule, error)
        return
    moment.readings.append((rule, readings))
    if rule.alert in state.broken:
        reads(state, moment, rule)


def advance(state: State, moment: Moment) -> None:
    """Move each alert along by what its detector returned."""
    alerting = {alert.rule for alert in state.alerts.values()}  # nearly always nobody
    for rule, readings in moment.readings:
        for key, reading in readings.items():
            _breached(state, moment, rule, key, reading)
        if rule.alert not in alerting:
            continue
        for key in [k for k, a in state.alerts.items() if a.rule == rule.alert and k not in readings and not a.node]:
            if _speaks(rule, state.alerts[key], moment):
                _cleared(state, moment, rule, key)


def inhibit(state: State, moment: Moment) -> None:
    """Mute what a firing alert, or one whose incident is still open, lists as its consequence; then tell."""
    if not state.alerts:
        for key, alert, was in moment.turned:
            tell(moment, key, alert, was)
        return
    explains = {r.alert: r.inhibits for r in moment.pack.rules}
    active = {k: a for k, a in state.alerts.items() if a.state == FIRING}
    for incident in state.incidents:
        if incident.open:
            active.update({k: state.alerts[k] for k in incident.alerts if k in state.alerts})
    muted = {name: key for key, alert in active.items() for name in explains.get(alert.rule, ())}
    for incident in state.incidents:
        if incident.open:
            rules = {k.partition("{")[0] for k in incident.alerts}
            muted.update({name: incident.id for rule in rules for name in explains.get(rule, ())})
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
            rule.alert, dict(reading.labels), "", moment.step, moment.at, onset, moment.step, reading.value, "",
            last_at=moment.at,
        )  # fmt: skip
        state.alerts[key] = alert
    _looked(rule, alert, moment, 1)
    state_now = FIRING if _has_lasted(rule, alert, moment) else PENDING
    if alert.state in (FIRING, state_now) and alert.last_step == moment.step and not moment.records:
        return  # nothing but time has passed: a Tick that changes nothing is not journaled and must leave no trace
    alert.onset = min(alert.onset, reading.onset)
    if alert.last_step != moment.step:  # a step that waits for its ranks is looked at again and again
        alert.last_step, alert.last_at, moment.changed = moment.step, moment.at, True
    alert.value, alert.why, alert.node = reading.value, reading.why, ""
    alert.evidence = dict(reading.evidence)
    if alert.state != FIRING and alert.state != state_now:
        alert.state = state_now
        moment.turned.append((key, alert, state_now))
        moment.changed = True


def _cleared(state: State, moment: Moment, rule: Rule, key: str) -> None:
    alert = state.alerts[key]
    _looked(rule, alert, moment, 0)
    if _holds_on(rule, alert, moment):
        return
    del state.alerts[key]
    moment.changed = True
    if alert.state == FIRING:
        moment.turned.append((key, alert, RESOLVED))


def _is_meant(rule: Rule, reading: Reading, state: State) -> bool:
    """Whether the rule wants to hear of these labels, in this phase of the process."""
    labels = reading.labels
    if any(labels.get(name) not in values for name, values in rule.match.items()):
        return False
    return not rule.when or is_in(rule.when, state, labels.get("role", ""), int(labels.get("rank", "0")))


def _looked(rule: Rule, alert: Alert, moment: Moment, breached: int) -> None:
    """Remember the last looks, where the rule counts them; a step that is looked at twice is one look."""
    if not rule.lasts.of:
        return
    if alert.looks and alert.looks[-1][0] == moment.step:
        alert.looks[-1][1] = max(alert.looks[-1][1], breached)
    else:
        alert.looks = [*alert.looks[1 - rule.lasts.of :], [moment.step, breached]]


def _has_lasted(rule: Rule, alert: Alert, moment: Moment) -> bool:
    if rule.lasts.of:
        return sum(breached for _, breached in alert.looks) >= rule.lasts.steps
    long = moment.step - alert.since_step >= rule.lasts.steps
    return long and moment.at - alert.since_at >= rule.lasts.seconds


def _holds_on(rule: Rule, alert: Alert, moment: Moment) -> bool:
    """True for what is not breached now and stays: enough of its last looks were, or it is kept firing for a while."""
    counted = rule.lasts.of and any(breached for _, breached in alert.looks)
    if counted and (alert.state != FIRING or _has_lasted(rule, alert, moment)):
        return True
    if alert.state != FIRING:
        return False
    if rule.keeps.seconds:
        return moment.at - alert.last_at <= rule.keeps.seconds
    return bool(rule.keeps.steps) and moment.step - alert.last_step <= rule.keeps.steps


def _speaks(rule: Rule, alert: Alert, moment: Moment) -> bool:
    """True where this moment could have shown the alert and did not: the same process gave a newer record."""
    if not DETECTORS[rule.detector].by_record:
        return True
    return any(
        r.role == alert.labels.get("role") and str(r.rank) == alert.labels.get("rank") and r.step > alert.last_step
        for r in moment.records
    )


def tell(moment: Moment, key: str, alert: Alert, state: str) -> None:
    """Write down that an alert has turned, though its rule may be gone, with a pack that this version cannot read."""
    gone = Rule(alert.rule, "", None, "")
    rule = next((r for r in moment.pack.rules if r.alert == alert.rule), gone)
    moment.write(
        EntryKind.ALERT, key, state, f"{alert.rule} {state}: {alert.why}", severity=rule.severity, onset=alert.onset,
        labels={**rule.labels, **alert.labels}, runbook=rule.runbook_url, muted_by=alert.muted_by or None,
        summary=_fill(rule.annotations.get("summary", ""), alert) or None, evidence=alert.evidence,
        description=_fill(rule.annotations.get("description", ""), alert) or None, fault=rule.fault or None,
        silenced_by=alert.silenced_by or None,
    )  # fmt: skip


def _fill(sentence: str, alert: Alert) -> str:
    """A rule's sentence with the alert's labels and step in it; the pack's reader allows plain names alone."""
    for name, value in {**alert.labels, "step": str(alert.last_step)}.items():
        sentence = sentence.replace(f"{{{name}}}", value)
    return sentence
