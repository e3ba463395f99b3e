"""Allowance: how often something may be done, with some of it saved up. Below servers that others can reach."""

import threading
import time
from collections.abc import Callable


class Allowance:
    """So many a second, ``burst`` at once; any thread may ask. ``clock`` gives seconds that never go back."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._clock = per_second, float(burst), clock
        self._left, self._filled = float(burst), clock()
        self._lock = threading.Lock()

    @property
    def spent(self) -> bool:
        """True where ``take`` would say no."""
        with self._lock:
            return self._refill() < 1.0

    def take(self) -> bool:
        """Use one up; False where none is left."""
        with self._lock:
            if self._refill() < 1.0:
                return False
            self._left -= 1.0
            return True

    def _refill(self) -> float:
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._filled) * self._per_second)
        self._filled = now
        return self._left
