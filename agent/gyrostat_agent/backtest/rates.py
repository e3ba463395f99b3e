"""Rates, and how sure a few cases make of them (Wilson's score interval, 95 %)."""

import math
from typing import NamedTuple

_Z = 1.959963984540054  # of the normal distribution, 97.5 %


class Rate(NamedTuple):
    """A share of something, or None of nothing; ``low`` and ``high`` bound it."""

    value: float | None
    low: float = 0.0
    high: float = 1.0

    def times(self, factor: float) -> "Rate":
        """The same of so many."""
        return Rate(None if self.value is None else self.value * factor, self.low * factor, self.high * factor)


def wilson(count: int, of: int) -> Rate:
    """``count`` of ``of`` with its bounds (E. B. Wilson 1927, equation of the score interval).

    More than one a step is no share; it is bounded as one a step.
    """
    if not of:
        return Rate(None)
    share = min(count, of) / of
    middle = share + _Z * _Z / (2 * of)
    spread = _Z * math.sqrt(share * (1 - share) / of + _Z * _Z / (4 * of * of))
    whole = 1 + _Z * _Z / of
    low = 0.0 if not count else max(0.0, (middle - spread) / whole)
    return Rate(count / of, low, 1.0 if count >= of else min(1.0, (middle + spread) / whole))
