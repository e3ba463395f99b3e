"""TensorBoard: all event files under a folder, told in the order of time; those that come later too.

A run writes several: one for each life of its trainer, and one for each curve that was drawn with another
(``add_scalars``) in a folder of its own below. Of such a folder the name goes in front of its tags; what lies in one
called ``eval`` or ``validation`` beside another is told as evaluation, as Keras writes it. A single file is an
``EventFile``; neither needs tensorboard or protobuf, and neither raises on what it reads.
"""

import heapq
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gyrostat_agent.sources.eventfile import STRETCH, EventFile, Scalar, Step
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Told

MOST_STEPS, MOST_BYTES = 20_000, 32 << 20  # of one look
_MOST_FILES, _MOST_FOLDERS, _DEEPEST = 1000, 4000, 12
_LEAST = 1 << 14  # bytes of a file at a time: what is read ahead of a thousand files must fit into memory
_SETTLED = 2_000_000_000  # ns: a folder that changed more recently may change again within one tick of its clock
_ITSELF = "."  # the name of a file that is followed alone
_EVALUATION = {"eval", "evaluation", "val", "valid", "validation", "test"}


class _Naming(NamedTuple):
    """How a file's steps are told among those of others."""

    within: str = ""
    phase: str = TRAIN

    def given(self, told: Told) -> Told:
        if self.within:
            told = told._replace(values={f"{self.within}/{tag}": value for tag, value in told.values.items()})
        return told._replace(phase=EVAL) if self.phase == EVAL else told


def is_events(path: str) -> bool:
    """True for a folder, and for a file that TensorBoard's writer named."""
    return os.path.isdir(path) or ".tfevents." in os.path.basename(path) or path.endswith(".tfevents")


class EventFolder:
    """Follows every event file under ``path``, or ``path`` itself, each from where ``offsets`` says it was left off.

    ``files``: what was found, by name below ``path``. ``at_end``: all that is whole has been told.
    """

    def __init__(self, path: str, offsets: Mapping[str, int] | None = None) -> None:
        self.path = path
        self.files: dict[str, EventFile] = {}
        self.at_end = False
        self._committed = dict(offsets or {})
        self._held: dict[str, deque[Step]] = {}
        self._stamps: dict[str, int] = {}
        self._names: dict[str, _Naming] = {}
        self._trouble = ""
        self._alone = not os.path.isdir(path) and is_events(path)
        self._bytes_left = self._stretch = 0  # of this look; of one file's

    @property
    def trouble(self) -> str:
        """Why ``path`` itself cannot be read; '' where it can."""
        return self.files[_ITSELF].trouble if _ITSELF in self.files else self._trouble

    @property
    def damaged(self) -> int:
        """Places passed over as damage, in all files."""
        return sum(file.damaged for file in self.files.values())

    @property
    def troubles(self) -> dict[str, str]:
        """Why what cannot be read is not, by name. A file that is gone is none: what it held has been told."""
        found = {name: f.trouble for name, f in self.files.items() if f.trouble and os.path.lexists(f.path)}
        return {self.path: self.trouble, **found} if self.trouble else found

    def offsets(self) -> dict[str, int]:
        """How far each file has been told, by name: a folder that is given them goes on there."""
        return {n: self._committed[n] if self._held[n] else file.offset for n, file in self.files.items()}

    def rows(self) -> list[Scalar]:
        """The next numbers of each file, file after file. For one that reads rows alone: ``told`` has its own."""
        self._find()
        rows = [row for file in self.files.values() for row in file.rows()]
        self.at_end = all(file.at_end for file in self.files.values())
        return rows

    def told(self) -> list[Told]:
        """The next steps of all files, up to a bound, in the order in which they were written."""
        return [told for _, told in self.steps()]

    def steps(self, most: int = MOST_STEPS, most_bytes: int = MOST_BYTES) -> Iterator[tuple[str, Told]]:
        """The same, each with its file's name. Of what is not taken, nothing is lost; again until ``at_end``.

        A look takes ``most`` of them and reads ``most_bytes``, or little more.
        """
        self._find()
        self.at_end, self._bytes_left = False, most_bytes
        self._stretch = min(STRETCH, max(_LEAST, most_bytes // max(1, len(self.files))))
        if not all(self._look_ahead(name) for name in self.files):
            return  # where one file is not read yet, nobody knows what comes first
        waiting = [self._first(name) for name, held in self._held.items() if held]
        heapq.heapify(waiting)
        for _ in range(most):
            if not waiting:
                self.at_end = True
                return
            _, name = heapq.heappop(waiting)
            step, self._committed[name] = self._held[name].popleft()
            yield name, self._names[name].given(step)
            if not self._look_ahead(name):
                return
            if self._held[name]:
                heapq.heappush(waiting, self._first(name))

    def _look_ahead(self, name: str) -> bool:
        """Know the file's next step, where it has one; False where this look has read enough."""
        held, file = self._held[name], self.files[name]
        while not held:
            if self._bytes_left <= 0:
                return False
            before = file.offset
            held += file.steps(self._stretch)
            self._bytes_left -= abs(file.offset - before)
            if file.at_end:
                break
        return True

    def _first(self, name: str) -> tuple[float, str]:
        """When the file's next step was written."""
        return self._held[name][0][0].at or 0.0, name

    def _find(self) -> None:
        """Take up files that are new; costs one stat a folder where nothing has changed."""
        self._trouble = ""
        known = len(self.files)
        for found in self._found():
            name = os.path.relpath(found, self.path)
            if name not in self.files and len(self.files) < _MOST_FILES:
                begin = self._committed.setdefault(name, 0)
                self.files[name], self._held[name] = EventFile(found, begin), deque()
        if len(self.files) > known:
            folders = {os.path.dirname(name) for name in self.files}
            self._names = {name: _naming(os.path.dirname(name), folders) for name in self.files}

    def _found(self) -> Iterator[str]:
        if self._alone:
            yield self.path
            return
        for folder in dict.fromkeys((self.path, *self._stamps)):
            yield from self._changed(folder)

    def _changed(self, folder: str, depth: int = 0) -> Iterator[str]:
        """Event files in a folder that has changed, and in those below it that are new."""
        try:
            stamp = os.stat(folder).st_mtime_ns
            if stamp == self._stamps.get(folder):
                return
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
            self._stamps[folder] = stamp if time.time_ns() - stamp > _SETTLED else 0
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.path not in self._stamps and depth < _DEEPEST and len(self._stamps) < _MOST_FOLDERS:
                        yield from self._changed(entry.path, depth + 1)
                elif "tfevents" in entry.name:
                    yield entry.path
        except OSError as error:
            self._stamps.pop(folder, None)
            if folder == self.path:
                self._trouble = error.strerror or str(error)


def _naming(folder: str, folders: set[str]) -> _Naming:
    if len(folders) == 1 or not folder:
        return _Naming()
    phase = EVAL if os.path.basename(folder) in _EVALUATION else TRAIN
    above = os.path.dirname(folder)
    while above and above not in folders:
        above = os.path.dirname(above)
    return _Naming(os.path.relpath(folder, above or "."), phase) if above in folders else _Naming("", phase)
