"""Strokes: numbers drawn with characters, in Unicode where the terminal's encoding has them, else in ASCII."""

import math
from collections.abc import Sequence
from typing import NamedTuple

ODD = "x"  # a number that is not finite: drawn, never left out


class Strokes(NamedTuple):
    """The characters to draw with. ``levels`` rise from nothing to all."""

    levels: str
    full: str
    empty: str
    rule: str


UNICODE = Strokes("▁▂▃▄▅▆▇█", "█", "░", "─")
ASCII = Strokes("_.:-=+*#", "#", ".", "-")


def for_encoding(encoding: str) -> Strokes:
    """Strokes that a terminal of that encoding can show."""
    try:
        "".join(UNICODE).encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return ASCII
    return UNICODE


def bar(strokes: Strokes, value: float, width: int) -> str:
    """A horizontal bar of ``width`` characters for a share from 0 to 1."""
    if not math.isfinite(value):
        return ODD * width
    filled = round(min(1.0, max(0.0, value)) * width)
    return strokes.full * filled + strokes.empty * (width - filled)


def sparkline(strokes: Strokes, values: Sequence[float], width: int, span: tuple[float, float]) -> str:
    """The last ``width`` values as rising characters within ``span`` (lowest, highest), right-aligned."""
    low, high = span
    top = len(strokes.levels) - 1
    scale = top / (high - low) if high > low else 0.0
    drawn = [
        strokes.levels[round(min(top, max(0.0, (v - low) * scale)))] if math.isfinite(v) else ODD
        for v in values[-width:]
    ]
    return "".join(drawn).rjust(width)


def span_of(values: Sequence[float]) -> tuple[float, float]:
    """Lowest and highest of the finite values; 0 and 1 where there are none."""
    finite = [v for v in values if math.isfinite(v)]
    return (min(finite), max(finite)) if finite else (0.0, 1.0)


def logarithm(value: float) -> float:
    """log10 for a log scale: what is not positive stands at its bottom, what is not finite stays so."""
    return math.log10(max(value, 1e-6)) if math.isfinite(value) else value


def number(value: float, width: int, digits: int) -> str:
    """The number in ``width`` characters, or how it is spelled where it is not finite."""
    if math.isnan(value):
        return "nan".rjust(width)
    if math.isinf(value):
        return ("inf" if value > 0 else "-inf").rjust(width)
    text = f"{value:{width}.{digits}f}"
    return text if len(text) <= width else f"{value:{width}.0e}"[:width].rjust(width)
