"""Spark: a curve of one line. What is not finite is drawn as itself: it is what people look for."""

import math
from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
_PLAIN = "_.-=+*#@"
ODD = "!"


def spark(values: Sequence[float], width: int, *, plain: bool = False) -> str:
    """The newest values in ``width`` characters, one each; of more, the last of each share. ``plain``: ASCII."""
    bars = _PLAIN if plain else _BARS
    drawn = _thinned(list(values), width)
    finite = [v for v in drawn if math.isfinite(v)]
    if not finite:
        return ODD * len(drawn)
    low, high = min(finite), max(finite)
    span = high - low
    scale = (len(bars) - 1) / span if span > 0 and math.isfinite(span) else 0.0
    level = len(bars) // 2 if not scale else 0
    return "".join(bars[round((v - low) * scale) or level] if math.isfinite(v) else ODD for v in drawn)


def _thinned(values: list[float], width: int) -> list[float]:
    """Of each share of the values one that is not finite, where there is one, else its last."""
    if len(values) <= width:
        return values
    shares = (values[len(values) * i // width : len(values) * (i + 1) // width] for i in range(width))
    return [next((v for v in share if not math.isfinite(v)), share[-1]) for share in shares]
