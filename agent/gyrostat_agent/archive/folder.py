"""The folder that is archived: its regular files, in order, and whether they are still what they were.

No link is followed and nothing else than a regular file is taken: an archive that lacks what a link pointed at could
not be restored elsewhere. Called by ``upload`` and, for the draft, by ``restore``.
"""

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from gyrostat_agent.archive.errors import ArchiveError
from gyrostat_agent.archive.index import FILES, PART_BYTES
from gyrostat_agent.archive.paths import inner
from gyrostat_agent.checkpoints.reference import Stamp, opened


class Source(NamedTuple):
    """A file of the folder: its path in it, and what tells this writing of it from another."""

    path: str
    stamp: Stamp


def listing(folder: int) -> list[Source]:
    """Every file below the open ``folder``, by path; raises ArchiveError on what cannot be archived."""
    try:
        found = sorted(_walked(folder))
    except (OSError, ValueError) as error:
        raise ArchiveError(f"the folder cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return found


def parts(folder: int, source: Source) -> Iterator[bytes]:
    """The file's bytes, a part at a time; raises ArchiveError where it is not the one that was listed any more."""
    with opened(folder, source.path) as (fd, found):
        for start in range(0, source.stamp.bytes, PART_BYTES):
            size = min(PART_BYTES, source.stamp.bytes - start)
            part = os.pread(fd, size, start)
            if len(part) != size:
                raise changed(source.path)
            yield part
        if _stamp(found) != source.stamp or _stamp(os.fstat(fd)) != source.stamp:
            raise changed(source.path)


def changed(path: str) -> ArchiveError:
    """What is raised where a file changes while it is read."""
    return ArchiveError(
        f"{path[:80]} changed while it was read, so there is no archive; run it again once the save has ended"
    )


def _walked(folder: int) -> Iterator[Source]:
    count = 0
    for where, folders, files, fd in os.fwalk(".", dir_fd=folder, onerror=_raise):
        for name in folders + files:
            path = inner(os.path.normpath(f"{where}/{name}"))
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode):
                count += 1
                yield Source(path, _stamp(found))
            elif not stat.S_ISDIR(found.st_mode):
                kind = "a link, and links are not followed" if stat.S_ISLNK(found.st_mode) else "no regular file"
                raise ArchiveError(f"{path[:80]} is {kind}; put the file itself there, or take it out")
        if count > FILES:
            raise ArchiveError(f"there are more than {FILES} files; archive its folders apart")


def _raise(error: OSError) -> None:
    raise error


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_mtime_ns, found.st_size, found.st_ino)
