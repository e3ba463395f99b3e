"""Numerals: every spelling of a number that trainers print, as a float; NaN and infinity above all."""

import math
import re
from collections.abc import Sequence

_NAN = {"nan", "-nan", "+nan", "null", "none", "n/a", "-nan(ind)"}
_INF = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "infinity": math.inf, "-infinity": -math.inf,
        "+infinity": math.inf}  # fmt: skip
_WRAPPED = re.compile(r"(?:np|numpy|torch|jnp|tensor)?\.?\w*\(\s*([^(),]+?)\s*(?:,[^()]*)?\)")
_SCALED = re.compile(r"([-+]?[\d.,]+(?:[eE][-+]?\d+)?)\s*([KMBGT%]|[KMGT]i?B|it/s|s/it|s|ms)?")
_SCALES = {"K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12, "%": 0.01}


def number(text: str) -> float | None:
    """The number that ``text`` spells, or None. ``null`` and ``None`` are NaN: JSON writers put them in its place.

    Percent are shares (52.1% is 0.521), K, M and B are scales, a unit of bytes or time is left off, thousands'
    commas too. ``tensor(nan, device='cuda:0')`` and ``np.float64(1.5)`` are what is inside.
    """
    if "_" not in text:  # Python reads 1_000 as a number, and no trainer prints one so
        try:
            return float(text)
        except ValueError:
            pass
    bare = text.strip().strip("'\"").strip()
    lower = bare.lower()
    if lower in _NAN:
        return math.nan
    if lower in _INF:
        return _INF[lower]
    if lower in ("true", "false"):
        return float(lower == "true")
    if bare.endswith(")"):
        found = _WRAPPED.fullmatch(bare)
        return number(found[1]) if found else None
    return _scaled(bare)


def numbers(pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """The numbers among pairs of name and text; what spells none is left out."""
    try:
        return {name: float(text) for name, text in pairs}
    except ValueError:
        found = [(name, number(text)) for name, text in pairs]
        return {name: value for name, value in found if value is not None}


def _scaled(text: str) -> float | None:
    found = _SCALED.fullmatch(text)
    if found is None:
        return None
    try:
        return float(found[1].replace(",", "")) * _SCALES.get(found[2] or "", 1.0)
    except ValueError:
        return None
