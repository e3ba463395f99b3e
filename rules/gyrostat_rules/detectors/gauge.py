"""Gauge: what a detector measures against what, whether it is breached or not.

Each detector's module makes its gauges beside its readings, from the same numbers, so that the two cannot differ. They
are for people who ask why a rule spoke or kept silent; the engine itself never asks for one.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from gyrostat_rules.detectors.looks import Look

Side = Literal["above", "below", "at least"]
ABOVE: Final = "above"
BELOW: Final = "below"
AT_LEAST: Final = "at least"


class Gauge(NamedTuple):
    """A measured ``value``, and the ``limit`` on whose ``side`` it is too much.

    ``series``: what was looked at, '' where it is no series. ``limit`` is NaN where there is none yet, or where none
    would do; ``sentence`` says why, and how the two were come by. ``measure``: what ``value`` is where it is not the
    newest value of the series itself.
    """

    labels: Mapping[str, str]
    series: str
    value: float
    limit: float
    side: Side
    sentence: str
    measure: str = ""

    @property
    def beyond(self) -> bool:
        """True where the value is on the wrong side; not yet a breach where several must be."""
        return _IS_BEYOND[self.side](self.value, self.limit)


_IS_BEYOND: Mapping[str, Callable[[float, float], bool]] = {
    ABOVE: lambda value, limit: value > limit,
    BELOW: lambda value, limit: value < limit,
    AT_LEAST: lambda value, limit: value >= limit,
}


def waits(look: Look, wanted: int) -> Gauge:
    """The gauge of a series that has told too few values for its rule to say anything."""
    sentence = f"{len(look.values)} values so far; nothing is said before {wanted}"
    return Gauge(look.labels, look.series, look.values[-1], math.nan, ABOVE, sentence)
