"""Usual: where the values of a series lie, and how far a new one is from there.

Robust: median and median absolute deviation, of logarithms where the values allow it. Both are taken from the values
in order, so that of a hundred logarithms a dozen are needed: this is the dearest part of a healthy step.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

_SIGMA = 1.4826  # standard deviations in a median absolute deviation, for normal values
_POSITIVE = 0.9  # share of values that must be above 0 for logarithms: a KL begins at 0 and is positive ever after


class Usual(NamedTuple):
    """Median and standard deviation as the median absolute deviation gives it; of logarithms where ``log``."""

    middle: float
    spread: float
    log: bool

    @property
    def value(self) -> float:
        """The median in the series' own unit."""
        return math.exp(self.middle) if self.log else self.middle

    def at(self, distance: float) -> float:
        """The value that lies so many spreads above the median, in the series' own unit."""
        there = self.middle + distance * self.spread
        return math.exp(there) if self.log else there

    def distances(self, values: Iterable[float]) -> list[float]:
        """How many spreads each value lies above the median; minus infinity where there is no logarithm of it."""
        middle, spread, log = self.middle, self.spread, math.log
        if not self.log:
            return [(v - middle) / spread for v in values]
        return [(log(v) - middle) / spread if v > 0 else -math.inf for v in values]


def usual(values: Sequence[float], *, log: bool, floor: float) -> Usual | None:
    """The Usual of ``values``; None where they do not vary at all and give no scale.

    The spread is at least ``floor`` of the median (5 %): a series that hardly moves must not
    alarm at its first breath. ``log`` holds where nine of ten values are above 0, and plain values are taken elsewhere.
    """
    ordered = sorted(values)
    positive = _positive(ordered) if log else []
    if positive and len(positive) >= _POSITIVE * len(ordered):
        middle, spread = _robust(positive, math.log)
        return Usual(middle, max(spread, math.log1p(floor), 1e-12), True)
    middle, spread = _robust(ordered, float)
    spread = max(spread, floor * abs(middle))
    return Usual(middle, spread, False) if spread > 0 else None


def _positive(ordered: Sequence[float]) -> Sequence[float]:
    return ordered if ordered[0] > 0 else [v for v in ordered if v > 0]


def _robust(ordered: Sequence[float], scale: Callable[[float], float]) -> tuple[float, float]:
    """Median and spread of what ``scale``, which keeps their order, makes of the values."""
    half, odd = divmod(len(ordered), 2)
    if odd:
        middle = scale(ordered[half])
        return middle, _SIGMA * _reach(ordered, scale, middle, half + 1)
    middle = (scale(ordered[half - 1]) + scale(ordered[half])) / 2
    return middle, _SIGMA * (_reach(ordered, scale, middle, half) + _reach(ordered, scale, middle, half + 1)) / 2


def _reach(ordered: Sequence[float], scale: Callable[[float], float], middle: float, count: int) -> float:
    """How far the ``count`` values nearest to the middle reach; they lie side by side."""
    low, high = 0, len(ordered) - count
    while low < high:
        place = (low + high) // 2
        if middle - scale(ordered[place]) > scale(ordered[place + count - 1]) - middle:
            low = place + 1
        else:
            high = place
    reach = max(middle - scale(ordered[low]), scale(ordered[low + count - 1]) - middle)
    if low:
        reach = min(reach, max(middle - scale(ordered[low - 1]), scale(ordered[low + count - 2]) - middle))
    return reach
