"""The file that one rank writes its frames to: opened with care, rotated, capped, never waited for.

Called by Telemetry alone. Promises: one ``write(2)`` a call, a write cut short is taken back, an error is a
return value and never an exception. Does not promise durability over power loss: the page cache is the
queue, and it outlives both processes (`benchmarks/lost_records.py`).
"""

import fcntl
import os
import stat
import time
from time import monotonic, perf_counter

from gyrostat.wire.layout import RecordFile, RunDirectory
from gyrostat.wire.rights import check_folder

PART_BYTES = 4 << 20
CAP_BYTES = 64 << 20
SLOW_SECONDS = 0.05
SLOW_LIMIT, SLOW_WINDOW = 3, 100
_CHECK_EVERY = 64  # writes between looks at the folder: one stat costs as much as a write
_CHECK_SECONDS = 1.0  # where steps are slow, 64 of them are an hour: then a look a second costs nothing


def new_incarnation(run: RunDirectory, role: str, rank: int) -> str:
    """Name of this life of a process: milliseconds since 1970, then chance. Sorts behind every earlier life's.

    Also where the clock has been set back: a life that seems to be over has its files deleted as they are read.
    """
    return f"{max(time.time_ns() // 1_000_000, _newest_life(run, role, rank) + 1):012x}{os.urandom(3).hex()}"


def _newest_life(run: RunDirectory, role: str, rank: int) -> int:
    """Milliseconds in the newest name that this rank's files bear; -1 where there is none."""
    try:
        names = os.listdir(run.records) if run.path else []
        prefix = f"{role}-{rank:05d}-"
        return max((int(n[len(prefix) :][:12], 16) for n in names if n.startswith(prefix)), default=-1)
    except (OSError, ValueError):
        return -1


class RecordFileWriter:
    """Appends frames for one incarnation of one rank. ``fault`` says in words why nothing is written, or ''."""

    def __init__(self, run: RunDirectory, role: str, rank: int, incarnation: str) -> None:
        self._run = run
        self._file = RecordFile(role, rank, incarnation, -1)
        self._fd = -1
        self._lock_fd = -1
        self._size = 0
        self._older = 0  # bytes of other parts that the sidecar has not taken yet
        self._tries = 0
        self._look_at = 0.0
        self._slow_at: list[int] = []
        self._guarded = False
        self.part = -1  # number of the part being written
        self.used = 0.0  # share of the cap; what the sidecar has taken does not count
        self.fault = ""
        self.off = False

    def ready(self) -> bool:
        """True where a write may be tried; opens the next part when one is due. Call before each write."""
        self._tries += 1
        if self.off:
            return False
        due = not self._tries % _CHECK_EVERY or monotonic() >= self._look_at
        if self._fd >= 0 and self._size < PART_BYTES and not due:
            return True
        try:
            self._look_at = monotonic() + _CHECK_SECONDS if due else self._look_at
            if self._fd >= 0 and self._size < PART_BYTES and os.fstat(self._fd).st_nlink:
                self._older = self._outstanding()
            elif self._fd >= 0 or not self.fault or due:
                self._open_next()  # after a failure only now and then
            self.used = (self._older + self._size) / CAP_BYTES
            return self._fd >= 0
        except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
            self.fault = str(error)
            return False

    def write(self, frames: bytes) -> bool:
        """Append with one write(2), after ``ready``; False where nothing was appended."""
        began = perf_counter()
        try:
            done = os.write(self._fd, frames)
        except OSError as error:
            done = 0
            self.fault = f"{self._file.name}: {error.strerror}"
        if (seconds := perf_counter() - began) >= SLOW_SECONDS:
            self._count_slow(seconds)
        if done != len(frames):
            if done:
                self._take_back(done)
            return False
        self._size += done
        self.used = (self._older + self._size) / CAP_BYTES
        if self.fault and not self.off:
            self.fault = ""
        return True

    @property
    def slow(self) -> int:
        """Slow writes among the last hundred."""
        return sum(at > self._tries - SLOW_WINDOW for at in self._slow_at)

    def close(self) -> None:
        """Close the file and let go of this rank's lock; a later write opens the next part."""
        for fd in (self._fd, self._lock_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._lock_fd = -1

    def forget(self) -> None:
        """Write nothing more: called in a forked child.

        Its copies of the descriptors are closed, which leaves the parent's file and lock as they are. Kept
        open, they would hold the lock of a dead parent against the trainer that is started in its place.
        """
        self.off = True
        self.fault = "this process was forked from the one that writes this rank's records"
        try:
            self.close()
        except OSError:
            self._fd = self._lock_fd = -1

    def _open_next(self) -> None:
        """Open the next part; the first time, make the folders and take this rank's lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        for folder in (self._run.path, self._run.records):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            check_folder(folder)
        if self._lock_fd < 0 or not os.fstat(self._lock_fd).st_nlink:
            self._take_lock()
        if not self._guarded:
            self._guarded = True
            os.register_at_fork(after_in_child=self.forget)
        self._file = self._file._replace(part=self._file.part + 1)
        self._older = self._outstanding()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(os.path.join(self._run.records, self._file.name), flags, 0o600)
        self._size = 0
        self.fault = ""
        self.part = self._file.part

    def _take_lock(self) -> None:
        """One writer a rank: the second one of the same rank writes nothing and says so, until the first ends."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
        path = os.path.join(self._run.records, f".{self._file.role}-{self._file.rank:05d}.lock")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(f"{path} is not a regular file; remove it")
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise OSError(
                f"another process writes the records of {self._file.role} {self._file.rank} in {self._run.path};"
                " give each process its own rank"
            ) from None
        except OSError:
            os.close(fd)
            raise
        self._lock_fd = fd

    def _outstanding(self) -> int:
        """Bytes of this rank's other parts, of any incarnation, that still lie in the folder."""
        prefix = f"{self._file.role}-{self._file.rank:05d}-"
        current = self._file.name
        total = 0
        with os.scandir(self._run.records) as entries:
            for entry in entries:
                if entry.name.startswith(prefix) and entry.name != current:
                    total += _size(entry)
        return total

    def _count_slow(self, seconds: float) -> None:
        """Switch off where the folder is slow: a trainer must not pay for a sick disk."""
        self._slow_at = [at for at in self._slow_at if at > self._tries - SLOW_WINDOW] + [self._tries]
        if len(self._slow_at) >= SLOW_LIMIT:
            self.off = True
            self.fault = (
                f"{SLOW_LIMIT} of {SLOW_WINDOW} writes took over {SLOW_SECONDS * 1e3:.0f} ms, the last one"
                f" {seconds * 1e3:.0f} ms: telemetry is off; put the run directory on tmpfs or a local disk"
            )

    def _take_back(self, done: int) -> None:
        """Undo a write that the disk cut short, so that the next frame does not begin inside it."""
        self.fault = f"{self._file.name}: only {done} bytes fitted on the disk"
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            self._size += done


def _size(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0  # the sidecar took it while we looked
