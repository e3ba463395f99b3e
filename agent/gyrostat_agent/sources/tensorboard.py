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

from gyrostat_agent.sources.eventfile import EventFile, Scalar, Step
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Told

__all__ = ["EventFile", "EventFolder"]

_MOST_FILES, _MOST_FOLDERS, _DEEPEST = 1000, 4000, 12
_BATCH = 20_000  # steps of one look
_SETTLED = 2_000_000_000  # ns: a folder that changed more recently may change again within one tick of its clock
_EVALUATION = {"eval", "evaluation", "val", "valid", "validation", "test"}


class _Naming(NamedTuple):
    """How a file's steps are told among those of others."""

    within: str = ""
    phase: str = TRAIN

    def given(self, told: Told) -> Told:
        if self.within:
            told = told._replace(values={f"{self.within}/{tag}": value for tag, value in told.values.items()})
        return told._replace(phase=EVAL) if self.phase == EVAL else told


class EventFolder:
    """Follows every event file under ``path``, each from where ``offsets`` says that it was left off.

    ``files``: what was found, by name below ``path``. ``at_end``: all that is whole has been told.
    """

    def __init__(self, path: str, offsets: Mapping[str, int] | None = None) -> None:
        self.path = path
        self.trouble = ""
        self.files: dict[str, EventFile] = {}
        self.at_end = False
        self._committed = dict(offsets or {})
        self._held: dict[str, deque[Step]] = {}
        self._stamps: dict[str, int] = {}
        self._names: dict[str, _Naming] = {}

    @property
    def damaged(self) -> int:
        """Places passed over as damage, in all files."""
        return sum(file.damaged for file in self.files.values())

    @property
    def troubles(self) -> dict[str, str]:
        """Why what cannot be read is not, by name."""
        found = {name: file.trouble for name, file in self.files.items() if file.trouble}
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
        self._find()
        told: list[Told] = []
        waiting = [first for name in self.files if (first := self._first(name)) is not None]
        heapq.heapify(waiting)
        while waiting and len(told) < _BATCH:
            _, name = heapq.heappop(waiting)
            step, self._committed[name] = self._held[name].popleft()
            told.append(self._names[name].given(step))
            if (following := self._first(name)) is not None:
                heapq.heappush(waiting, following)
        self.at_end = not waiting
        return told

    def _first(self, name: str) -> tuple[float, str] | None:
        """When the file's next step was written; None where it has no more."""
        held, file = self._held[name], self.files[name]
        looked = False
        while not held and not (looked and file.at_end):
            held += file.steps()
            looked = True
        return (held[0][0].at or 0.0, name) if held else None

    def _find(self) -> None:
        """Take up files that are new; costs one stat a folder where nothing has changed."""
        self.trouble = ""
        known = len(self.files)
        for folder in dict.fromkeys((self.path, *self._stamps)):
            for found in self._changed(folder):
                name = os.path.relpath(found, self.path)
                if name not in self.files and len(self.files) < _MOST_FILES:
                    begin = self._committed.setdefault(name, 0)
                    self.files[name], self._held[name] = EventFile(found, begin), deque()
        if len(self.files) > known:
            folders = {os.path.dirname(name) for name in self.files}
            self._names = {name: _naming(os.path.dirname(name), folders) for name in self.files}

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
                self.trouble = error.strerror or str(error)


def _naming(folder: str, folders: set[str]) -> _Naming:
    if len(folders) == 1 or not folder:
        return _Naming()
    phase = EVAL if os.path.basename(folder) in _EVALUATION else TRAIN
    above = os.path.dirname(folder)
    while above and above not in folders:
        above = os.path.dirname(above)
    return _Naming(os.path.relpath(folder, above or "."), phase) if above in folders else _Naming("", phase)
