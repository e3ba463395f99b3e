"""Person: whether a run that has ended needs somebody before it is begun again, and the exit status that says so.

Asked at the end of ``gyrostat run`` in mode act, of the journal that the agent has closed.
"""

from collections.abc import Iterable

from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.incidents import HELD, STOPPED

EXIT_PERSON = 79  # behind the last of sysexits.h, before what shells and signals take: no program's own
CRASH = "crash"
_ASKS = (": needs approval", ": waits for a person")  # what a held incident waits for, where it is a word of somebody's


def needed(entries: Iterable[Entry], since: float) -> str:
    """Why a person is needed, or '': the last word on each incident and stop told since then, Unix seconds."""
    last = {e.subject: e for e in entries if e.kind in (EntryKind.INCIDENT, EntryKind.ACTION) and e.at >= since}
    for entry in last.values():
        if entry.kind == EntryKind.ACTION:
            if entry.data.get("remedy") == "stop" and entry.state == "applied":
                return f"{entry.subject}: the run was stopped by the agent"
        elif entry.data.get("incident_kind") == CRASH and entry.state == HELD:
            continue  # a death that is only told of: the command's own status says it, and whoever queues decides
        elif entry.state == STOPPED or (entry.state == HELD and any(words in entry.text for words in _ASKS)):
            return f"{entry.subject} is {entry.state}, {entry.text}"
    return ""
