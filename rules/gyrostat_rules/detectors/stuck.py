"""A reward that does not move: learning from the same number every step is learning nothing."""

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import AT_LEAST, Gauge
from gyrostat_rules.detectors.looks import Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import WINDOW, State


class Stuck(NamedTuple):
    """Breached where the last ``of`` values lie within ``within`` of their median, as a share of it.

    Not where that is ``saturated`` or above: a task that is solved does not move either. Of values that are the very
    same it takes ``same``: a task that is hard begins with nothing but 0, and a reward of the format is one number.
    """

    series: Names
    within: Annotated[float, Field(gt=0, le=1)] = 0.015
    of: Annotated[int, Field(ge=3, le=128)] = 6
    saturated: float = 0.9
    same: Annotated[int, Field(ge=3, le=192)] = 100


def stuck(params: Stuck, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series that stands still. The onset is the first of the values that are alike."""
    for look in looks(params.series, state, moment, WINDOW):
        values = look.values
        middle, enough = _measure(params, values)
        if len(values) < enough or middle >= params.saturated:
            continue
        place = _since(values, middle, params.within * abs(middle))
        if len(values) - place >= enough:
            why = (
                f"{look.series} is {values[-1]:.4g} at step {look.steps[-1]} and has been within {params.within:.2g} "
                f"of {middle:.4g} for {len(values) - place} values, since step {look.steps[place]}"
            )
            evidence = {"series": look.series, "value": values[-1], "middle": middle, "alike": len(values) - place}
            yield Reading(look.labels, values[-1], look.steps[place], why, evidence)


def stuck_gauges(params: Stuck, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series: how many of its newest values are alike."""
    for look in looks(params.series, state, moment, WINDOW):
        middle, enough = _measure(params, look.values)
        alike = len(look.values) - _since(look.values, middle, params.within * abs(middle))
        said, limit = f"within {params.within:.2g} of {middle:.4g}", float(enough)
        if middle >= params.saturated:
            said, limit = f"at {middle:.4g} ({params.saturated:g} and above) a solved task need not move", math.nan
        yield Gauge(look.labels, look.series, float(alike), limit, AT_LEAST, said, "values alike")


def _measure(params: Stuck, values: Sequence[float]) -> tuple[float, int]:
    """The median of the newest values, and how many that are alike are too many."""
    newest = values[-params.of :]
    return median(newest), params.same if min(newest) == max(newest) else params.of


def _since(values: Sequence[float], middle: float, most: float) -> int:
    """The place of the first of the values at the end that are all alike."""
    place = len(values)
    while place and abs(values[place - 1] - middle) <= most:
        place -= 1
    return place
