"""A reward that was there and is gone: the last few values far below what was usual before them."""

import math
from collections.abc import Iterator, Sequence
from statistics import median, pstdev
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import BELOW, Gauge, waits
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import WINDOW, State


class Drop(NamedTuple):
    """Breached where the mean of ``of`` values was below ``ratio`` of the median of the ``window`` before them (``few``
    at least, while the run is young), and by more than ``clear`` standard deviations of such a mean: a reward of a few
    hits in a hundred halves by chance.

    It stays so until a value, or the mean of ``of``, is back above that. Where the median was below ``least``,
    nothing was there to be lost. A reward that is all or nothing from step to step wants a larger ``of``.
    """

    series: Names
    ratio: float = 0.35
    of: Annotated[int, Field(ge=1, le=64)] = 3
    window: Annotated[int, Field(ge=3, le=128)] = 25
    few: Annotated[int, Field(ge=1, le=128)] = 8
    least: float = 0.05
    clear: float = 4.0


class _Fall(NamedTuple):
    """``place``: of the first low value; ``usual``: the median before it; ``limit``: what is still none."""

    place: int
    usual: float
    limit: float


def drop(params: Drop, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series that has dropped and not come back. The onset is the first of the low values."""
    for look in looks(params.series, state, moment, WINDOW):
        fall = _fall(params, look.values)
        if fall is not None:
            yield _reading(params, look, fall)


def drop_gauges(params: Drop, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series, of the mean of its newest values or the newest, the higher."""
    few = min(params.few, params.window)
    for look in looks(params.series, state, moment, WINDOW):
        values = look.values
        if len(values) < few + params.of:
            yield waits(look, few + params.of)
            continue
        fall = _fall(params, values)
        before = values[-params.of - params.window : -params.of]
        usual, limit = (fall.usual, fall.limit) if fall else _limit(params, before)
        said = f"before it was usually {usual:.4g}"
        if usual < params.least:
            said, limit = f"{said}, below {params.least:g}: nothing is there to be lost", math.nan
        yield Gauge(look.labels, look.series, _now(params, values), limit, BELOW, said, _measure(params))


def _measure(params: Drop) -> str:
    return f"mean of the last {params.of}, or the last" if params.of > 1 else ""


def _now(params: Drop, values: Sequence[float]) -> float:
    return max(values[-1], sum(values[-params.of :]) / params.of)


def _limit(params: Drop, before: Sequence[float]) -> tuple[float, float]:
    """What was usual, and what is too far below that."""
    known = median(before)
    return known, min(params.ratio * known, known - params.clear * _spread(before, params.of))


def _spread(values: Sequence[float], of: int) -> float:
    """Standard deviation of a mean of ``of``: as the values' own gives it, or as such means had it, whichever is more.

    Rewards of neighbouring steps are alike, and then their means swing further than those of as many chances.
    """
    means = [sum(values[i : i + of]) / of for i in range(len(values) - of + 1)]
    return max(pstdev(values) / math.sqrt(of), pstdev(means) if len(means) > 1 else 0.0)


def _fall(params: Drop, values: Sequence[float]) -> _Fall | None:
    """The oldest fall that goes on. A median that moves along would call a dead reward usual after a dozen steps."""
    now = _now(params, values)
    few = min(params.few, params.window)
    if len(values) < few + params.of or now >= params.ratio * max(values):
        return None  # the cheap way out, of nearly every healthy step
    means = [sum(values[i : i + params.of]) / params.of for i in range(len(values) - params.of + 1)]
    for start in range(few, len(means)):
        if means[start] >= params.ratio * max(values):
            continue
        known, limit = _limit(params, values[max(0, start - params.window) : start])
        if known >= params.least and now < limit and max(means[start:]) < limit:
            place = next(i for i in range(start, len(values)) if values[i] < limit)
            return _Fall(place, known, limit)
    return None


def _reading(params: Drop, look: Look, fall: _Fall) -> Reading:
    mean = sum(look.values[-params.of :]) / params.of
    onset = look.steps[fall.place]
    why = (
        f"{look.series} is {look.values[-1]:.4g} at step {look.steps[-1]}, on average {mean:.4g} in the last "
        f"{params.of}; before step {onset} it was usually {fall.usual:.4g}, the limit is {params.ratio:g} of that"
    )
    evidence = {"series": look.series, "value": look.values[-1], "mean": mean, "usual": fall.usual,
                "limit": params.ratio * fall.usual}  # fmt: skip
    return Reading(look.labels, look.values[-1], onset, why, evidence)
