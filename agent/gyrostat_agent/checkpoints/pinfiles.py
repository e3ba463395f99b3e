"""Files of a pin: second names of a checkpoint's files, by a clone (reflink) or else a hard link.

Called by ``pins``, in the loop: neither costs a byte or reads what a file holds. Raises OSError as the system said it,
so that the caller can tell where a copy would help.
"""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from gyrostat_agent.checkpoints.layouts.folder import opened_below
from gyrostat_agent.checkpoints.reference import CheckpointError

_FICLONE = 0x40049409  # linux/fs.h: share the blocks of another file
_NOT_CLONED = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM)
# Another file system, another owner's file, a file system without links or with all of them used up: a copy is none.
LINKLESS = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def second_name(folder: int, target: int, path: str) -> None:
    """The file in another folder: a clone, else a hard link; raises OSError, CheckpointError."""
    above, _, name = path.rpartition("/")
    with opened_below(folder, path) as (source, found), made(target, above) as there:
        if not _cloned(source, found, there, name):
            os.link(path, name, src_dir_fd=folder, dst_dir_fd=there, follow_symlinks=False)
        if not _is_it(os.stat(name, dir_fd=there, follow_symlinks=False), found):
            raise CheckpointError(f"{path} was replaced meanwhile")


@contextmanager
def made(target: int, path: str) -> Iterator[int]:
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
