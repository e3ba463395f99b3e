"""A number that is a multiple of what it lately was: steps that take twice as long.

The usual moves along with the run, so that what becomes larger over a hundred steps is no alarm; a spread is not asked
for, and a series that never varies is judged too.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, Gauge, waits
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State


class Rise(NamedTuple):
    """Breached where ``needed`` of the last ``of`` values, the newest among them, are more than ``times`` the median of
    the ``window`` values before those, of which there must be ``least``.
    """

    series: Names
    times: Annotated[float, Field(gt=1)] = 2.0
    needed: Annotated[int, Field(ge=1)] = 3
    of: Annotated[int, Field(ge=1, le=64)] = 5
    window: Annotated[int, Field(ge=5, le=192)] = 40
    least: Annotated[int, Field(ge=1, le=128)] = 20


def rise(params: Rise, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series that has risen. The onset is the first of the last ``of`` values above the limit."""
    for look in looks(params.series, state, moment, params.window + params.of):
        before, newest = look.values[: -params.of], look.values[-params.of :]
        if len(before) < params.least or newest[-1] <= params.times * min(before):
            continue  # the cheap way out, of nearly every step
        limit = params.times * median(before)
        beyond = [step for step, value in zip(look.steps[-params.of :], newest, strict=True) if value > limit]
        if limit > 0 and newest[-1] > limit and len(beyond) >= min(params.needed, params.of):
            yield _reading(params, look, beyond, limit)


def rise_gauges(params: Rise, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series, of its newest value."""
    for look in looks(params.series, state, moment, params.window + params.of):
        before = look.values[: -params.of]
        if len(before) < params.least:
            yield waits(look, params.least + params.of)
            continue
        limit = params.times * median(before)
        count = sum(value > limit for value in look.values[-params.of :])
        said = f"usually {median(before):.4g}; {count} of the last {params.of} were, "
        said += f"{min(params.needed, params.of)} are needed"
        yield Gauge(look.labels, look.series, look.values[-1], limit if limit > 0 else math.nan, ABOVE, said)


def _reading(params: Rise, look: Look, beyond: Sequence[int], limit: float) -> Reading:
    value, onset = look.values[-1], beyond[0]
    why = (
        f"{look.series} is {value:.4g} at step {look.steps[-1]}, above {limit:.4g} in {len(beyond)} of the last "
        f"{params.of} values, since step {onset}; the limit is {params.times:g} times the median before"
    )
    evidence = {"series": look.series, "value": value, "usual": limit / params.times, "limit": limit}
    return Reading(look.labels, value, onset, why, evidence)
