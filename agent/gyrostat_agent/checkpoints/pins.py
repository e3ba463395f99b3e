"""Pins: second names of checkpoints, under which a trainer's rotation does not look for them.

A pin is a folder of the same name in ``gyrostat-pins/`` beside the checkpoints, its files clones of theirs where the
file system can (a reflink), else hard links: neither costs a byte while the checkpoint itself is there. A trainer that
writes a checkpoint anew in place writes into a hard link too: it does so after it has gone back, when the pin is of a
stretch that was left, and at use sizes and times say so. What can be neither is not pinned, and that is said. Called by
CheckpointSource, in the loop: nothing here reads what a file holds.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from gyrostat_agent.checkpoints import foreign
from gyrostat_agent.checkpoints.layouts.folder import Listed, opened_below
from gyrostat_agent.checkpoints.reference import MANIFEST, CheckpointError, Stamp, find, opened_folder
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

    def find(self) -> tuple[dict[str, Stamp], dict[str, Stamp]]:
        """The pins there are, by path, and those of foreign checkpoints; none where their folder is not ours."""
        try:
            return (find(self._folder), foreign.find(self._folder)) if self._is_ours() else ({}, {})
        except OSError:
            return {}, {}

    def make(self, path: str, files: Iterable[str]) -> None:
        """Pin those files of the checkpoint at ``path``; one that is pinned already stays as it is.

        A pin of what bore the same name before is of another checkpoint, and gives way when the new one is whole.
        """
        name, files = os.path.basename(path), list(files)
        if (old := foreign.files(os.path.join(self._folder, name))) is not None and old == _of(path, files):
            return
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            with self._draft(name) as draft, opened_folder(path) as folder, opened_folder(draft) as target:
                for file in files:
                    _link(folder, target, file)
            self.fault = ""
        except OSError as error:
            self.fault = f"{name} cannot be pinned: {error.strerror}; rotation may take the last healthy checkpoint"
        except CheckpointError as error:
            self.fault = "" if "missing" in str(error) or str(error) == "gone" else f"{name} cannot be pinned: {error}"

    def let_go(self, keep: Keep) -> None:
        """Drop the pins that are judged and not to be kept; of a disk that is nearly full all that can be spared."""
        wanted = keep.names[: keep.sure] if self._is_full() else keep.names
        names = {name for name in self._names("") if not name.endswith(_DRAFT)}
        for name in names & keep.judged - set(wanted):
            self._remove(name)

    def _is_ours(self) -> bool:
        return bool(self._root) and os.path.isdir(self._folder) and not os.path.islink(self._folder)

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
            place = os.path.join(self._folder, name)
            if os.path.lexists(place):
                os.rename(place, os.path.join(self._folder, f".{name}.old{_DRAFT}"))
            os.rename(draft, place)
            self._remove(f".{name}.old{_DRAFT}")
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


def _of(path: str, files: Iterable[str]) -> Mapping[str, Listed]:
    """Size and time of those files that are there."""
    found = foreign.files(path) or {}
    return {name: found[name] for name in sorted(files) if name in found}


def _link(folder: int, target: int, path: str) -> None:
    """The file in another folder: a clone, else a hard link; raises OSError, CheckpointError."""
    above, _, name = path.rpartition("/")
    with opened_below(folder, path) as (source, found), _made(target, above) as there:
        if not _cloned(source, found, there, name):
            os.link(path, name, src_dir_fd=folder, dst_dir_fd=there, follow_symlinks=False)
        if not _is_it(os.stat(name, dir_fd=there, follow_symlinks=False), found):
            raise CheckpointError(f"{path} was replaced meanwhile")


@contextmanager
def _made(target: int, path: str) -> Iterator[int]:
    """The folder at ``path`` below ``target``, made where it is not there."""
    with ExitStack() as stack:
        at = target
        for each in filter(None, path.split("/")):
            with contextlib.suppress(FileExistsError):
                os.mkdir(each, mode=0o700, dir_fd=at)
            at = os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            stack.callback(os.close, at)
        yield at


def _cloned(source: int, found: os.stat_result, there: int, name: str) -> bool:
    """False where the file system has no clones; nothing is left there then."""
    clone = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=there)
    try:
        fcntl.ioctl(clone, _FICLONE, source)
        os.utime(clone, ns=(found.st_atime_ns, found.st_mtime_ns))
        return True
    except OSError as error:
        if error.errno not in _NOT_CLONED:
            raise
    finally:
        os.close(clone)
    os.unlink(name, dir_fd=there)
    return False


def _is_it(now: os.stat_result, found: os.stat_result) -> bool:
    return (now.st_size, now.st_mtime_ns) == (found.st_size, found.st_mtime_ns)
