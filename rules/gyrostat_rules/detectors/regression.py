"""A validation below the best that there was, again and again: the newest version is not the one to keep."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import BELOW, Gauge, waits
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import WINDOW, State

_MEDIAN, _MEAN = 1.0484, 0.8862  # standard deviations in a median, and a mean, absolute difference of two normal values


class Regression(NamedTuple):
    """Breached where the last ``needed`` values all lie ``below`` the best, as a share of it, and ``spreads`` of the
    noise between one validation and the next.

    Best is the highest median of ``among`` in a row, not the highest value: of many noisy ones that is luck. Nothing is
    said before ``least`` values.
    """

    series: Names
    below: Annotated[float, Field(gt=0, lt=1)] = 0.1
    spreads: Annotated[float, Field(ge=0)] = 4.0
    needed: Annotated[int, Field(ge=1, le=16)] = 2
    among: Annotated[int, Field(ge=1, le=9)] = 3
    least: Annotated[int, Field(ge=4, le=64)] = 7


class _Best(NamedTuple):
    """The best, the step it was seen at, and what a validation must be above."""

    value: float
    step: int
    limit: float


def regression(params: Regression, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a validation that has gone back. The onset is the first of the low values at the end."""
    for look in looks(params.series, state, moment, WINDOW):
        if len(look.values) < max(params.least, params.needed + params.among):
            continue
        best = _best(params, look)
        if best.value > 0 and max(look.values[-params.needed :]) < best.limit:
            yield _reading(look, best)


def regression_gauges(params: Regression, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a validation: the highest of its newest values, against its best."""
    for look in looks(params.series, state, moment, WINDOW):
        if len(look.values) < max(params.least, params.needed + params.among):
            yield waits(look, max(params.least, params.needed + params.among))
            continue
        best = _best(params, look)
        said = f"its best was {best.value:.4g} at step {best.step}"
        limit = best.limit if best.value > 0 else math.nan
        now = max(look.values[-params.needed :])
        yield Gauge(look.labels, look.series, now, limit, BELOW, said, f"the highest of the last {params.needed}")


def _best(params: Regression, look: Look) -> _Best:
    before = look.values[: -params.needed]
    medians = [median(before[i : i + params.among]) for i in range(len(before) - params.among + 1)]
    value = max(medians)
    step = look.steps[medians.index(value) + params.among // 2]
    return _Best(value, step, min((1 - params.below) * value, value - params.spreads * _noise(before)))


def _noise(values: Sequence[float]) -> float:
    """Standard deviation of one value, from how far each is from the next: a trend counts for little so.

    The larger of two estimates, for of a handful of values either may be half of what it should be.
    """
    away = [abs(later - earlier) for earlier, later in pairwise(values)]
    return max(_MEDIAN * median(away), _MEAN * fmean(away))


def _reading(look: Look, best: _Best) -> Reading:
    place = len(look.values)
    while place and look.values[place - 1] < best.limit and look.steps[place - 1] > best.step:
        place -= 1
    onset, value = look.steps[min(place, len(look.steps) - 1)], look.values[-1]
    why = (
        f"{look.series} is {value:.4g} at step {look.steps[-1]} and below {best.limit:.4g} since step {onset}; "
        f"about step {best.step} it was {best.value:.4g}"
    )
    well = look.steps[place - 1] if place else best.step
    evidence = {"series": look.series, "value": value, "best": best.value, "best_step": best.step, "limit": best.limit,
                "well_step": well}  # fmt: skip
    return Reading(look.labels, value, onset, why, evidence)
