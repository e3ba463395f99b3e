"""The tail: what the supervisor does so that the command's own output is read; ``tee`` does the reading.

Each of stdout and stderr is treated by what it is. A terminal is left alone: a pipe would take the progress bars away.
A file is left alone too, and read where it lies. Anything else is put behind a pipe of ours, whose reading end the
supervisor holds as well: a tee that dies is begun again, and the command never writes to nobody.
"""

import contextlib
import fcntl
import os
import signal
import stat
import sys
import termios
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gyrostat.wire import RunDirectory
from gyrostat_agent.childprocess import Action, StartError, start
from gyrostat_agent.launch import tee

LOG = "output.log"  # in the run directory, for all lives of the command; the supervisor's before in output.log.1
_NAMES = {1: "stdout", 2: "stderr"}
_ROOM = 1 << 20  # bytes that a pipe holds while its tee is begun again
_HIGH = 10  # descriptors of ours stay clear of those that a command may expect
_PAUSE = 1.0  # seconds between starts of a tee that keeps dying
_SETTLE = 0.5  # seconds that the news of an end waits for its last words
_ALL = frozenset(signal.valid_signals())


@dataclass(frozen=True, slots=True)
class Plan:
    """How a command's output is read: descriptors to put behind a pipe, to follow as files, and why others are not."""

    piped: tuple[int, ...] = ()
    followed: tuple[int, ...] = ()
    left: Mapping[int, str] | None = None

    @property
    def reads(self) -> bool:
        """True where anything is read."""
        return bool(self.piped or self.followed)


def plan(*, terminals: bool = False) -> Plan:
    """What can be done with our own stdout and stderr; ``terminals`` are put behind pipes only where asked for."""
    kinds = {fd: _kind(fd) for fd in _NAMES}
    if terminals:
        kinds = {fd: "pipe" if kind == "a terminal" else kind for fd, kind in kinds.items()}
    piped = tuple(fd for fd, kind in kinds.items() if kind == "pipe")
    followed = tuple(fd for fd, kind in kinds.items() if kind == "file")
    left = {fd: f"{_NAMES[fd]} is {kind}" for fd, kind in kinds.items() if kind not in ("pipe", "file")}
    if len(followed) == 2 and _same(1, 2):
        followed = (1,)
    return Plan(piped, followed, left)


class Tail:
    """Reads by a plan into ``output.log`` of a run directory. ``say`` gets one line for the operator."""

    def __init__(self, chosen: Plan, run: RunDirectory, say: Callable[[str], None]) -> None:
        self._plan, self._run, self._say = chosen, run, say
        self._log = os.path.join(run.path, LOG)
        self._streams: list[_Stream] = []
        self._said = False

    def begin(self, environment: Mapping[str, str]) -> None:
        """Before the first life of the command: the pipes are there, and their tees."""
        self._environment = environment
        if not self._plan.reads:
            return
        self._fresh()
        same = len(self._plan.piped) == 2 and _same(1, 2)  # 2>&1: one pipe keeps the order
        for fd in self._plan.piped[:1] if same else self._plan.piped:
            reads, writes = _pipe()
            self._streams.append(_Stream("copy", reads, fd, writes, self._plan.piped if same else (fd,)))
        for fd in self._plan.followed:
            with contextlib.suppress(OSError):
                self._streams.append(_Stream("follow", _reopened(fd), _place(fd), -1, ()))
        self.tend()
        for stream in [s for s in self._streams if not s.pid]:  # then the command writes where it would without us
            self._streams.remove(stream)
            stream.finish()
            stream.close()

    def actions(self) -> list[Action]:
        """What a life of the command is started with."""
        return [(os.POSIX_SPAWN_DUP2, s.writes, fd) for s in self._streams if s.writes >= 0 for fd in s.fds]

    def settle(self) -> None:
        """A life of the command has ended: wait a moment for what it wrote to be read."""
        began = time.monotonic()
        least = tee.PAUSE if self._plan.followed else 0.0
        while (waited := time.monotonic() - began) < least or (not self.is_read() and waited < _SETTLE):
            time.sleep(0.005)

    def tend(self) -> None:
        """Start the tees that do not run, where that is due."""
        now = time.monotonic()
        for stream in self._streams:
            if not stream.pid and stream.reads >= 0 and now >= stream.due:
                stream.due = now + _PAUSE
                self._start(stream)

    def ended(self, pid: int, status: int) -> bool:
        """A child was reaped; True where it was a tee. One whose reader has gone leaves the command without, too."""
        for stream in self._streams:
            if stream.pid == pid:
                stream.pid = 0
                if status in (0, tee.READER_GONE):
                    stream.close()
                else:
                    stream.due = min(stream.due, time.monotonic() + 0.05)
                    self.tend()
                return True
        return False

    def finish(self) -> None:
        """The last life has ended: no more of ours will be written."""
        for stream in self._streams:
            stream.finish()

    def is_read(self) -> bool:
        """True once all that the command wrote has been passed on."""
        return not any(s.pid and s.unread() for s in self._streams)

    def is_over(self) -> bool:
        """True once no tee is left: nobody holds the command's output open any more."""
        return not any(s.pid for s in self._streams)

    def _fresh(self) -> None:
        """An empty copy under the name that the agent follows; the one before stays beside it."""
        draft = f"{self._log}.new"
        try:
            with contextlib.suppress(FileNotFoundError):
                os.rename(self._log, f"{self._log}.1")
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            os.rename(draft, self._log)
        except OSError as error:
            self._say(f"{self._log} cannot be written: {error.strerror}; the command's output is not read")

    def _start(self, stream: "_Stream") -> None:
        words = (stream.what, str(stream.reads), str(stream.other), self._log, self._run.records, str(os.getpid()))
        argv = [sys.executable, "-I", "-S", tee.__file__, *words]
        os.set_inheritable(stream.reads, True)
        try:
            stream.pid = start(argv, self._environment, _ALL, actions=_nothing_to_read(), setsid=True)
        except StartError as error:
            if not self._said:
                self._said = True
                self._say(f"the command's output cannot be passed on yet, it waits: {error}")
        finally:
            os.set_inheritable(stream.reads, False)


@dataclass(slots=True)
class _Stream:
    """``other`` is where a pipe's bytes go, or from where on a file is read. ``writes`` -1: the command's own."""

    what: str
    reads: int
    other: int
    writes: int
    fds: tuple[int, ...]
    pid: int = 0
    due: float = 0.0

    def unread(self) -> bool:
        """True while a pipe holds something."""
        if self.what != "copy" or self.reads < 0:
            return False
        return int.from_bytes(fcntl.ioctl(self.reads, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder) > 0

    def finish(self) -> None:
        if self.writes >= 0:
            os.close(self.writes)
            self.writes = -1
        if self.what == "follow" and self.pid:
            with contextlib.suppress(OSError):
                os.kill(self.pid, tee.ENDS)

    def close(self) -> None:
        """Let go of the reading end: with the tee gone, the command learns that nobody reads."""
        if self.reads >= 0:
            os.close(self.reads)
            self.reads = -1


def _kind(fd: int) -> str:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return "closed"
    if os.isatty(fd):
        return "a terminal"
    if not stat.S_ISREG(mode):
        return "pipe"
    try:
        os.close(_reopened(fd))
    except OSError as error:
        return f"a file that cannot be read ({error.strerror})"
    return "file"


def _reopened(fd: int) -> int:
    """The same file for reading, from a place of its own."""
    return _high(os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY))


def _place(fd: int) -> int:
    """Where the command's first byte will stand: what lies before it is not this run's."""
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND:
        return os.fstat(fd).st_size
    return os.lseek(fd, 0, os.SEEK_CUR)


def _same(one: int, other: int) -> bool:
    first, second = os.fstat(one), os.fstat(other)
    return (first.st_dev, first.st_ino, first.st_rdev) == (second.st_dev, second.st_ino, second.st_rdev)


def _pipe() -> tuple[int, int]:
    reads, writes = (_high(fd) for fd in os.pipe())
    with contextlib.suppress(OSError):
        fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, _ROOM)  # more than a user may have: it stays as it is
    return reads, writes


def _high(fd: int) -> int:
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    finally:
        os.close(fd)


def _nothing_to_read() -> list[Action]:
    return [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
