"""EventLog: TensorBoard event files, one or a folder of them, as the Records of a run that is over."""

import os
from collections.abc import Callable, Iterator

from gyrostat.wire import Record
from gyrostat_agent.diagnose.findings import Source
from gyrostat_agent.sources.logs.gathered import Gathered
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.tensorboard import EventFile, EventFolder
from gyrostat_agent.sources.tensorboardtags import TAGS

LIFE = "log"  # the files of one run are read as one life of it
FORM = "tensorboard"


def is_events(path: str) -> bool:
    """True for a folder, and for a file that TensorBoard's writer named."""
    return os.path.isdir(path) or ".tfevents." in os.path.basename(path) or path.endswith(".tfevents")


class EventLog:
    """``path``: an event file, or a folder that is looked through."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._events = EventFolder(path) if os.path.isdir(path) else EventFile(path)
        self._names = Names(TAGS)
        self._steps = 0

    def records(self, progress: Callable[[int], None]) -> Iterator[Record]:
        """All of them, in the order of time."""
        gathered = Gathered(self._names, LIFE)
        while True:
            told = self._events.told()
            self._steps += len(told)
            yield from (one for one in gathered.take(told) if isinstance(one, Record))
            if not told:
                break
        yield from gathered.flush()

    def source(self) -> Source:
        """How it was read; a damaged place counts as a line that was not understood."""
        names = {name: known.canonical for name, known in self._names.known.items()}
        damaged = self._events.damaged
        return Source(self.path, FORM, self._steps + damaged, self._steps, 0, names, self._events.trouble)
