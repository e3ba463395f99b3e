"""Cases: what on-call is told of: each incident, and each critical alert that opens none, from the engine's state.

Called by the loop where somebody is to be told. A case is over by a word of the journal, never by silence: an incident
when it is resolved, or when it was given up and a person has seen to it; an alert when its rule says so.
"""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import NamedTuple

from gyrostat_rules.alerts import FIRING, RESOLVED
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.incidents import HELD, QUIET_STEPS, STOPPED
from gyrostat_rules.pack import Rule, Severity
from gyrostat_rules.silences import when
from gyrostat_rules.state import Action, Alert, Incident, State

_MOST = 256  # cases, and endings that are remembered; a state has 50 incidents and those that are open
_DAY = 86400.0


class Case(NamedTuple):
    """An incident (``id``) or an alert of ``rule`` ('' of what a person asked for, '' as id for an alert alone).

    ``since`` and ``over`` are Unix seconds, ``over`` None while it goes on. ``runbook`` is as the rule has it;
    ``person``: nothing more is done before somebody has come; ``waits`` is the action that wants their word, '' where
    none does. ``done`` says what was done, oldest first.
    """

    id: str
    rule: str
    kind: str
    severity: str
    fault: str
    labels: tuple[tuple[str, str], ...]
    state: str
    since: float
    over: float | None
    onset: int
    summary: str
    why: str
    done: tuple[str, ...] = ()
    person: bool = False
    waits: str = ""
    runbook: str = ""
    silenced: str = ""


class Endings:
    """The newest word on whatever has ended in the last day, by its id: read from the journal, then from each turn."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def hear(self, entries: Iterable[Entry]) -> None:
        """Take in what the engine wrote, oldest first."""
        for entry in entries:
            if entry.kind not in (EntryKind.INCIDENT, EntryKind.ALERT):
                continue
            self.entries.pop(entry.subject, None)
            if entry.state == RESOLVED:
                self.entries[entry.subject] = entry
        for subject in list(self.entries)[:-_MOST]:
            del self.entries[subject]


def cases(state: State, rules: Mapping[str, Rule], endings: Endings, now: float) -> tuple[Case, ...]:
    """All of this run, those that go on first; ``now`` is Unix seconds."""
    recent = {s: e for s, e in endings.entries.items() if now - e.at <= _DAY}
    found = [_of_incident(state, rules, one, _over(state, one, recent, now)) for one in state.incidents
             if one.state != RESOLVED or one.id in recent]  # fmt: skip
    found += [_of_alert(state, rules[a.rule], a) for a in state.alerts.values() if _is_alone(rules, a.rule, a)]
    found += [_ended(rules[e.subject.partition("{")[0]], e) for key, e in recent.items() if key not in state.alerts
              and e.kind == EntryKind.ALERT and _is_alone(rules, key.partition("{")[0])]  # fmt: skip
    return tuple(sorted(found, key=lambda case: (case.over is not None, -case.since))[:_MOST])


def _is_alone(rules: Mapping[str, Rule], name: str, alert: Alert | None = None) -> bool:
    """True for a critical rule that opens no incident, and an alert of it that fires and that none explains."""
    rule = rules.get(name)
    if rule is None or rule.severity != Severity.CRITICAL or rule.incident:
        return False
    return alert is None or (alert.state == FIRING and not alert.muted_by)


def _over(state: State, incident: Incident, recent: Mapping[str, Entry], now: float) -> float | None:
    if incident.state == RESOLVED:
        return recent[incident.id].at
    return now if incident.state == STOPPED and _is_seen_to(state, incident) else None


def _is_seen_to(state: State, incident: Incident) -> bool:
    """Whether a person has seen to what was given up: its alerts are gone, and not because nobody speaks any more.

    Either the run was begun anew or taken back since, by whomever: the agent does nothing more for such an incident.
    Or a person has denied its remedy, so that it is theirs, and steps were clean since.
    """
    own = (state.alerts.get(key) for key in incident.alerts)
    if any(a is not None and a.state == FIRING and a.incident in ("", incident.id) for a in own):
        return False
    trainer = state.trainer()
    if trainer is None:
        return False
    if (incident.segment, incident.life) != (state.segment, trainer.incarnation):
        return True
    denied = any(a.reason.startswith("denied by ") for a in incident.actions)
    return denied and state.examined() - incident.last_bad_step >= QUIET_STEPS


def _of_incident(state: State, rules: Mapping[str, Rule], incident: Incident, over: float | None) -> Case:
    name = incident.leader or (incident.alerts[0].partition("{")[0] if incident.alerts else "")
    rule = rules.get(name, Rule(name, "", None, Severity.CRITICAL if name else Severity.INFO))
    last = incident.actions[-1] if incident.actions else None
    asked = incident.state == HELD and isfinite(incident.held_until)  # what asks nobody is held for ever
    waits = last.id if asked and last and last.verdict == "hold" and not last.number else ""
    by = {a.silenced_by for key in incident.alerts if (a := state.alerts.get(key)) is not None}
    return Case(
        incident.id, name, incident.kind, rule.severity, rule.fault, tuple(sorted(rule.labels.items())), incident.state,
        incident.fired_at, over, incident.onset, _summary(state, rule, incident.alerts), incident.why,
        tuple(did for action in incident.actions if (did := _did(action))),
        asked or (incident.state == STOPPED and over is None), waits, rule.runbook_url,
        _silence(state, by.pop() if len(by) == 1 else ""),
    )  # fmt: skip


def _of_alert(state: State, rule: Rule, alert: Alert) -> Case:
    labels = {**rule.labels, **alert.labels}
    return Case(
        "", rule.alert, rule.joins, rule.severity, rule.fault, tuple(sorted(labels.items())), alert.state,
        alert.since_at, None, alert.onset, _filled(rule.annotations.get("summary", ""), alert), alert.why,
        runbook=rule.runbook_url, silenced=_silence(state, alert.silenced_by),
    )  # fmt: skip


def _ended(rule: Rule, entry: Entry) -> Case:
    """An alert that is no more, by the entry that said so; when it began only that which was sent knows."""
    labels = {str(name): str(value) for name, value in dict(entry.data.get("labels") or {}).items()}
    return Case(
        "", rule.alert, rule.joins, rule.severity, rule.fault, tuple(sorted(labels.items())), RESOLVED, entry.at,
        entry.at, entry.step, str(entry.data.get("summary") or ""), entry.text, runbook=rule.runbook_url,
    )  # fmt: skip


def _summary(state: State, rule: Rule, keys: Iterable[str]) -> str:
    """The leading rule's own sentence, as of the first of its alerts that still stands."""
    own = (state.alerts[key] for key in keys if key in state.alerts and state.alerts[key].rule == rule.alert)
    alert = next(own, None)
    return _filled(rule.annotations.get("summary", ""), alert) if alert else ""


def _filled(sentence: str, alert: Alert) -> str:
    """As the engine fills it: the alert's labels and step, by plain names."""
    for name, value in {**alert.labels, "step": str(alert.last_step)}.items():
        sentence = sentence.replace(f"{{{name}}}", value)
    return sentence


def _did(action: Action) -> str:
    """What came of an action, in words; '' of one that was passed by."""
    what = f": {action.explanation}" if action.explanation else ""
    if action.number or action.outcome:
        came = action.outcome or ("applied, watched" if action.applied_step >= 0 else "sent, not answered yet")
        return f"{action.remedy} ({came}){what}"
    return f"{action.remedy} (waits: {action.reason}){what}" if action.verdict == "hold" else ""


def _silence(state: State, name: str) -> str:
    one = state.silences.get(name)
    return f"until {when(one.ends)}, by {one.by}: {one.reason}" if one else ""
