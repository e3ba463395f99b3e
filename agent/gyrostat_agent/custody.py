"""Custody of the journal: what the agent does for it besides writing turns. Called by the loop.

Heads are noted now and then, for the ledger and the metrics page to carry where whoever rewrites the journal cannot
reach; and what nobody needs any more goes, a little each tick. Tidying ends no pass: what fails is told as a fault, and
tried again. Not promised: the bounds while nothing goes, because the run is distrusted and its journal is evidence.
"""

from collections import deque
from collections.abc import Sequence

from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.journal.retention import Retention
from gyrostat_rules.entries import Entry, EntryKind

EVERY = 256  # turns between two noted heads of a run in which nothing happens: some minutes of a fast trainer's
_NOTED = 8


class Custody:
    """Of one journal, while an agent writes it; for the limits see Retention."""

    def __init__(self, journal: Journal, days: float, most_bytes: int) -> None:
        self._journal = journal
        self.fault = ""
        self.bytes = 0
        self.heads: deque[str] = deque([journal.head()], _NOTED)
        try:
            self._retention: Retention | None = Retention(journal, days, most_bytes)
            self.bytes = self._retention.used()
        except JournalError as error:  # damaged: what is decided is written down all the same
            self._retention, self.fault = None, str(error)

    def see(self, seq: int, entries: Sequence[Entry]) -> bool:
        """Take in a turn that was committed; True where its head was noted, for the ledger to be written."""
        if self._retention is not None:
            self._retention.see(seq, entries)
        happened = any(e.kind in (EntryKind.INCIDENT, EntryKind.ACTION) for e in entries)
        if happened or seq % EVERY == 0:
            self.heads.append(self._journal.head())
        return happened or seq % EVERY == 0

    def save(self, state: bytes, step: int) -> None:
        """Save a snapshot at the newest turn. Raises JournalError."""
        seq = int(self._journal.head().partition(":")[0])
        if self._retention is not None:
            self._retention.save(seq, state, step)
        else:
            self._journal.save_snapshot(seq, state, step)

    def tidy(self, now: float) -> None:
        """Let a little go of what nobody needs any more."""
        if self._retention is None:
            return
        try:
            self._retention.bite(now)
            self.bytes = self._retention.used()
            self.fault = ""
        except JournalError as error:
            self.fault = str(error)
