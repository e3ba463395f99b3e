"""The run directory made ready for an agent: there, ours, writable, local, and held by one agent alone."""

import contextlib
import fcntl
import json
import os
import socket
import stat
import time
from pathlib import Path

from gyrostat.wire import RightsError, RunDirectory
from gyrostat.wire.rights import check_folder
from gyrostat_agent.errors import HeldError, SetupError

# Where a write by another host shows late or never, and inotify says nothing. FUSE by its known network users.
NETWORK = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "ceph", "gpfs", "beegfs", "glusterfs", "afs", "9p", "pvfs2",
    "fuse.sshfs", "fuse.glusterfs", "fuse.juicefs", "fuse.s3fs", "fuse.gcsfuse", "fuse.ceph", "fuse.rclone",
}  # fmt: skip
_LOCK_SECONDS = 0.25  # whoever only asks who holds the lock has it for microseconds: that is no second agent


def prepare(path: str) -> RunDirectory:
    """Make and check the folders; raises SetupError with what to do."""
    run = RunDirectory(os.path.abspath(path))
    parent = os.path.dirname(run.path)
    if not os.path.isdir(run.path) and not os.path.isdir(parent):
        raise SetupError(f"{run.path}: neither it nor {parent} exists; make the folder that the run writes to")
    try:
        for folder in (run.path, run.records, run.directives, run.agent, os.path.join(run.agent, "commands")):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            check_folder(folder)
        probe = os.path.join(run.agent, ".probe")
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600))
        os.unlink(probe)
    except RightsError as error:
        raise SetupError(f"{error}; the agent runs as the trainer's user and nobody else may write there") from None
    except OSError as error:
        raise SetupError(
            f"{error.filename or run.path}: {error.strerror}; give a run directory this user can write to"
        ) from None
    if kind := network_kind(run.path):
        raise SetupError(
            f"{run.path} is on {kind}, a network file system; put the run directory on tmpfs or a local disk"
        )
    return run


def existing(path: str) -> RunDirectory:
    """A run directory that an agent has used; raises SetupError where it is none."""
    run = RunDirectory(os.path.abspath(path))
    if not os.path.exists(os.path.join(run.agent, "journal.db")):
        raise SetupError(f"{run.path} holds no agent/journal.db; give the run directory of a run that an agent watched")
    return run


def network_kind(path: str, mounts: str = "/proc/self/mountinfo") -> str:
    """The file system's type where it is a network one, else ''. Nothing is known off Linux: ''."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    real = os.path.realpath(path)
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = fields[4].encode().decode("unicode_escape")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, right.split(" ")[0]
    return kind if kind in NETWORK else ""


class Lock:
    """One agent a run. The kernel lets go of it when the process ends, however it ends."""

    def __init__(self, run: RunDirectory) -> None:
        path = os.path.join(run.agent, "lock")
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            raise SetupError(f"{path} is not a regular file; remove it")
        end = time.monotonic() + _LOCK_SECONDS
        while not _locks(self._fd):
            if time.monotonic() > end:
                holder = read_holder(path)
                os.close(self._fd)
                raise HeldError(f"{run.path} is watched by {holder}; one agent a run")
            time.sleep(_LOCK_SECONDS / 50)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)

    def release(self) -> None:
        """Let go."""
        os.close(self._fd)


def _locks(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def held(run: RunDirectory) -> str:
    """Who holds the run, or '' where nobody does."""
    path = os.path.join(run.agent, "lock")
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return read_holder(path)
        finally:
            os.close(fd)
    return ""


def read_holder(path: str) -> str:
    """``process 4711 on host``, as far as the lock file says."""
    try:
        raw = json.loads(Path(path).read_text())
        return f"process {int(raw['pid'])} on {str(raw['host'])[:80]}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another agent"
