"""MetricLoad: the newest view as an export now and then; while the collector is away, the last of them wait, packed.

With 64 ranks of 96 series an export is 440 KB, and a tenth of that packed.
"""

import time
import zlib
from collections import deque
from collections.abc import Sequence

from gyrostat_agent.otlppush.pace import Pace
from gyrostat_exporters.metrics import Latest
from gyrostat_exporters.otlp.metrics import metrics


class MetricLoad:
    """Exports by their own time, the oldest first."""

    signal = "metrics"

    def __init__(self, latest: Latest, pace: Pace) -> None:
        self._latest, self._pace = latest, pace
        self._began = time.time()  # the counters are this agent's own
        self._due = 0.0
        self._waiting: deque[bytes] = deque()
        self.dropped = 0

    def fill(self, *, last: bool = False) -> None:
        """Add an export where one is due, or where it is the last."""
        view, now = self._latest(), time.monotonic()
        if view is None or (now < self._due and not last):
            return
        self._due = now + self._pace.every
        self._waiting.append(zlib.compress(metrics(view, time.time(), self._began), 1))
        while len(self._waiting) > self._pace.exports:
            self._waiting.popleft()
            self.dropped += 1

    def batch(self, most: int) -> Sequence[bytes]:
        """One export at a time."""
        return list(self._waiting)[:1]

    def body(self, batch: Sequence[bytes]) -> bytes:
        """What to post."""
        return zlib.decompress(batch[0])

    def settle(self, many: int) -> None:
        """The first ``many`` are dealt with."""
        for _ in range(many):
            self._waiting.popleft()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def pause(self) -> float:
        """Seconds until there may be news."""
        return max(0.05, self._due - time.monotonic())
