"""History: what has ended lately, out of the journal: whoever was told that it began is told that it is over."""

from itertools import takewhile

from gyrostat_agent.journal import Journal
from gyrostat_exporters.cases import Endings
from gyrostat_rules.entries import EntryKind

_DAY = 86400.0
_MOST = 2000  # entries looked at; a start must not take long after a stormy day


def endings(journal: Journal, now: float) -> Endings:
    """The newest word on what has ended in the last day; raises JournalError. ``now`` is Unix seconds."""
    newest = journal.entries(kinds=(EntryKind.INCIDENT, EntryKind.ALERT), newest_first=True, limit=_MOST)
    found = Endings()
    found.hear(list(takewhile(lambda entry: now - entry.at <= _DAY, newest))[::-1])
    return found
