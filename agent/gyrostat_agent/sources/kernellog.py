"""Kernel log: the lines that /dev/kmsg gains while the agent runs, taken without waiting.

Called by ``hosts``. A container seldom may read it; then ``fault`` says so, and XIDs come by the driver's events alone.
"""

import errno
import os

_RECORD = 8192  # bytes: longer records do not exist
_MOST = 1000  # records of one call


class KernelLog:
    """Follows the log from its end. ``fault`` says why it cannot be read, or is ''."""

    def __init__(self, path: str) -> None:
        self.fault = ""
        self._path = path
        self._fd = -1
        self._rest = b""
        self._open()

    def read(self) -> list[str]:
        """The messages that are new."""
        lines: list[str] = []
        for _ in range(_MOST if self._fd >= 0 else 0):
            try:
                data = os.read(self._fd, _RECORD)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.EPIPE:  # the kernel has overwritten what was next: it goes on behind it
                    continue
                self.fault = f"{self._path} can no longer be read ({error.strerror})"
                self.close()
                break
            if not data:
                break
            lines += self._messages(data)
        return lines

    def close(self) -> None:
        """Let go of it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.fault = f"{self._path} cannot be read ({error.strerror}), so XIDs are told by the driver alone"
            return
        try:
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError:  # a pipe has no end to go to
            return

    def _messages(self, data: bytes) -> list[str]:
        """``priority,number,microseconds,flags;message``; lines that begin with a blank say more of the one before."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-_RECORD:]
        return [
            line.partition(b";")[2].decode("utf-8", "replace")
            for line in whole
            if b";" in line and not line.startswith(b" ")
        ]
