"""Coverage: in which states of incident, ladder and guard somebody has died."""

import re
from collections.abc import Sequence

from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.state import State

# A guard's reason tells which guard gave it.
_REASONS = {
    "silence": r"^silenced until ",
    "mode": r"^mode is |^paused by|^observe only",
    "capability": r"^nobody is there",
    "blind": r"^blind:",
    "last_words": r"^what it told last may still come$",
    "approval": r"^needs approval",
    "blast_radius": r"^more than \d+ (steps|knobs|ranks) would be ",
    "cooldown": r"cooldown is \d+ steps$",
    "rung_budget": r"this rung's budget is spent$",
    "budget": r": (the|its) budget is spent$",
    "ceiling": r"^\d+ \w+ incidents in ",
    "standstill": r"the run gets no further$",
    "busy": r"^incident i\d+ is in |^a checkpoint is being written|^weights are on their way",
}


def facts_of(state: State, entries: Sequence[Entry]) -> set[tuple[str, str]]:
    """``(what, which)`` of everything that an incident, an action or a verdict shows just now."""
    found = set()
    for incident in state.incidents:
        found.add(("incident", incident.state))
        for action in incident.actions:
            found.add(("remedy", action.remedy))
            found.add(("rung", f"{incident.kind} {action.rung + 1}"))
            if action.outcome:
                found.add(("outcome", action.outcome))
            if guard := guard_of(action.reason):
                found.add(("guard", f"{guard} {action.verdict}"))
    for entry in entries:
        if entry.kind == EntryKind.INCIDENT:
            found.add(("incident", entry.state))
    return found


def guard_of(reason: str) -> str:
    """The guard whose words these are, or ''."""
    return next((name for name, words in _REASONS.items() if re.search(words, reason)), "")
