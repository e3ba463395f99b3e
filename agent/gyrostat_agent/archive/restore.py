"""Restore: an archive becomes a folder again, whole and proven, or none.

Every part is proven as it comes, every file as it lies on the disk, and only then the folder gets its name. What an
interrupted restore had fetched is proven and kept. Called by ``gyrostat checkpoints restore``.
"""

import os
from functools import partial
from typing import NamedTuple

import xxhash

from gyrostat_agent.archive import store as objects
from gyrostat_agent.archive.draft import Draft, opened_draft, placed, published, spare
from gyrostat_agent.archive.errors import ArchiveError, DamagedError, StoreError
from gyrostat_agent.archive.index import File, Index, key_of, span
from gyrostat_agent.archive.lanes import Lanes
from gyrostat_agent.archive.pace import Pace
from gyrostat_agent.archive.progress import Progress
from gyrostat_agent.archive.store import Store
from gyrostat_agent.checkpoints.reference import DIGEST, CheckpointError


class Restored(NamedTuple):
    """What came of it: the checkpoint's path, and how many of its bytes were fetched now."""

    path: str
    fetched: int


class _Way(NamedTuple):
    """Where parts come from, and by what."""

    store: Store
    base: str
    pace: Pace
    progress: Progress


def restore(store: Store, base: str, index: Index, into: str, pace: Pace, progress: Progress) -> Restored:
    """Restore the archive below ``base`` as ``into``/its name; raises ArchiveError."""
    try:
        with opened_draft(into, index) as draft:
            lacking = -spare(draft, index)
            if lacking > 0:
                raise ArchiveError(
                    f"the disk is too full by {lacking} of {index.bytes} bytes; make room, and try again"
                )
            progress.begin(index.bytes)
            way = _Way(store, base, pace, progress)
            count = sum(_file(way, draft, number, index) for number in range(len(index.files)))
            return Restored(published(draft, into, index), count)
    except StoreError as error:
        raise StoreError(f"{error}. What was fetched stays in {into}; the same command goes on from it") from None
    except (CheckpointError, OSError) as error:
        why = f"{error.strerror}: {error.filename or into}" if isinstance(error, OSError) else str(error)
        raise ArchiveError(
            f"{index.name} was not restored into {into}: {why}. What was fetched stays there; the same command goes "
            "on from it"
        ) from None
    except ArchiveError as error:
        raise type(error)(f"{index.name} was not restored into {into}: {error}") from None


def _file(way: _Way, draft: Draft, number: int, index: Index) -> int:
    """Fetch what is not there of a file, and prove it; how many bytes were fetched."""
    file, count = index.files[number], 0
    with placed(draft, file.path) as fd:
        with Lanes() as lanes:  # ended before fd is: a late part must not be written to another file of that number
            for at, digest in enumerate(file.parts):
                size = span(file.bytes, at, index.part_bytes)
                if not _is_there(fd, at * index.part_bytes, size, digest):
                    way.pace.take(size)
                    lanes.send(
                        partial(_fetch, way, key_of(way.base, number, at, digest), fd, at * index.part_bytes, size)
                    )
                    count += size
                way.progress.advance(size)
        os.ftruncate(fd, file.bytes)
        os.fsync(fd)
        _prove(fd, file, index.part_bytes)
    return count


def _is_there(fd: int, start: int, size: int, digest: str) -> bool:
    return os.fstat(fd).st_size > start and xxhash.xxh3_128_hexdigest(os.pread(fd, size, start)) == digest


def _fetch(way: _Way, key: str, fd: int, start: int, size: int) -> None:
    part = objects.part(way.store, key, size)
    if part is None:
        raise DamagedError(f"{way.store.url}: part {key} is gone; this archive cannot be restored any more")
    if len(part) != size or xxhash.xxh3_128_hexdigest(part) != key.rpartition("-")[2]:
        raise DamagedError(
            f"{way.store.url}: part {key} is not what was archived ({len(part)} of {size} bytes); nothing was put "
            "in place: restore another archive, or an older version of that object"
        )
    while part:
        written = os.pwrite(fd, part, start)
        part, start = part[written:], start + written


def _prove(fd: int, file: File, part_bytes: int) -> None:
    digest = xxhash.xxh3_128()
    for start in range(0, file.bytes, part_bytes):
        digest.update(os.pread(fd, part_bytes, start))
    if DIGEST + digest.hexdigest() != file.digest:
        raise DamagedError(f"{file.path} has another digest than the archive's index says; the archive is damaged")
