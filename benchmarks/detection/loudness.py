"""Loudness: when a fault strikes, and how loud it is beside its run's own noise, from just clear to clear.

*Just clear* is a change by the least factor that anybody would call a fault, and by nine spreads of the run's own
noise: a fault that hides in the noise is nobody's fault to miss.
"""

import math
from collections.abc import Sequence
from random import Random

from course import told
from noise import robust

SPREADS = 9.0
_YOUNG = 0.2  # of the faults strike soon after a run's start


def onset(dice: Random, rows: int, earliest: int) -> int:
    """The row at which a fault strikes: soon after the start, or anywhere before the last quarter."""
    if dice.random() < _YOUNG:
        return dice.randrange(earliest, 2 * earliest)
    return dice.randrange(min(max(2 * earliest, rows // 5), 3 * rows // 4 - 1), 3 * rows // 4)


def factor(dice: Random, column: Sequence[float | None], at: int, least: float, most: float) -> float:
    """By how much a positive column is to grow at row ``at``: ``least`` to ``most`` times, clear of its noise.

    For a fall take the inverse.
    """
    low = max(least, math.exp(SPREADS * spread(column, at)))
    return float(low * max(1.0, most / low) ** dice.random())


def spread(column: Sequence[float | None], at: int, rows: int = 64) -> float:
    """Spread of the logarithm of the positive values in the rows before ``at``."""
    return robust([math.log(value) for value in told(column[max(0, at - rows) : at]) if value > 0])
