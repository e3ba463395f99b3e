"""CheckpointTimes: how long checkpoints take to be saved, seen from outside, whatever trainer writes them.

Called by HostSource, in a thread of its own: a file system that hangs must hang nobody else. Looked at are the folders
that lie directly in a root and whose names end in a number: ``checkpoint-200``, ``iter_0000200``, ``global_step_200``,
``step-00000200``; one that gets such a name only when it is whole counts from when it was first seen under another. By
stat alone, and within bounds that a file server can bear. Not told: what was there before the first look.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.sources import checkpointfolder
from gyrostat_agent.sources.checkpointfolder import Folder, Saved
from gyrostat_agent.sources.diskroom import room
from gyrostat_agent.sources.folderpieces import CrowdedError, Piece, children, pieces

_STEP = re.compile(r"[0-9]{1,18}$")
_MOST_FOLDERS, _MOST_PIECES = 10_000, 10_000  # in a root; in a folder
_PER_SECOND = 2000  # pieces looked at, which is 2 % of a processor
_AGAIN_PER_SECOND = 100  # of finished folders, for one may be saved into anew: a file server counts every stat
_TRY_AGAIN_SECONDS = 10.0


class Look(NamedTuple):
    """What one look at ``at`` has found. ``faults``: why checkpoints in each root cannot be timed, or ''.

    ``room``: what the file systems below can take yet, by its series.
    """

    at: float
    saved: tuple[Saved, ...]
    faults: dict[str, str]
    room: dict[str, float]


class CheckpointTimes:
    """``roots`` are looked at from the first look on, and may come into being later."""

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._given = tuple(os.path.abspath(root) for root in roots)
        self._told = ""
        self._roots: dict[str, Root] = {}
        self._sizes: dict[str, int] = {}

    @property
    def roots(self) -> tuple[str, ...]:
        """Where is looked."""
        return tuple(dict.fromkeys((*self._given, *filter(None, (self._told,)))))

    def set_root(self, path: str) -> None:
        """Where the trainer says its checkpoints lie; '' where it says nothing. May be called by another thread."""
        self._told = os.path.abspath(path) if path else ""

    def look(self, now: float) -> Look:
        """Look at all roots."""
        self._roots = {path: self._roots.get(path) or Root(path) for path in self.roots}
        found: list[Saved] = []
        for path, root in self._roots.items():
            new = list(root.look(now))
            self._sizes[path] = new[-1].bytes if new else self._sizes.get(path, 0)
            found += new
        faults = {path: root.fault for path, root in self._roots.items()}
        return Look(now, tuple(found), faults, room({path: self._sizes[path] for path in self._roots}))


class Root:
    """The folders in one root, by inode: a folder that is renamed is the same. ``fault`` is in words, or ''."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._began = self._looked = -math.inf
        self._ready = self._again = -math.inf
        self._folders: dict[int, Folder] = {}
        self.fault = ""

    def look(self, now: float) -> Iterator[Saved]:
        """The checkpoints that are found to be finished."""
        if now < self._looked:  # the clock was set back: what is known is of another time
            self._began = self._looked = self._ready = self._again = -math.inf
            self._folders = {}
        try:
            names = children(self._path, _MOST_FOLDERS)
        except FileNotFoundError:
            names = {}
        except (OSError, ValueError) as error:  # nothing is called gone
            self.fault = clean(f"checkpoints in {self._path} cannot be timed: {_why(error)}")
            return
        self._know(names, now)
        if self._ready <= now:
            yield from self._look_inside(now)
        self.fault = next((folder.fault for folder in self._folders.values() if folder.fault), "")

    def _know(self, names: dict[int, str], now: float) -> None:
        first = self._looked == -math.inf
        self._began = now if first else self._began
        fresh = Folder("", self._looked, now, witnessed=not first, writing=not first)
        known = self._folders
        self._folders = {inode: known.get(inode, fresh)._replace(name=name) for inode, name in names.items()}
        self._looked = now

    def _look_inside(self, now: float) -> Iterator[Saved]:
        count = 0
        for inode in self._due(now):
            found = self._pieces(inode, now)
            count += len(found) or 1
            if found and (saved := self._told(inode, found, now)) is not None:
                yield saved
            if count >= _MOST_PIECES:
                break
        self._ready = now + count / _PER_SECOND

    def _due(self, now: float) -> list[int]:
        """What is being written, and one of the others; what was not looked at for longest first, and the newest."""
        due = [(f.looked, -_step(f.name), i) for i, f in self._folders.items() if f.due <= now and _step(f.name) >= 0]
        inodes = [inode for *_, inode in sorted(due)]
        again = [inode for inode in inodes if not self._folders[inode].writing] if self._again <= now else []
        return [inode for inode in inodes if self._folders[inode].writing] + again[:1]

    def _pieces(self, inode: int, now: float) -> list[Piece]:
        """What lies in the folder; nothing where that cannot be told."""
        folder = self._folders[inode]
        path = os.path.join(self._path, folder.name)
        try:
            return pieces(path, _MOST_PIECES)
        except (FileNotFoundError, NotADirectoryError):  # deleted meanwhile; or something else has its name
            del self._folders[inode]
        except (OSError, CrowdedError) as error:
            due = math.inf if isinstance(error, CrowdedError) else now + _TRY_AGAIN_SECONDS
            self._folders[inode] = folder._replace(due=due, fault=clean(f"{path} cannot be timed: {_why(error)}"))
        return []

    def _told(self, inode: int, found: list[Piece], now: float) -> Saved | None:
        """What a look into a folder makes known."""
        known = self._folders[inode]
        if not known.writing:
            self._again = now + len(found) / _AGAIN_PER_SECOND
        folder = checkpointfolder.looked_into(known, found, now)
        finished = checkpointfolder.is_finished(folder, found, now)
        self._folders[inode] = folder._replace(writing=folder.writing and not finished)
        return checkpointfolder.saved(folder, found, self._began) if finished else None


def _step(name: str) -> int:
    found = _STEP.search(name)
    return int(found[0]) if found else -1


def _why(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
