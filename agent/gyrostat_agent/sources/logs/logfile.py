"""LogFile: a log on disk, followed by offset through growth, truncation, replacement and rotation.

Nothing about the file is trusted: a FIFO or a device is not opened, a file that vanishes is said so, and one pass
reads no more than a bound. What was read but not yet told whole is read again after a restart.
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.gathered import Found
from gyrostat_agent.sources.logs.lines import MOST, Line, Lines, clean
from gyrostat_agent.sources.logs.log import Log
from gyrostat_agent.sources.logs.recognise import recognise
from gyrostat_agent.sources.logs.said import Fault, Told

CHUNK = 1 << 20
_HEAD = 8 << 20  # bytes in which a format must have shown itself
_TAIL = 256  # last bytes that were read, by which a file is known again
_FEW = 200  # lines of a growing file, fewer of which say nothing about its format,
_ROWS = 10  # unless so many are rows of steps as they are: a run of a minute a step cannot wait for the former


class LogError(Exception):
    """A file that cannot be read as a log, in words."""


class LogFile:
    """One file. ``form`` None: recognised by itself, else ``fallback`` when enough has come; from ``offset`` on.

    ``log`` is there once the format is known.
    """

    def __init__(
        self, path: str, formats: Mapping[str, Format], fallback: Format, form: Format | None = None, offset: int = 0,
        faults: Callable[[str], Fault | None] | None = None,
    ) -> None:  # fmt: skip
        self.path = path
        self.log: Log | None = None
        self.offset = offset
        self._formats, self._fallback, self._form, self._faults = formats, fallback, form, faults
        self._fd, self._inode, self._life, self._tail = -1, (0, 0), 0, b""
        self._looked = offset  # for error lines, before the format is known

    def read(self, most: int = CHUNK, *, last: bool = False) -> Iterator[Found]:
        """What the file has gained, up to ``most`` bytes; with ``last`` what it ends with too. Raises LogError."""
        self._open()
        if self.log is None and not self._begin(last):
            yield from self._early()
            return
        assert self.log is not None
        data = os.pread(self._fd, most, self.offset)
        self.offset += len(data)
        self._tail = (self._tail + data)[-_TAIL:]
        yield from self.log.feed(data)
        if last and not data:
            yield from self.log.end()

    @property
    def at_end(self) -> bool:
        """True where nothing lies behind what has been read."""
        return self._fd >= 0 and self.offset >= os.fstat(self._fd).st_size

    @property
    def settled(self) -> int:
        """The offset from which another reader would go on: the begin of a line that is not ended yet."""
        return self.offset - (self.log.held if self.log else 0)

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _open(self) -> None:
        """Open it, or notice that it is another one, or shorter than it was: then it is read from its beginning."""
        try:
            now = os.stat(self.path)
        except OSError as error:
            raise LogError(f"{self.path}: {error.strerror}") from None
        if not stat.S_ISREG(now.st_mode):
            raise LogError(f"{self.path}: no regular file; give a file that a trainer writes")
        if self._fd >= 0 and (now.st_dev, now.st_ino) == self._inode and self._goes_on(now.st_size):
            return
        again = self._fd >= 0
        self.close()
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW * again)
        except OSError as error:
            raise LogError(f"{self.path}: {error.strerror}") from None
        self._inode = (now.st_dev, now.st_ino)
        if again or now.st_size < self.offset:
            self._life += 1
            self.offset, self.log, self._tail, self._looked = 0, None, b"", 0

    def _goes_on(self, size: int) -> bool:
        """True where what was read is still there: a file begun anew may have outgrown it already."""
        if size < self.offset:
            return False
        return os.pread(self._fd, len(self._tail), self.offset - len(self._tail)) == self._tail

    def _begin(self, last: bool) -> bool:
        """Know the format; False where too little has come to tell."""
        form = self._form or recognise(self._head(), self.path, self._formats)
        if form is None:
            size = os.fstat(self._fd).st_size
            if not last and size < _HEAD and not self._is_enough():
                return False
            form = self._fallback
        path, life = os.path.abspath(self.path), f"{self._inode} {self._life}"
        self.log = Log(form, f"log-{_short(path)}.{_short(life)}", self._faults)
        return True

    def _early(self) -> Iterator[Found]:
        """Error lines before any format shows itself: a run may die of them. What stands before them is done with."""
        if self._faults is None:
            return
        data = os.pread(self._fd, _HEAD, self._looked)
        for part in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            self._looked += len(part)
            line = clean(part[:MOST].rstrip(b"\r\n"))
            if fault := self._faults(line.text):
                self.offset = self._looked
                yield fault._replace(rank=max(line.rank, fault.rank, 0))

    def _is_enough(self) -> bool:
        """True where so much has come that no format will show itself any more."""
        reader, rows, count = self._fallback.reader(), 0, 0
        for count, line in enumerate(self._head(), 1):  # noqa: B007
            rows += any(isinstance(one, Told) and one.step is not None for one in reader.read(line))
        return count >= _FEW or rows >= _ROWS

    def _head(self) -> Iterator[Line]:
        lines, offset = Lines(), 0
        with contextlib.suppress(OSError):
            while offset < _HEAD and (data := os.pread(self._fd, CHUNK, offset)):
                offset += len(data)
                yield from lines.feed(data)
        yield from lines.end()


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
