"""EventRun: the TensorBoard event files of one run, told as Records, while it goes on or when it is over.

Used by ``eventlogs`` and by a diagnosis. What the files say counts as said by rank 0 of the trainer.
"""

from collections.abc import Iterator, Mapping
from math import isfinite

from gyrostat.wire import Record
from gyrostat_agent.sources.course import Course
from gyrostat_agent.sources.logs.gathered import Gathered
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import Told
from gyrostat_agent.sources.tensorboard import MOST_BYTES, MOST_STEPS, EventFolder
from gyrostat_agent.sources.tensorboardtags import TAGS

_USUAL = 30  # values of a step: one that holds more counts for several
_OF_RUN = "\0"  # begins the names of those offsets that say where the run stands; no file is called so


class EventRun:
    """``path``: an event file or a folder of them; goes on from ``committed``, the offsets of another one.

    ``names``: how each tag was read; ``steps``: rows that were read so far; ``files``: what they are read from.
    """

    def __init__(self, path: str, incarnation: str, committed: Mapping[str, int] | None = None) -> None:
        known = committed or {}
        files = {name: at for name, at in known.items() if not name.startswith(_OF_RUN)}
        stand = {name.removeprefix(_OF_RUN): at for name, at in known.items() if name.startswith(_OF_RUN)}
        self.files = EventFolder(path, files)
        self.names = Names(TAGS)
        self.steps = 0
        self._course = Course(self._measured, stand, files)
        self._segment = self._course.segment
        self._gathered = Gathered(self.names, incarnation)
        self._place = (-1, 0)  # segment and step of the newest record
        self._told: set[str] = set()  # names in it

    @property
    def late(self) -> bool:
        """Some rows were told as of a later step than their own."""
        return self._course.late

    def records(self, most: int = MOST_STEPS, most_bytes: int = MOST_BYTES) -> Iterator[Record]:
        """The next steps that are complete, in order, ``most`` of them or few more; again until ``files.at_end``.

        Fewer where they hold many values. For them ten times as many rows are read at most, and ``most_bytes`` or so.
        """
        told = 0.0
        for file, row in self.files.steps(10 * most, most_bytes):
            for record in self._of(row, file):
                told += max(1.0, len(record.values) / _USUAL)
                yield record
            if told >= most:
                break

    def flush(self) -> Iterator[Record]:
        """The step that is open: more of it may come, and is then told as of the same step."""
        for record in self._gathered.flush():
            yield from self._placed(record)

    def offsets(self) -> dict[str, int]:
        """How far each file has been told, and where the run stands: another one goes on there."""
        return {**self.files.offsets(), **{_OF_RUN + name: at for name, at in self._course.stand().items()}}

    def _of(self, told: Told, file: str) -> Iterator[Record]:
        self.steps += 1
        row = self._course.take(told, file)
        if self._course.segment != self._segment:
            yield from self.flush()
            self._segment = self._course.segment
        for found in self._gathered.take((row,)):
            if isinstance(found, Record):
                yield from self._placed(found)

    def _measured(self, tag: str) -> bool:
        known = self.names.known.get(tag)
        return known is not None and bool(known.canonical)

    def _placed(self, record: Record) -> Iterator[Record]:
        """In its segment; of a step that was told before, what is news or not finite."""
        place, values = (self._segment, record.step), record.values
        if place == self._place:
            values = {name: value for name, value in values.items() if name not in self._told or not isfinite(value)}
        else:
            self._place, self._told = place, set()
        self._told.update(values)
        if values:
            yield record._replace(segment=self._segment, values=values)
