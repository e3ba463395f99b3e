"""The file that one rank writes its frames to: opened with care, rotated, capped, never waited for.

Called by Telemetry alone. Promises: one ``write(2)`` a call, a write cut short is taken back, an error is a
return value and never an exception. Does not promise durability over power loss: the page cache is the
queue, and it outlives both processes (PERFORMANCE §8).
"""

import fcntl
import os
import stat
import time

from gyrostat.wire.layout import RecordFile, RunDirectory
from gyrostat.wire.rights import check_folder

PART_BYTES = 4 << 20
CAP_BYTES = 64 << 20
SLOW_SECONDS = 0.05
SLOW_LIMIT, SLOW_WINDOW = 3, 100
_CHECK_EVERY = 64  # writes between looks at the folder: one stat costs as much as a write


def new_incarnation() -> str:
    """Name of this life of a process: milliseconds since 1970, then chance; sorts by start."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(3).hex()}"


class RecordFileWriter:
    """Appends frames for one incarnation of one rank. ``fault`` says in words why nothing is written, or ''."""

    def __init__(self, run: RunDirectory, role: str, rank: int, incarnation: str) -> None:
        self._run = run
        self._file = RecordFile(role, rank, incarnation, 0)
        self._fd = -1
        self._lock_fd = -1
        self._size = 0
        self._older = 0  # bytes of earlier parts that the sidecar has not taken yet
        self._writes = 0
        self._slow_at: list[int] = []
        self._began = False
        self.fault = ""
        self.off = False

    def ready(self) -> bool:
        """True where a write may be tried; opens the next part when one is due. Call before each write."""
        self._writes += 1
        if self.off:
            return False
        if self._fd >= 0 and self._size < PART_BYTES and self._writes % _CHECK_EVERY:
            return True
        try:
            if self._fd >= 0 and self._size < PART_BYTES and os.fstat(self._fd).st_nlink:
                self._older = self._outstanding()
                return True
            if self._fd < 0 and self.fault and self._writes % _CHECK_EVERY:
                return False  # it failed before: look again only now and then
            self._open_next()
        except OSError as error:
            self.fault = str(error)
            return False
        return True

    def began(self) -> bool:
        """True once after a new part was begun: its reader needs Hello and schema again."""
        began, self._began = self._began, False
        return began

    def write(self, frames: bytes | bytearray) -> bool:
        """Append with one write(2), after ``ready``; False where nothing was appended."""
        began = time.perf_counter()
        try:
            done = os.write(self._fd, frames)
        except OSError as error:
            self.fault = f"{self._file.name}: {error.strerror}"
            return False
        self._watch_time(time.perf_counter() - began)
        if done != len(frames):
            self._take_back(done)
            return False
        self._size += done
        return True

    def room(self) -> float:
        """Share of the cap that is still free, 0 to 1. What the sidecar has taken counts as free."""
        return max(0.0, 1.0 - (self._older + self._size) / CAP_BYTES)

    def close(self) -> None:
        """Close the file; a later write opens the next part."""
        for fd in (self._fd, self._lock_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._lock_fd = -1

    def forget(self) -> None:
        """Write nothing more, and leave the parent's descriptors and lock alone: called in a forked child."""
        self._fd = self._lock_fd = -1
        self.off = True
        self.fault = "this process was forked from the one that writes this rank's records"

    def _open_next(self) -> None:
        """Open the next part; the first time, make the folder and take this rank's lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        os.makedirs(self._run.records, mode=0o700, exist_ok=True)
        check_folder(self._run.path)
        check_folder(self._run.records)
        if self._lock_fd < 0:
            self._take_lock()
        self._older = self._outstanding()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(os.path.join(self._run.records, self._file.name), flags, 0o600)
        self._file = self._file._replace(part=self._file.part + 1)
        self._size = 0
        self.fault = ""
        self._began = True

    def _take_lock(self) -> None:
        """One writer a rank: the second one of the same rank writes nothing and says so."""
        path = os.path.join(self._run.records, f".{self._file.role}-{self._file.rank:05d}.lock")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(f"{path} is not a regular file")
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            self.off = True
            raise OSError(f"another process writes the records of {self._file.role} {self._file.rank}") from None
        except OSError:
            os.close(fd)
            raise
        self._lock_fd = fd

    def _outstanding(self) -> int:
        """Bytes of this rank's earlier parts, of any incarnation, that still lie in the folder."""
        prefix = f"{self._file.role}-{self._file.rank:05d}-"
        current = self._file._replace(part=self._file.part - 1).name
        total = 0
        with os.scandir(self._run.records) as entries:
            for entry in entries:
                if entry.name.startswith(prefix) and entry.name != current:
                    total += entry.stat(follow_symlinks=False).st_size
        return total

    def _watch_time(self, seconds: float) -> None:
        """Switch off where the folder is slow: a trainer must not pay for a sick disk."""
        if seconds < SLOW_SECONDS:
            return
        self._slow_at = [w for w in self._slow_at if w > self._writes - SLOW_WINDOW] + [self._writes]
        if len(self._slow_at) >= SLOW_LIMIT:
            self.off = True
            self.fault = (
                f"{SLOW_LIMIT} of {SLOW_WINDOW} writes took over {SLOW_SECONDS * 1e3:.0f} ms: telemetry is off;"
                f" put the run directory on tmpfs or a local disk"
            )

    @property
    def slow(self) -> int:
        """Slow writes among the last hundred."""
        return len(self._slow_at)

    def _take_back(self, done: int) -> None:
        """Undo a write that the disk cut short, so that the next frame does not begin inside it."""
        self.fault = f"{self._file.name}: only {done} bytes fitted on the disk"
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            self._size += done
