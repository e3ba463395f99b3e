"""Pins: second names of checkpoints, under which a trainer's rotation does not look for them.

A pin is a folder of the same name in ``gyrostat-pins/`` beside the checkpoints, its files clones of theirs where the
file system can (a reflink), else hard links: neither costs a byte while the checkpoint itself is there. Hard links are
for trainers that never write into a checkpoint again; the reference trainer renames whole folders. What can be neither
is not pinned, and that is said. Called by CheckpointSource, in the loop: nothing here reads what a file holds.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from gyrostat_agent.checkpoints.reference import MANIFEST, CheckpointError, Stamp, find, opened, opened_folder, stamp
from gyrostat_rules.keeping import Keep

FOLDER = "gyrostat-pins"
_DRAFT = ".draft"
_FICLONE = 0x40049409  # linux/fs.h: share the blocks of another file
_NOT_CLONED = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM)
_LEAST_FREE = 0.05  # of the disk: what keeps a trainer from writing its next checkpoint protects nobody


class Pins:
    """Those under one root. ``fault`` says why the last one could not be made, or is ''."""

    def __init__(self, root: str) -> None:
        self.fault = ""
        self._root, self._folder = root, os.path.join(root, FOLDER)
        for name in self._names(_DRAFT):  # of an agent that was killed while it made one
            self._remove(name)

    def find(self) -> dict[str, Stamp]:
        """The pins there are, by path; empty where there are none, or their folder is no folder of ours."""
        try:
            return find(self._folder) if self._is_ours() else {}
        except OSError:
            return {}

    def make(self, path: str, files: Iterable[str]) -> None:
        """Pin the checkpoint at ``path``, its manifest last; one that is pinned already stays as it is.

        A pin of what bore the same name before is of another checkpoint, and gives way.
        """
        name = os.path.basename(path)
        if (old := stamp(os.path.join(self._folder, name))) is not None:
            if old[:2] == (stamp(path) or ())[:2]:
                return
            self._remove(name)
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            with self._draft(name) as draft, opened_folder(path) as folder, opened_folder(draft) as target:
                for file in (*files, MANIFEST):
                    _link(folder, target, file)
            self.fault = ""
        except OSError as error:
            self.fault = f"{name} cannot be pinned: {error.strerror}; rotation may take the last healthy checkpoint"
        except CheckpointError as error:
            self.fault = "" if "missing" in str(error) or str(error) == "gone" else f"{name} cannot be pinned: {error}"

    def let_go(self, keep: Keep) -> None:
        """Drop the pins that are judged and not to be kept; of a disk that is nearly full all that can be spared."""
        wanted = keep.names[: keep.sure] if self._is_full() else keep.names
        for name in {os.path.basename(path) for path in self.find()} & keep.judged - set(wanted):
            self._remove(name)

    def _is_ours(self) -> bool:
        return os.path.isdir(self._folder) and not os.path.islink(self._folder)

    def _is_full(self) -> bool:
        with contextlib.suppress(OSError):
            disk = os.statvfs(self._folder)
            return disk.f_bavail < _LEAST_FREE * disk.f_blocks
        return False

    @contextmanager
    def _draft(self, name: str) -> Iterator[str]:
        """A folder that takes its name when it is whole, and is no more where it never is."""
        if not self._is_ours():
            raise CheckpointError(f"{self._folder} is no folder; a link is not followed")
        draft = os.path.join(self._folder, f".{name}{_DRAFT}")
        os.mkdir(draft, mode=0o700)
        try:
            yield draft
            os.rename(draft, os.path.join(self._folder, name))
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def _names(self, ending: str) -> list[str]:
        try:
            return [name for name in os.listdir(self._folder) if name.endswith(ending)] if self._is_ours() else []
        except OSError:
            return []

    def _remove(self, name: str) -> None:
        """The manifest first: what is half removed is no checkpoint."""
        path = os.path.join(self._folder, name)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(path, MANIFEST))
        shutil.rmtree(path, ignore_errors=True)


def _link(folder: int, target: int, name: str) -> None:
    """The file in another folder: a clone, else a hard link; raises OSError, CheckpointError."""
    with opened(folder, name) as (source, found):
        clone = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=target)
        try:
            fcntl.ioctl(clone, _FICLONE, source)
            os.utime(clone, ns=(found.st_atime_ns, found.st_mtime_ns))
            return
        except OSError as error:
            if error.errno not in _NOT_CLONED:
                raise
        finally:
            os.close(clone)
        os.unlink(name, dir_fd=target)
        os.link(name, name, src_dir_fd=folder, dst_dir_fd=target, follow_symlinks=False)
        if not os.path.samestat(os.stat(name, dir_fd=target, follow_symlinks=False), found):
            raise CheckpointError(f"{name} was replaced meanwhile")
