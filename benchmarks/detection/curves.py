"""Curves: the way a number takes under its noise, as one value a row."""

import math
from collections.abc import Sequence


def level(count: int, value: float) -> list[float]:
    """The same all along."""
    return [value] * count


def settle(count: int, first: float, last: float, pace: float) -> list[float]:
    """From ``first`` towards ``last``; after ``pace`` rows about a third of the way is left."""
    return [last + (first - last) * math.exp(-row / pace) for row in range(count)]


def climb(count: int, first: float, last: float, middle: float, width: float) -> list[float]:
    """An S from ``first`` to ``last``: half of the way is gone at row ``middle``, most of it within ``width``."""
    return [first + (last - first) / (1.0 + math.exp(-(row - middle) / (0.25 * width))) for row in range(count)]


def line(count: int, first: float, last: float) -> list[float]:
    """Straight from ``first`` to ``last``."""
    return [first + (last - first) * row / max(1, count - 1) for row in range(count)]


def rates(count: int, peak: float, warm_up: int, period: int = 0, lowest: float = 0.1) -> list[float]:
    """Learning rates: linear warm-up, then a cosine down to ``lowest`` of the peak, begun anew every ``period`` rows.

    ``period`` 0: it stays at its peak.
    """
    out = []
    for row in range(count):
        share = (row % period) / period if period else 0.0
        cosine = lowest + (1.0 - lowest) * 0.5 * (1.0 + math.cos(math.pi * share))
        out.append(peak * cosine * min(1.0, (row + 1) / max(1, warm_up)))
    return out


def weight(count: int, onset: int, rows: int) -> list[float]:
    """0 before ``onset``, rising in a line to 1 over ``rows``, and 1 from there on; 1 at once where ``rows`` is 0."""
    return [0.0 if row < onset else min(1.0, (row - onset + 1) / (rows + 1)) for row in range(count)]


def growth(count: int, onset: int, factor: float, rows: int) -> list[float]:
    """Factors that grow from 1 at ``onset`` to ``factor`` over ``rows``, by the same share each row, and stay there."""
    return [factor**share for share in weight(count, onset, rows)]


def first_below(values: Sequence[float], limit: float, since: int = 0) -> int:
    """The first row from ``since`` on whose value is below ``limit``; the last row where none is."""
    return next((row for row in range(since, len(values)) if values[row] < limit), len(values) - 1)


def first_above(values: Sequence[float], limit: float, since: int = 0) -> int:
    """The first row from ``since`` on whose value is above ``limit``; the last row where none is."""
    return next((row for row in range(since, len(values)) if values[row] > limit), len(values) - 1)
