"""Pace: how many bytes a second may pass, on average; a token bucket that holds one part.

Called by ``upload`` and ``restore``, in one thread. Not promised: an even flow within a part, which goes as fast as
the line lets it.
"""

import math
import re
import time
from collections.abc import Callable

from gyrostat.wire.fields import clean
from gyrostat_agent.errors import SetupError

_RATE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([kKMGT]?)(i?)B?(?:/s)?")
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class Pace:
    """``rate`` is bytes a second, and math.inf for as fast as can be; clock and sleep count seconds."""

    def __init__(
        self,
        rate: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate, self._clock, self._sleep = rate, clock, sleep
        self._free_at = -math.inf

    def take(self, count: int) -> None:
        """Wait until ``count`` bytes may pass: until those before them have had their time."""
        now = self._clock()
        if self._free_at > now:
            self._sleep(self._free_at - now)
        self._free_at = max(now, self._free_at) + count / self._rate


def rate_of(said: str) -> float:
    """Bytes a second, from ``50MB``, ``1.5GiB`` or ``800KB/s``; '' is no limit. Raises SetupError."""
    found = _RATE.fullmatch(said.strip())
    rate = math.inf if not said else float(found[1]) * _unit(found[2].upper(), found[3]) if found else 0.0
    if rate < 1:
        raise SetupError(f"--bandwidth {clean(said)[:40]}: write bytes a second as 50MB, 800KB or 1.5GiB")
    return rate


def _unit(letter: str, binary: str) -> float:
    return float((1024 if binary else 1000) ** _POWER[letter])
