"""PostBox: rows on their way from the threads that receive them to the loop. Bounded; it never waits."""

import threading
from collections.abc import Callable, Sequence

from gyrostat_agent.sources.logs.said import Told

_MOST = 20_000  # rows: an hour of one a step at five steps a second


class PostBox:
    """``wake`` is called, from the thread that puts, when there is something to drain."""

    def __init__(self, wake: Callable[[], None] = lambda: None, most: int = _MOST) -> None:
        self._wake, self._most = wake, most
        self._rows: list[Told] = []
        self._lock = threading.Lock()

    @property
    def full(self) -> bool:
        """True where so many wait that whoever posts must post again later."""
        return len(self._rows) >= self._most

    def put(self, rows: Sequence[Told]) -> None:
        """Take rows in; all of one post, for half of one would be told twice."""
        with self._lock:
            self._rows += rows
        if rows:
            self._wake()

    def drain(self) -> list[Told]:
        """The rows since the last call, in the order in which they came."""
        with self._lock:
            rows, self._rows = self._rows, []
        return rows
