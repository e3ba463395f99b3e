"""News: another cause that strikes while the remedy of the first is being watched.

Taken for the first one's return it would undo a remedy that held, and be answered from where that one's ladder has come
to. So it is an incident of its own, from the mildest rung on. Only what names its cause is news: an item that the
trainer names where the first incident had none to name, a knob that has been turned since. All else is a return.
"""

from gyrostat_rules.evidence import suspects
from gyrostat_rules.pack import Rule
from gyrostat_rules.state import Alert, Incident, State

KNOBS = "knobs"


def news(state: State, incident: Incident, alert: Alert, rules: dict[str, Rule]) -> str:
    """What tells that an alert is no return of an incident in probation, in words; '' where nothing does."""
    if items := [] if suspects(incident.evidence) else suspects(alert.evidence):
        return f"item {items[-1]} is at fault, and none was before"
    if incident.kind == KNOBS:
        return ""
    since = incident.actions[-1].applied_step
    turned = (a for k, a in state.alerts.items() if _is_turned(a, rules) and k not in incident.alerts)
    return next((a.why for a in turned if a.onset > since > 0), "")


def _is_turned(alert: Alert, rules: dict[str, Rule]) -> bool:
    rule = rules.get(alert.rule)
    return rule is not None and rule.joins == KNOBS and alert.state == "firing"
