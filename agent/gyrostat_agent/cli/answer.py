"""The agent's answer to a person's word, as it stands in the journal: the command's own entry.

Called by ``word``. An answer that cannot be read, or does not come in time, is '': the word lies there all the same.
"""

import os
import time
from collections.abc import Mapping

from gyrostat.wire import RunDirectory
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_rules.entries import EntryKind

_PATIENCE, _PAUSE = 2.0, 0.02  # seconds; an agent that is well answers within a pass


class Ear:
    """Listens from now on; made before the word is given, for its answer may come at once."""

    def __init__(self, run: RunDirectory) -> None:
        self._journal: Journal | None = None
        self._after: str | None = None
        try:
            self._journal = Journal(os.path.join(run.agent, "journal.db"), readonly=True)
            self._after = next((e.id for e in self._journal.entries(newest_first=True, limit=1)), None)
        except JournalError:
            self.close()

    def hear(self, verb: str, arguments: Mapping[str, str]) -> str:
        """What the agent answers to this word; '' where nothing comes within two seconds."""
        end = time.monotonic() + _PATIENCE
        while not (found := self._look(verb, arguments)) and self._journal and time.monotonic() < end:
            time.sleep(_PAUSE)
        return found

    def close(self) -> None:
        """Listen no more."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _look(self, verb: str, arguments: Mapping[str, str]) -> str:
        try:
            news = list(self._journal.entries(self._after, kinds=(EntryKind.COMMAND,))) if self._journal else []
        except JournalError:
            self.close()
            return ""
        return next((e.text for e in news if e.subject == verb and e.data.get("arguments") == arguments), "")
