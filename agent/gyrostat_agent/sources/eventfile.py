"""EventFile: one TensorBoard event file followed as it grows, as rows of numbers or as what each step told.

Called by ``tensorboard``'s folder, and by whoever is given a single file. It needs neither tensorboard nor protobuf,
and never raises on what it reads: ``trouble`` says why it cannot, ``damaged`` how often something was passed over.

A step is told once, with all its tags; of one that a look caught half written, the rest is told by the next look,
under the same step. Tags that are drawn over samples instead of steps are in the rows alone.
"""

import errno
import os
import stat
from math import inf, isfinite
from typing import TypeAlias

from gyrostat_agent.sources.logs.said import TRAIN, Told
from gyrostat_agent.sources.scalarevents import Row, ScalarEvents
from gyrostat_agent.sources.tfrecords import HEAD, MOST, TAIL

Scalar: TypeAlias = tuple[float, int, str, float]  # wall time in Unix seconds, step, tag, value
Step: TypeAlias = tuple[Told, int]  # what a step told, and where in the file it ends: reading can go on from there
STRETCH = 1 << 18  # bytes of one look
_FIRST = 64  # bytes by which a file is known again: its first record bears the time it was begun at
_OTHER_AXIS = " vs samples"  # Megatron draws much of its own twice, the second time over samples


class EventFile:
    """One event file, read from ``offset`` on; between two looks it is closed.

    ``at_end``: all that is whole has been read. ``pending``: bytes behind that, of a record that is still being
    written. ``restarts``: how often the file was cut short or replaced, and then read from its start.
    """

    def __init__(self, path: str, offset: int = 0) -> None:
        self.path, self.offset = path, offset
        self.trouble = ""
        self.at_end = False
        self.pending = self.restarts = 0
        self._scalars = ScalarEvents()
        self._seen = (0, 0, 0, 0)  # the file as it was when its end was reached
        self._first = b""

    @property
    def damaged(self) -> int:
        """Places passed over as damage."""
        return self._scalars.damaged

    def rows(self) -> list[Scalar]:
        """The next numbers, in order; nothing where there are none yet. Call again until ``at_end``."""
        return [row[:4] for row in self._look(STRETCH)[1]]

    def told(self) -> list[Told]:
        """The next steps, in order; nothing where there are none yet. Call again until ``at_end``."""
        return [told for told, _ in self.steps()]

    def steps(self, stretch: int = STRETCH) -> list[Step]:
        """The next steps, each with where it ends. ``stretch``: bytes of this look, more where one record is longer."""
        damaged = self.damaged
        base, rows = self._look(stretch)
        steps = steps_of(rows, base)
        if not self.at_end and len(steps) > 1 and self.damaged == damaged:
            steps.pop()  # more of it may lie behind this stretch: it is read again, with that
            self.offset = steps[-1][1]
        return steps

    def _look(self, stretch: int) -> tuple[int, list[Row]]:
        """Where the next stretch begins, and its rows."""
        try:
            here = os.stat(self.path)
            if not stat.S_ISREG(here.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            seen = here.st_dev, here.st_ino, here.st_size, here.st_mtime_ns
            if self.at_end and seen == self._seen:
                return self.offset, []
            # Should a pipe have taken its place since, it must not hold us up.
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                found = self._read(fd, stretch)
            finally:
                os.close(fd)
        except OSError as error:
            self.trouble, self.at_end = error.strerror or str(error), True
            return self.offset, []
        self.trouble, self._seen = "", seen
        return found

    def _read(self, fd: int, length: int) -> tuple[int, list[Row]]:
        size = self._recognise(fd)
        while True:
            data = os.pread(fd, length, self.offset)
            more = self.offset + len(data) < size
            taken = self._scalars.take(data, more)
            if taken.used or not more or length > MOST:
                break
            length = min(8 * length, MOST + HEAD + TAIL)  # a record longer than the stretch
        base, self.offset = self.offset, self.offset + taken.used
        self.pending = max(0, size - self.offset)
        self.at_end = not more
        return base, taken.rows

    def _recognise(self, fd: int) -> int:
        """The file's size; another one than before, or one that was cut short, is read from its start.

        It is known by what it begins with: a copy that is brought up to date from elsewhere is a new inode each time.
        """
        size, first = os.fstat(fd).st_size, os.pread(fd, _FIRST, 0)
        if not first.startswith(self._first) or size < self.offset:
            self.offset = 0
            self.restarts += 1
            self._scalars.begin()
        self._first = first
        return size


def steps_of(rows: list[Row], base: int = 0) -> list[Step]:
    """Rows that follow each other under one step, as what that step told; ``base`` is where their stretch lies.

    Of a tag that comes twice in a step the later number counts, unless the earlier was not finite.
    """
    if other := {tag for tag in {row[2] for row in rows} if tag.endswith(_OTHER_AXIS)}:
        rows = [row for row in rows if row[2] not in other]
    if not rows:
        return []
    steps: list[Step] = []
    at, now, _, _, last = rows[0]
    values: dict[str, float] = {}
    for wall_time, step, tag, value, end in rows:
        if step != now:
            steps.append((Told(values, now, TRAIN, 0, _time(at)), base + last))
            values, now, at = {}, step, wall_time
        if tag not in values or isfinite(values[tag]):
            values[tag] = value
        last = end
    steps.append((Told(values, now, TRAIN, 0, _time(at)), base + last))
    return steps


def _time(wall_time: float) -> float | None:
    return wall_time if 0 < wall_time < inf else None
