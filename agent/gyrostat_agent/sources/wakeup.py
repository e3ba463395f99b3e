"""Wake-up: sleep until a record file grows, a command lies there, a verdict is in, or it is time to tick.

Inotify where the file system has it, else polling every 20 ms (measured: all sleeping readers cost the
same 50 µs wake-up; polling faster costs a tenth of a core for nothing).
"""

import contextlib
import os
import select

from inotify_simple import INotify, flags

POLL_SECONDS = 0.02
_EVENTS = flags.MODIFY | flags.CREATE | flags.MOVED_TO | flags.DELETE_SELF


class WakeUp:
    """Waits on folders and descriptors. ``ring`` may be called from another thread or a signal handler."""

    def __init__(self, folders: list[str]) -> None:
        self._read_fd, self.write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._read_fd, select.POLLIN)
        self._inotify: INotify | None = None
        self.polling = ""
        try:
            self._inotify = INotify(nonblocking=True)
            for folder in folders:
                self._inotify.add_watch(folder, _EVENTS)
            self._poll.register(self._inotify.fileno(), select.POLLIN)
        except OSError as error:
            self.polling = f"no inotify here ({error.strerror}): looking every {POLL_SECONDS * 1e3:.0f} ms"
        self._others: set[int] = set()

    def also(self, fds: set[int]) -> None:
        """Wait on these descriptors too, and no longer on what is not among them."""
        for fd in self._others - fds:
            with contextlib.suppress(KeyError, OSError):
                self._poll.unregister(fd)
        for fd in fds - self._others:
            self._poll.register(fd, select.POLLIN | select.POLLHUP)
        self._others = set(fds)

    def wait(self, seconds: float) -> None:
        """Sleep until something happens, at most ``seconds``."""
        limit = min(seconds, POLL_SECONDS) if self.polling else seconds
        self._poll.poll(max(0.0, limit) * 1e3)
        for fd in (self._read_fd, self._inotify.fileno() if self._inotify is not None and not self.polling else -1):
            with contextlib.suppress(BlockingIOError):
                while fd >= 0 and len(os.read(fd, 65536)) == 65536:
                    pass

    def ring(self) -> None:
        """End the sleep now."""
        with contextlib.suppress(BlockingIOError):
            os.write(self.write_fd, b"!")

    def close(self) -> None:
        """Let go of the descriptors."""
        if self._inotify is not None:
            self._inotify.close()
        os.close(self._read_fd)
        os.close(self.write_fd)
