"""Draft: the folder beside, in which a checkpoint is restored before it bears its name.

Its name holds the digest of the whole, so that an interrupted restore goes on and no other takes its place. It is
locked while one works on it. Every step into it is taken by descriptor and follows no link. Called by ``restore``.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from gyrostat_agent.archive.errors import ArchiveError
from gyrostat_agent.archive.folder import listing
from gyrostat_agent.archive.index import Index
from gyrostat_agent.checkpoints.reference import opened_folder

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Draft(NamedTuple):
    """The draft and the folder that it lies in, as descriptors, and its name in it."""

    into: int
    name: str
    folder: int


@contextmanager
def opened_draft(into: str, index: Index) -> Iterator[Draft]:
    """The draft of an archive in the folder ``into``, which is made where it is not there.

    Raises ArchiveError where the checkpoint, or somebody who restores it, is there already.
    """
    os.makedirs(into, exist_ok=True)
    with opened_folder(os.path.realpath(into)) as outer:
        _absent(outer, into, index.name)
        name = f".restoring-{index.digest[-16:]}"  # not after the checkpoint: its name may be as long as names can be
        inner = _entered(outer, name)
        try:
            _locked(inner, f"{into}/{name}")
            yield Draft(outer, name, inner)
        finally:
            os.close(inner)


@contextmanager
def placed(draft: Draft, path: str) -> Iterator[int]:
    """A descriptor of a file in the draft, to read and write; its folders are made. Raises OSError."""
    at = os.dup(draft.folder)
    try:
        *folders, name = path.split("/")
        for folder in folders:
            deeper = _entered(at, folder)
            os.close(at)
            at = deeper
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=at)
    finally:
        os.close(at)
    try:
        yield fd
    finally:
        os.close(fd)


def spare(draft: Draft, index: Index) -> int:
    """Bytes that will be free on the disk when all is there; below 0 it will not fit."""
    disk = os.fstatvfs(draft.folder)
    needed = {file.path: file.bytes for file in index.files}
    have = sum(min(source.stamp.bytes, needed.get(source.path, 0)) for source in listing(draft.folder))
    return disk.f_bavail * disk.f_frsize - index.bytes + have


def published(draft: Draft, into: str, index: Index) -> str:
    """Give the whole draft the checkpoint's name; its path. Raises ArchiveError where it holds anything else."""
    strange = {source.path for source in listing(draft.folder)} ^ {file.path for file in index.files}
    if strange:
        raise ArchiveError(
            f"{into}/{draft.name} holds, or lacks, {min(strange)[:80]}; delete that folder, and try again"
        )
    _absent(draft.into, into, index.name)
    os.fsync(draft.folder)
    os.rename(draft.name, index.name, src_dir_fd=draft.into, dst_dir_fd=draft.into)
    os.fsync(draft.into)
    return os.path.join(os.path.abspath(into), index.name)


def _absent(outer: int, into: str, name: str) -> None:
    try:
        os.stat(name, dir_fd=outer, follow_symlinks=False)
    except FileNotFoundError:
        return
    raise ArchiveError(f"{into}/{name} is there already, and nothing is overwritten; name another --into, or move it")


def _entered(outer: int, name: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=outer)
    return os.open(name, _FOLDER, dir_fd=outer)


def _locked(folder: int, path: str) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise ArchiveError(f"{path} is being worked on by another restore; wait for that one") from None
        # a file system without locks, such as some mounts of object storage: then one person at a time
