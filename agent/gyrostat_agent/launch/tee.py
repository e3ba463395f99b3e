"""The tee: a process of its own between the command's output and where it goes, and the copy that the agent reads.

Started by ``tail`` as a script, with the standard library alone: ``tee.py copy|follow SOURCE TARGET LOG RECORDS``.
*copy* reads a pipe and writes to where the command's output would have gone, byte for byte: who reads slowly slows the
command, and who has gone ends it, as without us. *follow* reads a file that the command itself writes, and writes
nothing else. The copy is bounded, and what cannot be written to it is left out of it, never out of the output.

Does not promise: what a tee that was killed held in its hands, at most ``_CHUNK`` bytes.
"""

import contextlib
import errno
import os
import re
import select
import signal
import sys
import time

ENDS = signal.SIGRTMIN + 5  # ends `follow`; none that a cluster sends to all processes of a step
READER_GONE = 32  # exit status: whoever read the output has gone
_CHUNK = 1 << 16
_LINE = 1 << 16  # bytes of a line that has not ended, which then goes to the copy as it is
_HEAD, _KEPT = 1 << 20, 16 << 20  # bytes of the copy that stay: the first show what writes it, the last are unread
_SLOW, _SLOW_WRITES = 0.05, 3  # seconds of one write, and how many such in a row
_AWAY = 60.0  # seconds for which the copy is left alone then: the output must not wait for a disk
PAUSE = 0.2  # seconds between looks at a file
_BAR = 0.05  # seconds after which a progress bar is taken to stand
_OURS = re.compile(rb"(?:^|(?<=[\r\n]))gyrostat: [^\r\n]*[\r\n]+")
_KEEP_SIZE, _PUNCH = 1, 2  # linux/falloc.h


class Copy:
    """The lines of one stream in the file that the agent reads, whole ones, for the other stream writes there too.

    Nothing is written once a trainer tells its steps by the SDK: a file of its own lies in ``records`` then.
    """

    def __init__(self, path: str, records: str) -> None:
        self._path, self._records = path, records
        self._fd = -1
        self._held, self._bar = b"", False
        self._slow = 0
        self._punched = _HEAD
        self._looked = self._away = 0.0
        self._off = False
        self._said: set[str] = set()

    @property
    def waits(self) -> bool:
        """True where a progress bar is held that nothing need follow."""
        return bool(self._held) and not self._off and self._bar

    def take(self, data: bytes) -> None:
        """More of the stream. Raises nothing, and writes only what is a line."""
        if self._off or self._is_told():
            return
        data = self._held + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if len(data) - end > _LINE:
            end = len(data)
        self._held = data[end:]
        if end:
            self._bar = data[end - 1 : end] == b"\r"
            self._write(_without_ours(data[:end]))

    def end(self) -> None:
        """What is held goes out as a line: a bar that stands, or a stream that has ended."""
        held, self._held = self._held, b""
        if held and not self._off:
            self._write(held + (b"\r" if self._bar else b"\n"))

    def _is_told(self) -> bool:
        now = time.monotonic()
        if now - self._looked >= PAUSE:
            self._looked = now
            self._off = sdk_speaks(self._records)
        return self._off

    def _write(self, data: bytes) -> None:
        began = time.monotonic()
        if began < self._away or not data:
            return
        try:
            if self._fd < 0:
                flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
                self._fd = os.open(self._path, flags)
            os.write(self._fd, data)
            self._bound(os.fstat(self._fd).st_size)
        except OSError as error:
            self._say(f"not all that is printed can be read: {self._path}: {error.strerror}")
        self._slow = self._slow + 1 if time.monotonic() - began > _SLOW else 0
        if self._slow >= _SLOW_WRITES:
            self._slow, self._away = 0, time.monotonic() + _AWAY
            self._say(f"not all that is printed can be read: {self._path} is slow, and is left alone for {_AWAY:g} s")

    def _say(self, text: str) -> None:
        """Once, on stderr: an agent that is told nothing must not read as one that sees nothing wrong."""
        if text not in self._said:
            self._said.add(text)
            with contextlib.suppress(OSError):
                os.write(2, f"gyrostat: {text}\n".encode(errors="backslashreplace"))

    def _bound(self, size: int) -> None:
        """Give the disk back what has long been read. Offsets stay: the agent goes on where it was."""
        if size - _KEPT - self._punched < _HEAD:
            return
        if _punch(self._fd, self._punched, size - _KEPT - self._punched):
            self._punched = size - _KEPT
        else:
            self._off = True
            self._say(f"what is printed is read no more: {self._path} cannot be bounded on this file system")


def copy(source: int, target: int, kept: Copy) -> int:
    """Pass a pipe on until its last writer has closed it; the exit status."""
    look = select.poll()
    look.register(source, select.POLLIN)
    while True:
        if kept.waits and not look.poll(_BAR * 1000):
            kept.end()
        data = os.read(source, _CHUNK)
        if not data:
            kept.end()
            return 0
        kept.take(data)
        try:
            _write_all(target, data)
        except OSError:
            return READER_GONE


def follow(source: int, offset: int, kept: Copy, parent: int) -> int:
    """Read what a file gains beyond ``offset`` until told to end by ENDS, or until the supervisor has gone."""
    while True:
        last = signal.sigtimedwait({ENDS}, PAUSE) is not None or os.getppid() != parent
        size = os.fstat(source).st_size
        offset = 0 if size < offset else offset  # begun anew: logrotate, > /dev/stdout
        while data := os.pread(source, _CHUNK, offset):
            offset += len(data)
            kept.take(data)
        if last:
            kept.end()
            return 0
        if kept.waits:
            kept.end()


def sdk_speaks(records: str) -> bool:
    """True where a trainer has told something by the SDK in this run."""
    with contextlib.suppress(OSError):
        return any(name.startswith("trainer-") for name in os.listdir(records))
    return False


def _without_ours(data: bytes) -> bytes:
    """Lines without those of the supervisor and the agent, who write to the same file: they are no trainer's."""
    return _OURS.sub(b"", data) if b"gyrostat: " in data else data


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # somebody has made it so: wait as a writer would
            look = select.poll()
            look.register(fd, select.POLLOUT)
            look.poll()


def _punch(fd: int, offset: int, length: int) -> bool:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    done: int = libc.fallocate(fd, _KEEP_SIZE | _PUNCH, ctypes.c_long(offset), ctypes.c_long(length))
    return done == 0 or ctypes.get_errno() not in (errno.EOPNOTSUPP, errno.ENOSYS)


def main(words: list[str]) -> int:
    """``copy SOURCE TARGET`` or ``follow SOURCE OFFSET``, then LOG, RECORDS and the supervisor's PID.

    SOURCE and TARGET are descriptors. It is started with all signals blocked: Slurm sends them to every process of a
    step, and the output has no end before the command's.
    """
    what, source, other, log, records, parent = words
    kept = Copy(log, records)
    if what == "copy":
        return copy(int(source), int(other), kept)
    return follow(int(source), int(other), kept, int(parent))


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # nothing is left to be flushed or torn down
