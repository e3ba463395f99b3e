"""Where the demonstration reads a run from, like any outsider: its record files, or the sidecar's journal.

The sidecar deletes the record files that it has committed, so a run beside one is read from its journal; a run
without one leaves its record files lying. Neither reader takes a lock that a writer would wait for.
"""

from pathlib import Path
from typing import Protocol

from gyrostat.wire import Record, RunDirectory
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.sources.recordfiles import RecordFiles
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Batch

News = Record | Entry


class Source(Protocol):
    """A run, as it can be followed."""

    def news(self) -> list[News]:
        """What has come since the last call, in order."""


class RecordSource:
    """The records of a run directory that no sidecar empties."""

    def __init__(self, run_dir: Path) -> None:
        self._files = RecordFiles(RunDirectory(str(run_dir)), {})

    def news(self) -> list[News]:
        """Records written since the last call."""
        return [item for item in self._files.drain() if isinstance(item, Record)]


class JournalSource:
    """The turns that the sidecar commits: the records it was fed, then what it made of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journal: Journal | None = None
        self._seq = 0

    def news(self) -> list[News]:
        """Records and entries committed since the last call; nothing while there is no journal."""
        if self._journal is None and not self._open():
            return []
        assert self._journal is not None
        found: list[News] = []
        for turn in self._journal.turns(self._seq):
            items = turn.given.items if isinstance(turn.given, Batch) else ()
            found += [*(i for i in items if isinstance(i, Record)), *turn.entries]
            self._seq = turn.seq
        return found

    def _open(self) -> bool:
        try:
            self._journal = Journal(str(self._path), readonly=True)
        except JournalError:  # not begun yet; where it never is, its process has failed and says why
            return False
        return True
