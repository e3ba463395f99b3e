"""Virtual time: the SDK's modules and the command files read this clock, so that an hour costs nothing."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from unittest.mock import patch

from gyrostat_agent.sources import commands

START = 1_700_000_000.0


class Clock:
    """What the patched modules use of ``time``; every look at nanoseconds is one later than the last."""

    def __init__(self) -> None:
        self.now = START
        self._looks = 0
        self._lives = 0

    def time(self) -> float:
        return self.now

    def time_ns(self) -> int:
        self._looks += 1
        return int(self.now * 1e9) + self._looks

    def monotonic(self) -> float:
        return self.now

    perf_counter = monotonic

    def new_incarnation(self, *_: object) -> str:
        """Names that sort by start and are the same in every run of a schedule."""
        self._lives += 1
        return f"{self._lives:018x}"


@contextmanager
def virtual(clock: Clock) -> Iterator[None]:
    """Let the SDK live by ``clock``, whichever of its modules look at the time."""
    with ExitStack() as undone:
        for name, module in list(sys.modules.items()):
            if name.startswith("gyrostat.") or module is commands:
                for look, own in _looks(module, clock):
                    undone.enter_context(patch.object(module, look, own))
        undone.enter_context(patch("gyrostat.telemetry.new_incarnation", clock.new_incarnation))
        yield


def _looks(module: ModuleType, clock: Clock) -> Iterator[tuple[str, object]]:
    """The names by which a module looks at the time, and what they are to be."""
    if getattr(module, "time", None) is time:
        yield "time", clock
    for look in ("time_ns", "perf_counter", "monotonic"):
        if getattr(module, look, None) is getattr(time, look):
            yield look, getattr(clock, look)
