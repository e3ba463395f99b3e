"""Lanes: a few transfers beside each other, and no more; what waits is bounded, and the first failure ends it.

Called by ``upload`` and ``restore``. Memory is the lanes' parts and the one that is made ready.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

LANES = 3  # of 8 MiB: one stream of S3 gives 80 MB/s, and the parts stay far below 64 MiB


class Lanes:
    """As ``with``: at its end all is done, or, after a failure, what had not begun is dropped."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(LANES, thread_name_prefix="archive")
        self._under_way: deque[Future[None]] = deque()

    def send(self, job: Callable[[], None]) -> None:
        """Do ``job`` when a lane is free, waiting for that; raises what an earlier one raised."""
        while len(self._under_way) >= LANES:
            self._under_way.popleft().result()
        self._under_way.append(self._pool.submit(job))

    def drain(self) -> None:
        """Wait until all is done; raises what one of them raised."""
        while self._under_way:
            self._under_way.popleft().result()

    def __enter__(self) -> "Lanes":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is None:
                self.drain()
        finally:
            self._pool.shutdown(cancel_futures=True)
