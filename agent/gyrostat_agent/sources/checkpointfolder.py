"""CheckpointFolder: a folder that a trainer saves into, and what looks into it tell: when a save began, when it ended.

Pure: looks are handed in. A save begins when the folder is first seen, or when what lay in it is written anew, and ends
with the newest change in it. A change is put into the time between the two looks that it came between, whatever clock
the file server has: so an answer is at most as far off as looks lie apart, and where a whole save came between two of
them, it is what the files' own times say.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from gyrostat_agent.sources.folderpieces import Piece

SETTLED_SECONDS = 60.0  # a trainer may gather an optimizer's state for so long between two files of one checkpoint
_ENDED_SECONDS = 3.0  # where what is written last is there: it is small
_LATE = 1.0  # seconds: a look takes place a little after the moment that it is named by
# At the top of a folder, and only once the rest lies there: PyTorch's distributed checkpoints; the reference trainer's.
_WRITTEN_LAST = (".metadata", "manifest.json")
_PATIENCE = 20.0  # what has not changed for so many seconds is looked at a second later


class Saved(NamedTuple):
    """A checkpoint that was saved, by its folder's name. ``bytes`` are those that were written."""

    name: str
    seconds: float
    bytes: int


class Folder(NamedTuple):
    """A folder as it is known. Its save began after the look at ``missed`` and was there at ``seen``, at ``start``.

    ``writing``: it goes on, or has not been looked into. ``witnessed``: its beginning was seen. ``since``: what changed
    up to then is of an earlier save. ``changed``: the looks that the last change came between. ``due``: the next look.
    ``mark`` and ``newest`` are of what lay in it at ``looked``. All in Unix seconds; ``fault`` is '' or in words.
    """

    name: str
    missed: float
    seen: float
    witnessed: bool = True
    writing: bool = True
    since: float = -math.inf
    start: float = math.inf
    changed: tuple[float, float] = (-math.inf, math.inf)
    due: float = -math.inf
    looked: float = -math.inf
    mark: int = 0
    newest: float = -math.inf
    fault: str = ""


def looked_into(folder: Folder, pieces: Sequence[Piece], now: float) -> Folder:
    """The folder after a look at ``now`` that found ``pieces`` in it, itself among them."""
    mark, newest = sum(map(hash, pieces)), max(piece.changed for piece in pieces)
    if folder.looked == -math.inf:
        folder = _first(folder, pieces, newest, now)
    elif mark != folder.mark:
        folder = _changed(folder, pieces, now)
    due = now + (now - folder.changed[1]) / _PATIENCE
    return folder._replace(looked=now, mark=mark, newest=newest, due=due, fault="")


def is_finished(folder: Folder, pieces: Sequence[Piece], now: float) -> bool:
    """True where what was being written is all there: ``pieces`` were found at ``now``."""
    files = [piece for piece in pieces if piece.regular and piece.bytes]
    if not folder.writing or not files:
        return False
    newest = max(piece.changed for piece in files)
    last = any(piece.name in _WRITTEN_LAST and piece.changed >= newest for piece in files)
    return now - folder.changed[1] >= (_ENDED_SECONDS if last else SETTLED_SECONDS)


def saved(folder: Folder, pieces: Sequence[Piece], watched: float) -> Saved | None:
    """What there is to tell of a save that is finished; ``watched``: since when looks have been taken.

    Nothing where nobody saw it begin, or where less than half of the folder was written: somebody has added a file
    to a checkpoint, or taken some away.
    """
    new = [piece for piece in pieces if piece.changed > folder.since]
    size = sum(piece.bytes for piece in new)
    if not folder.witnessed or 2 * size < sum(piece.bytes for piece in pieces):
        return None
    if folder.newest <= folder.missed == folder.changed[0]:  # it was made elsewhere, and put here whole
        oldest = min(piece.changed for piece in new)
        return Saved(folder.name, folder.newest - oldest, size) if oldest >= watched else None
    after, before = folder.changed
    end = min(max(folder.newest, after), before + _LATE)
    return Saved(folder.name, max(0.0, end - folder.start), size)


def _first(folder: Folder, pieces: Sequence[Piece], newest: float, now: float) -> Folder:
    if not folder.witnessed:  # there before the first look: it may be half written
        return folder._replace(writing=newest > now - SETTLED_SECONDS, changed=(folder.missed, now))
    return folder._replace(start=_began(pieces, folder.missed, folder.seen), changed=(folder.missed, now))


def _changed(folder: Folder, pieces: Sequence[Piece], now: float) -> Folder:
    changed = (folder.looked, now)
    if folder.writing:
        return folder._replace(changed=changed)
    return folder._replace(
        writing=True, witnessed=True, missed=folder.looked, seen=now, since=folder.newest,
        start=_began(pieces, folder.looked, now), changed=changed,
    )  # fmt: skip


def _began(pieces: Sequence[Piece], missed: float, seen: float) -> float:
    """The first change between the two looks; where there is none, the later of them."""
    return min((piece.changed for piece in pieces if missed < piece.changed <= seen + _LATE), default=seen)
