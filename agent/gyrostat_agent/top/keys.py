"""Keys: waits for the next frame, or for somebody who types q; the terminal is as it was when it ends."""

import contextlib
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator

_END = ("q", "Q", "\x03", "\x1b")


@contextlib.contextmanager
def keys() -> Iterator[Callable[[float], bool]]:
    """A function that waits so many seconds and is True where somebody wants to end."""
    if not sys.stdin.isatty():
        yield _sleep
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd)
        yield _typed
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _typed(seconds: float) -> bool:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left)[0] and sys.stdin.read(1) in _END:
            return True
    return False
