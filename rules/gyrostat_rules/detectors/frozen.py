"""A number that moved from step to step and moves no more: a verifier that died, and says the same for ever."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import AT_LEAST, Gauge
from gyrostat_rules.detectors.looks import Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import WINDOW, State


class Frozen(NamedTuple):
    """Breached where the last ``of`` values lie within ``within`` of the newest, below ``saturated``, and of the
    ``before`` steps before them a share of ``moved`` did not: a task that is hard begins with nothing but 0, and one
    that is now and then solved stands still for long between.
    """

    series: Names
    of: Annotated[int, Field(ge=3, le=128)] = 15
    within: Annotated[float, Field(ge=0)] = 1e-4
    before: Annotated[int, Field(ge=5, le=100)] = 24
    moved: Annotated[float, Field(gt=0, le=1)] = 0.9
    saturated: float = 0.9


def frozen(params: Frozen, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series that stands still. The onset is the first of the values that are alike."""
    for look in looks(params.series, state, moment, WINDOW):
        now, place = look.values[-1], _since(look.values, params.within)
        if len(look.values) - place < params.of or now >= params.saturated:
            continue  # the cheap way out, of nearly every healthy step
        before = look.values[max(0, place - params.before) : place]
        steps = [abs(later - earlier) > params.within for earlier, later in pairwise(before)]
        if len(before) >= params.before and sum(steps) >= params.moved * len(steps):
            why = (
                f"{look.series} moved from step to step before step {look.steps[place]}, and has been {now:.4g} for "
                f"{len(look.values) - place} values since"
            )
            evidence = {"series": look.series, "value": now, "alike": len(look.values) - place}
            yield Reading(look.labels, now, look.steps[place], why, evidence)


def frozen_gauges(params: Frozen, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series: how many of its newest values are alike."""
    for look in looks(params.series, state, moment, WINDOW):
        alike = float(len(look.values) - _since(look.values, params.within))
        solved = look.values[-1] >= params.saturated
        said = f"within {params.within:g} of {look.values[-1]:.4g}; before, {params.moved:.0%} of its steps must move"
        limit = math.nan if solved else float(params.of)
        yield Gauge(look.labels, look.series, alike, limit, AT_LEAST, said, "values alike")


def _since(values: Sequence[float], within: float) -> int:
    """The place of the first of the values at the end that are like the newest."""
    place = len(values)
    while place and abs(values[place - 1] - values[-1]) <= within:
        place -= 1
    return place
