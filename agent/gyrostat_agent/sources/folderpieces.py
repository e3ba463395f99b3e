"""FolderPieces: what lies in a folder, and in the folders inside it, by stat alone: no file is opened.

Called where checkpoints are watched. Whoever can write there can put anything there, so that no link is followed, no
more than so many pieces are looked at and no deeper than so far. What goes while it is looked at is left out.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 16  # folders in folders; each holds a descriptor while it is looked at


class CrowdedError(ValueError):
    """More pieces than are looked at."""


class Piece(NamedTuple):
    """A file or a folder. ``name`` is its path inside, '' for the folder itself; ``changed`` Unix seconds.

    ``bytes`` is 0 for what is no regular file.
    """

    name: str
    inode: int
    changed: float
    bytes: int
    regular: bool


def pieces(path: str, most: int) -> list[Piece]:
    """The folder itself and all that is in it; raises OSError where a folder of it cannot be listed, CrowdedError."""
    found: list[Piece] = []
    with _opened(path) as folder:
        _look(folder, "", 0, found, most)
    return found


def children(path: str, most: int) -> dict[int, str]:
    """The folders that lie in ``path``, name by inode, links left out; raises OSError, CrowdedError."""
    found = {}
    with os.scandir(path) as entries:
        for number, entry in enumerate(entries):
            if number >= most:
                raise CrowdedError(f"it holds more than {most} names")
            if entry.is_dir(follow_symlinks=False):
                found[entry.inode()] = entry.name
    return found


def _look(folder: int, inside: str, depth: int, found: list[Piece], most: int) -> None:
    found.append(_piece(inside, os.fstat(folder)))
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(found) >= most:
                raise CrowdedError(f"it holds more than {most} files")
            name = os.path.join(inside, entry.name)
            try:
                seen = entry.stat(follow_symlinks=False)
                if not stat.S_ISDIR(seen.st_mode) or depth >= _DEEPEST:
                    found.append(_piece(name, seen))
                    continue
                with _opened(entry.name, folder) as within:
                    _look(within, name, depth + 1, found, most)
            except (FileNotFoundError, NotADirectoryError):
                continue


def _piece(name: str, seen: os.stat_result) -> Piece:
    regular = stat.S_ISREG(seen.st_mode)
    return Piece(name, seen.st_ino, seen.st_mtime, seen.st_size if regular else 0, regular)


@contextmanager
def _opened(path: str, folder: int | None = None) -> Iterator[int]:
    fd = os.open(path, _FOLDER, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)
