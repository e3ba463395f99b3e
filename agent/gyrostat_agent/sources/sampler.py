"""Sampler: takes samples of the machine in a thread of its own, so that a driver which hangs hangs nobody else.

Called by the GPU and the host source. A call into the driver of a GPU that is falling off its bus was seen to last for
minutes, and that is when the loop must go on deciding. One sample is in flight at a time; time is what the caller says.
"""

import math
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")
_LAST_BREATH_SECONDS = 1.0


class Sampler(Generic[T]):
    """Calls ``take`` at most once in ``every`` seconds. ``wake`` is called from its thread when a sample is there.

    ``end`` is called in the same thread when it is closed. The thread begins with the first sample, and keeps no
    process from ending.
    """

    def __init__(
        self, take: Callable[[float], T], end: Callable[[], None], every: float, wake: Callable[[], None]
    ) -> None:
        self._take, self._end, self._every, self._wake = take, end, every, wake
        self._asked: SimpleQueue[float | None] = SimpleQueue()
        self._taken: deque[T | Exception] = deque()
        self._thread: threading.Thread | None = None
        self._asked_at = -math.inf
        self._in_flight = False

    def drain(self, now: float) -> list[T | Exception]:
        """The sample that has come in, or what kept it from being taken; asks for the next where that is due."""
        came = []
        while self._taken:
            came.append(self._taken.popleft())
            self._in_flight = False
        if not self._in_flight and not 0 <= now - self._asked_at < self._every:  # a clock that was set back too
            self._ask(now)
        return came

    def waiting(self, now: float) -> float:
        """Seconds for which the sample in flight has not come; 0 where none is in flight."""
        return max(0.0, now - self._asked_at) if self._in_flight and not self._taken else 0.0

    def close(self) -> None:
        """End the thread; one that hangs in a driver is left behind."""
        if self._thread is None:
            self._end()
        else:
            self._asked.put(None)
            self._thread.join(_LAST_BREATH_SECONDS)

    def _ask(self, now: float) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gyrostat-sampler", daemon=True)
            self._thread.start()
        self._asked_at, self._in_flight = now, True
        self._asked.put(now)

    def _run(self) -> None:
        while (now := self._asked.get()) is not None:
            try:
                sample: T | Exception = self._take(now)
            except Exception as error:  # told as a fault; the next sample may be well
                sample = error
            self._taken.append(sample)
            self._wake()
        self._end()
