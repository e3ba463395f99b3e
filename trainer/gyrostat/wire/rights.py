"""Who may have written a file: the check before a message from a shared directory is believed.

One UID is one domain of trust (docs/architecture.md). A file or folder that another user owns, or could have written,
is not read, and the error says which mode or owner was found.
"""

import os
import stat

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class RightsError(PermissionError):
    """A file or folder that somebody else owns or could have written."""


def check_folder(path: str) -> None:
    """Raise RightsError where others own ``path`` or may write in it; OSError where it is not there."""
    found = os.stat(path, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):
        raise RightsError(f"{path} is not a folder; give a real one, not a link")
    _check(path, found)


def open_trusted(path: str, flags: int = os.O_RDONLY) -> int:
    """Descriptor of a regular file that only this user can have written; raises RightsError or OSError.

    The check is on the open descriptor, so that nobody can swap the file between the check and the read.
    """
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise RightsError(f"{path} is not a regular file")
        _check(path, found)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_trusted(path: str, limit: int) -> bytes:
    """At most ``limit`` bytes of a file that only this user can have written; raises RightsError, OSError."""
    fd = open_trusted(path)
    try:
        data = os.read(fd, limit + 1)
    finally:
        os.close(fd)
    if len(data) > limit:
        raise RightsError(f"{path} has more than {limit} bytes")
    return data


def _check(path: str, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise RightsError(f"{path} belongs to UID {found.st_uid}, not to UID {os.geteuid()} of this process")
    if found.st_mode & _OTHERS_WRITE:
        raise RightsError(f"{path} has mode {stat.S_IMODE(found.st_mode):04o}: others may write it; chmod go-w it")
