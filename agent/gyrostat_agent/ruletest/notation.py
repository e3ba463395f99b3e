"""Notation: a series' values by step, spelled as Prometheus's rule tests spell them, and where a spelling is no such.

``a+bxn`` is a, a+b, ... a+n*b: n + 1 values, as there; ``axn`` is a, n + 1 times; ``_`` and ``_xn`` are one gap and n.
One thing is added, for no series of a training run is smooth: ``a~sxn`` varies around a, normally, by s.
"""

import math
import re
from collections.abc import Iterator
from random import Random
from statistics import NormalDist
from typing import NamedTuple

MOST = 20_000  # values of one series; x999999999 is a slip of the finger
_SHOWN = 30  # characters of a word in a message

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_GAP = re.compile(r"_(?:x(?P<times>\d{1,9}))?", re.ASCII)
_WORD = re.compile(
    rf"(?P<value>[-+]?(?:{_NUMBER}|[iI]nf|[nN]a[nN]))(?P<step>[-+]{_NUMBER})?(?:~(?P<spread>{_NUMBER}))?"
    r"(?:x(?P<times>\d{1,9}))?",
    re.ASCII,
)
_PLAIN = NormalDist()


class Slip(NamedTuple):
    """A word that says no values: where it begins (characters, from 1), what is wrong, and the fix."""

    place: int
    what: str
    fix: str


class Spelled(NamedTuple):
    """What a text says: a value or a gap (None) for each step, and what it says wrongly."""

    values: tuple[float | None, ...]
    slips: tuple[Slip, ...]


def spelled(text: str, seed: str = "") -> Spelled:
    """The values that ``text`` says; noise is drawn from ``seed``, so that a test gives the same anywhere."""
    random, values, slips = Random(seed), list[float | None](), list[Slip]()
    for word in re.finditer(r"\S+", text):
        found = _said(word[0], random, MOST - len(values))
        if isinstance(found, tuple):
            slips.append(Slip(word.start() + 1, *found))
        else:
            values += found
    if not values and not slips:
        slips.append(Slip(1, "there are no values", "write some, such as 1x20"))
    return Spelled(tuple(values), tuple(slips))


def _said(word: str, random: Random, left: int) -> list[float | None] | tuple[str, str]:
    """The values of one word, or what is wrong with it and the fix."""
    shown = repr(word if len(word) <= _SHOWN else f"{word[:_SHOWN]}...")
    gap, found = _GAP.fullmatch(word), _WORD.fullmatch(word)
    if gap is None and found is None:
        return f"{shown} says no values", "write 1, 1+0.1x20, 1-0.1x5, 1x10, 1~0.1x20, _, _x3, NaN, Inf or -Inf"
    times = (gap or found)["times"]  # type: ignore[index]
    if times is not None and int(times) >= left:
        return f"{shown} makes more than {MOST:,} values", "say a smaller number after x"
    if gap is not None:
        return [None] * int(times or 1)
    assert found is not None
    if times is None and (found["step"] or found["spread"]):
        return f"{shown} does not say how often", f"write {word[:_SHOWN]}x20"
    return list(_drawn(found, random))


def _drawn(word: re.Match[str], random: Random) -> Iterator[float]:
    value, step, spread = float(word["value"]), float(word["step"] or 0), float(word["spread"] or 0)
    for place in range(int(word["times"] or 0) + 1):
        # By the inverse of the distribution: what gauss() gives is not promised to be the same in every Python.
        noise = spread * _PLAIN.inv_cdf(max(random.random(), 1e-12)) if spread else 0.0
        yield value + place * step + noise if math.isfinite(value) else value
