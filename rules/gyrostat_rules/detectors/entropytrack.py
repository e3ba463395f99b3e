"""Track: the newest of one process's entropy, and what the run began with, which all looks at it share."""

import math
from itertools import accumulate
from typing import NamedTuple

from gyrostat_rules.profile import reference
from gyrostat_rules.state import Window

_SMOOTH = 0.8  # weight of what was, in the running mean
_LOOKED_AT = 64  # newest values; the mean has forgotten what lies before
LEAST = 10  # rows without which nothing is said, but of an entropy that is next to nothing
_START = (5, 25)  # places of the values that the run is measured by: its first ones are still of the base model


class Track(NamedTuple):
    """The newest finite values, their running mean, what the run began with (NaN: not known), and the floor.

    ``first``: median of the very first values. ``settled``: all the rows that the start is taken from have been told.
    """

    steps: list[int]
    values: list[float]
    means: list[float]
    start: float
    first: float
    floor: float
    settled: bool


def track_of(window: Window, floor: float, relative: float) -> Track | None:
    """The track of a window, its floor ``floor`` nats or ``relative`` times the start, the smaller; None: no values."""
    steps, values = window.steps[-_LOOKED_AT:], window.values[-_LOOKED_AT:]
    if not math.isfinite(sum(values)):
        finite = [(step, value) for step, value in zip(steps, values, strict=True) if math.isfinite(value)]
        steps, values = [step for step, _ in finite], [value for _, value in finite]
    if not values:
        return None
    means = list(accumulate(values, lambda mean, value: _SMOOTH * mean + (1 - _SMOOTH) * value))
    start = reference(window, *_START, least=1) if len(window.values) >= LEAST else math.nan
    first = reference(window, 0, _START[0], least=1)
    # No floor where the start is not known yet: many a run begins below the fixed one.
    lowest = min(floor, relative * start) if math.isfinite(start) else math.nan
    settled = len(window.values) >= _START[1]
    return Track(steps, values, means, start, first if math.isfinite(first) else start, lowest, settled)
