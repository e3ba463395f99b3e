"""Approvals: a person's yes or no to one action of one incident, by its id; it counts once, and for nothing else.

What it came too late for, or was never asked, is refused with the reason: whoever said yes must not go to bed in the
belief that something is being done.
"""

from collections.abc import Mapping
from typing import Any

from gyrostat_rules.guards import judge
from gyrostat_rules.incidents import HELD, STOPPED, move
from gyrostat_rules.moment import Moment
from gyrostat_rules.requests import NOT_DONE, speaker
from gyrostat_rules.silences import silenced, when
from gyrostat_rules.state import Action, Incident, State
from gyrostat_rules.verdicts import DENY, HOLD, Case

_SHOWN = 3  # ids of what does wait, for whoever has mistyped one


def approve(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    """Let the action go ahead, and say what it waits for all the same. A silence is stronger: that is a word too."""
    found = _waiting(state, arguments)
    if isinstance(found, str):
        return found
    incident, action = found
    if (quiet := silenced(state, moment, incident)) is not None:
        return (
            f"{NOT_DONE}{action.id} is silenced until {when(quiet.ends)} by {quiet.by}: {quiet.reason}; "
            f"gyrostat unsilence {quiet.id} ends that, then approve it"
        )
    again, action.approved = " again" if action.approved else "", True
    return f"{speaker(arguments)} approved {action.id}{again}{_still(state, moment, incident, action)}"


def deny(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    """Refuse the action, and with it whatever would be tried next for its incident."""
    found = _waiting(state, arguments)
    if isinstance(found, str):
        return found
    incident, action = found
    by = speaker(arguments)
    action.verdict, action.reason, action.approved = DENY, f"denied by {by}", False
    move(moment, incident, STOPPED, f"{action.remedy} was denied by {by}")
    return f"{by} denied {action.id}; {incident.id} is theirs now"


def _still(state: State, moment: Moment, incident: Incident, action: Action) -> str:
    """What an approved action waits for all the same, in words; '' where it goes ahead now."""
    book = moment.pack.playbook(incident.kind)
    verdict = judge(Case(state, moment, book, incident, action)) if book else None
    return f"; it still waits: {verdict.reason}" if verdict is not None and verdict.word == HOLD else ""


def _waiting(state: State, arguments: Mapping[str, Any]) -> tuple[Incident, Action] | str:
    """The action that waits for a word, with its incident; else why none does."""
    wanted = arguments.get("action")
    for incident in state.incidents:
        for action in incident.actions:
            if action.id == wanted:
                why = _past(incident, action)
                return _none(wanted, why) if why else (incident, action)
    waits = [i.actions[-1].id for i in state.incidents if i.state == HELD and i.actions and not _past(i, i.actions[-1])]
    return _none(wanted, f"there is none of that name; {_named(waits)}")


def _none(wanted: Any, why: str) -> str:
    return f"{NOT_DONE}no action {str(wanted)[:80]!r} waits for a word: {why}"


def _named(waits: list[str]) -> str:
    return f"what waits: {', '.join(waits[-_SHOWN:])}" if waits else "nothing waits now"


def _past(incident: Incident, action: Action) -> str:
    """Why it is too late for a word on this action, or ''."""
    if action.number:
        came = f", and came to be {action.outcome}" if action.outcome else ""
        return f"it was sent at step {action.sent_step} already, as directive {action.number}{came}"
    if action.outcome:
        return f"it is a {action.remedy} and needs no word"
    if action.verdict == DENY and action.reason.startswith("denied by"):
        return f"it was {action.reason}"
    if not incident.open:
        over = "the wait for it ended" if incident.state == STOPPED else "its incident is over"
        return f"{over}: {incident.id} is {incident.state}: {incident.why}"
    if action.verdict == DENY:
        return f"it was passed by: {action.reason}{_instead(incident)}"
    return f"another is in its place{_instead(incident)}" if action is not incident.actions[-1] else ""


def _instead(incident: Incident) -> str:
    """What the incident waits for now, where that is another action of it."""
    last = incident.actions[-1]
    return f"; {last.id} waits now" if last.verdict == HOLD and not last.number else ""
