"""Behind: how much of the journal is newer than an entry, for those who tell it elsewhere bit by bit."""

from gyrostat_agent.journal.codec import key
from gyrostat_agent.journal.store import Journal

_PLACE = "(SELECT seq, place FROM entries WHERE id = ? ORDER BY seq DESC, place DESC LIMIT 1)"
_BEHIND = f"SELECT count(*) FROM entries WHERE (seq, place) > {_PLACE}"  # noqa: S608  it is our own text
_BEFORE = f"SELECT id FROM entries WHERE (seq, place) < {_PLACE} ORDER BY seq DESC, place DESC LIMIT 1 OFFSET ?"  # noqa: S608
_ALL = "SELECT count(*) FROM entries"
_KNOWN = "SELECT 1 FROM entries WHERE id = ? LIMIT 1"


def behind(journal: Journal, after: str) -> int:
    """How many entries are newer than the entry ``after``, all where that is ''; raises JournalError."""
    rows = journal.read(_BEHIND, key(after)) if after else journal.read(_ALL)
    return int(rows[0][0])


def knows(journal: Journal, entry: str) -> bool:
    """Whether there is an entry of that id; raises JournalError."""
    return bool(journal.read(_KNOWN, key(entry)))


def before(journal: Journal, entry: str, many: int = 1) -> str:
    """The id of the entry that is ``many`` before ``entry``, '' where there are not so many; raises JournalError."""
    rows = journal.read(_BEFORE, key(entry), many - 1)
    return str(rows[0][0]) if rows else ""
