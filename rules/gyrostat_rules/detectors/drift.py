"""A series that has left the level of its earlier values for good, by a shift or step by step (Page-Hinkley).

Slow and cautious: over nine steps for a shift of three standard deviations, and never for one value however high. It
is for warnings: in the recorded faults of  it found none before another detector did.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, Gauge, waits
from gyrostat_rules.detectors.looks import Direction, Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.detectors.usual import Usual, usual
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State

_WINSOR = 4.0  # spreads at which a value is cut: one outlier must not carry the sum over its limit
_FORGET = 0.999  # a step; what of the sum is kept
_LIKE = 0.8  # the most that values may be like those before them: a warm-up would else widen it without end
_NOW = 5  # values whose median says whether it is still away
_SIGNS = {"up": (1.0,), "down": (-1.0,), "both": (1.0, -1.0)}


class Drift(NamedTuple):
    """Breached while the sum of standardised values, ``delta`` spreads taken off each, is ``limit`` above its lowest.

    Standardised by the first ``reference`` of the last ``window`` values; ``log`` as in spike.
    """

    series: Names
    direction: Direction = "up"
    delta: float = 0.5
    limit: float = 25.0
    log: bool = True
    reference: Annotated[int, Field(ge=8, le=128)] = 64
    window: Annotated[int, Field(ge=16, le=256)] = 256
    floor: float = 0.05


class Change(NamedTuple):
    """How far the sum has risen since its lowest, and the place of the first value after that."""

    rise: float
    place: int


def drift(params: Drift, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series that has drifted and is still away. The onset is the value after the sum's lowest point."""
    for look in looks(params.series, state, moment, params.window):
        if len(look.values) < params.reference + _NOW:
            continue
        if (way := _way(params, look.values)) is None:
            continue
        known, sign = way
        change = _change(params, known, look.values, sign)
        if change.rise > params.limit:
            yield _reading(params, look, known, change, sign)


def drift_gauges(params: Drift, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series and direction: how far the sum has risen."""
    for look in looks(params.series, state, moment, params.window):
        known = _known(params, look.values) if len(look.values) >= params.reference + _NOW else None
        if known is None:
            yield waits(look, params.reference + _NOW)
            continue
        away = median(known.distances(look.values[-_NOW:]))
        for sign in _SIGNS[params.direction]:
            change = _change(params, known, look.values, sign)
            said = f"usually {known.value:.4g} in steps {look.steps[0]} to {look.steps[params.reference - 1]}; now "
            said += f"{sign * away:.3g} spreads away in that direction, and {params.delta:g} must be left behind"
            way = "up" if sign > 0 else "down"
            limit = params.limit if sign * away > params.delta else math.nan
            yield Gauge(look.labels, look.series, change.rise, limit, ABOVE, said, f"Page-Hinkley sum, {way}")


def _way(params: Drift, values: Sequence[float]) -> tuple[Usual, float] | None:
    """What is usual, and the direction in which the newest values have left it; None where they have not.

    Asked first with the spread as it is: widened it only brings them nearer, and most healthy steps end here.
    """
    plain = usual(values[: params.reference], log=params.log, floor=params.floor)
    if plain is None or _sign(params, plain, values) is None:
        return None
    known = _widened(params, plain, values)
    sign = _sign(params, known, values)
    return None if sign is None else (known, sign)


def _sign(params: Drift, known: Usual, values: Sequence[float]) -> float | None:
    away = median(known.distances(values[-_NOW:]))
    return next((sign for sign in _SIGNS[params.direction] if sign * away > params.delta), None)


def _known(params: Drift, values: Sequence[float]) -> Usual | None:
    plain = usual(values[: params.reference], log=params.log, floor=params.floor)
    return None if plain is None else _widened(params, plain, values)


def _widened(params: Drift, plain: Usual, values: Sequence[float]) -> Usual:
    return plain._replace(spread=plain.spread * _stretch(plain.distances(values[: params.reference])))


def _change(params: Drift, known: Usual, values: Sequence[float], sign: float) -> Change:
    return page_hinkley(known.distances(values[params.reference :]), params.delta, sign)


def page_hinkley(away: Sequence[float], delta: float, sign: float = 1.0) -> Change:
    """Page's cumulative sum against the running mean (Hinkley); ``sign`` -1: downward."""
    mean = total = lowest = 0.0
    place = 0
    for i, value in enumerate(away, 1):
        signed = sign * (_WINSOR if value > _WINSOR else -_WINSOR if value < -_WINSOR else value)
        mean += (signed - mean) / i
        total = _FORGET * total + signed - mean - delta
        if total < lowest:
            lowest, place = total, i
    return Change(total - lowest, place)


def _stretch(away: Sequence[float]) -> float:
    """What to widen the spread by where each value is like the one before it: the square root of (1 + r) / (1 - r).

    So much wider does the mean of such values wander; taken for independent, they gave three times the false alarms.
    """
    cut = [max(-_WINSOR, min(_WINSOR, a)) for a in away]
    square = sum(c * c for c in cut)
    r = sum(a * b for a, b in pairwise(cut)) / square if square > 0 else 0.0
    r = max(0.0, min(_LIKE, r))
    return math.sqrt((1 + r) / (1 - r))


def _reading(params: Drift, look: Look, known: Usual, change: Change, sign: float) -> Reading:
    value, onset = look.values[-1], look.steps[params.reference + change.place]
    way = "up" if sign > 0 else "down"
    first, last = look.steps[0], look.steps[params.reference - 1]
    why = (
        f"{look.series} is {value:.4g} at step {look.steps[-1]} and has drifted {way} since "
        f"step {onset}; in steps {first} to {last} it was usually {known.value:.4g} (Page-Hinkley {change.rise:.3g}, "
        f"the limit is {params.limit:g})"
    )
    evidence = {"series": look.series, "value": value, "usual": known.value, "rise": change.rise,
                "limit": params.limit, "direction": way}  # fmt: skip
    labels = look.labels if params.direction != "both" else {**look.labels, "direction": way}
    return Reading(labels, value, onset, why, evidence)
