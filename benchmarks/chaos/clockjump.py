"""Clock: the Unix time of a chaos run's processes, which jumps when a file says by how much.

Called first of all by each child of a run. A whole node jumps: trainer, supervisor and agent read the same file.
"""

import os
import time

FILE = "clock"
_LOOK_SECONDS = 0.05


class JumpingClock:
    """Stands in for ``time.time`` and ``time.time_ns``; clocks that only go forward are left alone."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, FILE)
        self._time, self._time_ns, self._monotonic = time.time, time.time_ns, time.monotonic
        self._offset = 0.0
        self._looked = 0.0

    def time(self) -> float:
        """Unix seconds."""
        return self._time() + self._look()

    def time_ns(self) -> int:
        """Unix nanoseconds."""
        return self._time_ns() + int(self._look() * 1e9)

    def _look(self) -> float:
        now = self._monotonic()
        if now - self._looked > _LOOK_SECONDS:
            self._looked = now
            try:
                with open(self._path, encoding="ascii") as file:
                    self._offset = float(file.read())
            except (OSError, ValueError):
                pass  # it has not jumped
        return self._offset


def install(folder: str) -> None:
    """Replace this process's clock. Call before anything takes its functions by name."""
    clock = JumpingClock(folder)
    time.time, time.time_ns = clock.time, clock.time_ns
