"""Arming: rules that act in mode shadow, one by one, on the evidence or for the reason that is written beside each.

Asked by whoever needs to know whether the agent may act: on an incident, or at all. In mode observe it never may. What
is on its way when a rule is disarmed is finished, and taken back where it does not hold: only new actions are held.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from gyrostat_rules import snapshot
from gyrostat_rules.causes import REQUEST
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Verb
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Playbook, Rule, RulePack
from gyrostat_rules.remedies import REMEDIES
from gyrostat_rules.requests import NOT_DONE, speaker
from gyrostat_rules.state import Incident, Settings, State

ACT, SHADOW, OBSERVE = "act", "shadow", "observe"
_SAID, _NAMED = 300, 80  # characters of evidence or reason, and of a name, that are kept: they stand in every ledger


def may_act(settings: Settings) -> bool:
    """True where there is anything at all that the agent may act on by itself."""
    return settings.mode == ACT or (settings.mode == SHADOW and bool(settings.armed))


def acts_on(settings: Settings, incident: Incident) -> bool:
    """True where the mode lets the agent act on this incident: in shadow, where the rule that leads it is armed."""
    return settings.mode == ACT or (settings.mode == SHADOW and leader(incident) in settings.armed)


def is_led(settings: Settings, incident: Incident) -> bool:
    """True where the mode, or a person who asked for it, stands behind what is done about this incident."""
    return incident.kind == REQUEST or acts_on(settings, incident)


def leader(incident: Incident) -> str:
    """The rule whose alert leads the incident: the one that opened it, or a graver one that took the lead."""
    return incident.leader or next((key.partition("{")[0] for key in incident.alerts), "")


def unarmable(pack: RulePack, name: str) -> str:
    """Why no rule of that name can be armed, in words; '' where one can."""
    rule, book = _declared(pack, name)
    if rule is None:
        return f"pack {pack.name} has no rule {name[:80]!r}: gyrostat rules list shows them"
    if not (kind := rule.incident or rule.joins):
        return f"{name} opens no incident: there is nothing that it could act on"
    if book is None:
        return f"{name} opens {kind} incidents, and there is no playbook for those"
    if not any(REMEDIES[rung.remedy].capability for rung in book.rungs):
        return f"{name} opens {kind} incidents, whose playbook only asks a person: that it does unarmed"
    return ""


def arm(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    """Let a rule act in mode shadow; says why not where it cannot."""
    name, by = str(arguments.get("rule", "")), speaker(arguments)
    evidence, reason = (" ".join(str(arguments.get(key, "")).split())[:_SAID] for key in ("evidence", "reason"))
    if state.settings.mode == OBSERVE:
        return f"{NOT_DONE}mode is observe: in it nothing acts; start the agent with --mode shadow"
    if why := unarmable(moment.pack, name):
        return f"{NOT_DONE}{why}"
    if not evidence and not reason:
        return f"{NOT_DONE}{name} is armed on evidence, or for a reason that is given: this is neither"
    words = "; ".join(filter(None, (evidence, reason and f"reason: {reason}", f"by {by}")))
    state.settings.armed = {**state.settings.armed, name: words}
    state.settings.armed_as = {**state.settings.armed_as, name: _mark(moment.pack, name)}
    idle = "; mode is act: it acts armed or not" if state.settings.mode == ACT else ""
    return f"{by} armed {name}: {'; '.join(filter(None, (evidence, reason)))}{idle}"


def disarm(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    """Hold what the rule has not begun yet; what is under way is finished."""
    name, by = str(arguments.get("rule", "")), speaker(arguments)
    if name not in state.settings.armed:
        armed = ", ".join(sorted(state.settings.armed)) or "none"
        return f"{NOT_DONE}{name[:80]!r} is not armed; armed now: {armed}"
    _drop(state.settings, name)
    idle = "; mode is act: it acts armed or not" if state.settings.mode == ACT else ""
    return f"{by} disarmed {name}{idle}"


def lapse(state: State, moment: Moment, old: RulePack, new: RulePack) -> None:
    """Disarm what another pack declares otherwise: the evidence was of the rule as it was."""
    for name in [n for n in state.settings.armed if substance(old, n) != substance(new, n)]:
        _lapsed(state, moment, new, name)


def taken_up(state: State, moment: Moment) -> None:
    """The same for what a ledger says is armed: the pod that it was armed in may have had another pack."""
    settings = state.settings
    for name in [n for n in settings.armed if settings.armed_as.get(n) != _mark(moment.pack, n)]:
        _lapsed(state, moment, moment.pack, name)


def _lapsed(state: State, moment: Moment, pack: RulePack, name: str) -> None:
    named = name[:_NAMED]
    text = f"{named} is disarmed: pack {pack.name} declares it otherwise than the one it was armed under"
    _drop(state.settings, name)
    moment.write(EntryKind.COMMAND, Verb.DISARM, "said", text, arguments={"rule": named, "by": "the agent"})


def _drop(settings: Settings, name: str) -> None:
    settings.armed = {rule: words for rule, words in settings.armed.items() if rule != name}
    settings.armed_as = {rule: mark for rule, mark in settings.armed_as.items() if rule != name}


def _mark(pack: RulePack, name: str) -> str:
    """A few letters that stand for a rule's substance where the pack itself is not at hand."""
    return hashlib.sha256(snapshot.dump(substance(pack, name))).hexdigest()[:16]


def substance(pack: RulePack, name: str) -> tuple[Rule, Playbook] | None:
    """What evidence about a rule is evidence of: when it alerts and what is done then, without its words for people."""
    rule, book = _declared(pack, name)
    if rule is None or book is None:
        return None
    return rule._replace(group="", labels={}, annotations={}, runbook_url=""), book


def _declared(pack: RulePack, name: str) -> tuple[Rule | None, Playbook | None]:
    rule = next((rule for rule in pack.rules if rule.alert == name), None)
    kind = rule.incident or rule.joins if rule else ""
    return rule, pack.playbook(kind) if kind else None
