"""EventLog: TensorBoard event files, one or a folder of them, as the Records of a run that is over."""

from collections.abc import Callable, Iterator

from gyrostat.wire import Record
from gyrostat_agent.diagnose.findings import Source
from gyrostat_agent.sources.eventrun import EventRun

LIFE = "log"  # the files of one run are read as one life of it
FORM = "tensorboard"


class EventLog:
    """``path``: an event file, or a folder that is looked through."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._run = EventRun(path, LIFE)

    def records(self, progress: Callable[[int], None]) -> Iterator[Record]:
        """All of them, in the order of time."""
        while not self._run.files.at_end:
            yield from self._run.records()
        yield from self._run.flush()

    def source(self) -> Source:
        """How it was read; a damaged place counts as a line that was not understood."""
        run = self._run
        names = {name: known.canonical for name, known in run.names.known.items()}
        return Source(self.path, FORM, run.steps + run.files.damaged, run.steps, 0, names, run.files.trouble)
