"""A run that was taken up again and is not where it was: its first numbers are far worse than the last ones before.

Whatever an optimizer, a data cursor or a scheduler has lost shows within a few steps of the new life, or of the jump
back; later it would only be a number among others.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from statistics import median
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import AT_LEAST, Gauge
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.detectors.usual import Usual, usual
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State, key_of


class Resumed(NamedTuple):
    """Breached where the median of the last ``of`` values, all of this life or this side of the jump back, is ``times``
    the usual or more (a share of it for ``direction`` down) and ``z`` spreads away from it.

    Usual is the median of the ``window`` values before, of which ``least`` there must be. It is looked at for
    ``within`` values: what is as far away behind them is this life's own.
    """

    series: Names
    direction: Literal["up", "down"] = "up"
    times: Annotated[float, Field(gt=1)] = 1.15
    z: float = 6.0
    of: Annotated[int, Field(ge=1, le=16)] = 3
    window: Annotated[int, Field(ge=8, le=128)] = 32
    least: Annotated[int, Field(ge=4, le=128)] = 8
    within: Annotated[int, Field(ge=1, le=64)] = 30


def resumed(params: Resumed, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series that is not where it was. The onset is its first value since the run was taken up."""
    for look in looks(params.series, state, moment):
        place = _taken_up(look, state)
        count = len(look.values) - place
        before = look.values[max(0, place - params.window) : place]
        if not params.of <= count <= params.within or len(before) < params.least:
            continue
        known, now = usual(before, log=True, floor=0.01), median(look.values[-params.of :])
        if known is None or not known.log or now <= 0:
            continue  # a loss around 0, or a reward of nothing: no multiple of it says anything
        sign = 1.0 if params.direction == "up" else -1.0
        far = sign * known.distances([now])[0]
        if far > params.z and (now / known.value) ** sign >= params.times:
            yield _reading(params, look, known, place, now)


def resumed_gauges(params: Resumed, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series: how many times the usual of the life before it is."""
    for look in looks(params.series, state, moment):
        place = _taken_up(look, state)
        before, count = look.values[max(0, place - params.window) : place], len(look.values) - place
        now = median(look.values[-params.of :])
        looked = params.of <= count <= params.within and len(before) >= params.least
        known = usual(before, log=True, floor=0.01) if looked else None
        if known is None or not known.log or now <= 0:
            said = f"looked at from {params.of} to {params.within} values after a run was taken up; this is {count}"
            yield Gauge(look.labels, look.series, now, math.nan, AT_LEAST, said)
            continue
        sign = 1.0 if params.direction == "up" else -1.0
        far, times = sign * known.distances([now])[0], (now / known.value) ** sign
        said = f"it is {now:.4g}, and was usually {known.value:.4g}; {far:.3g} spreads away, more than {params.z:g} are"
        yield Gauge(look.labels, look.series, times, params.times, AT_LEAST, f"{said} needed too", "times the usual")


def _taken_up(look: Look, state: State) -> int:
    """The place of the first value since the run jumped back or this life began, whichever is later; 0 for neither."""
    process = state.processes.get(key_of(look.role, look.rank))
    jump = state.jumps[-1].step if state.jumps else -1
    begun = bisect_right(look.steps, jump) if jump >= 0 else 0
    lived = max(0, len(look.values) - process.told) if process is not None else 0
    return max(begun, lived if lived < len(look.values) else 0)


def _reading(params: Resumed, look: Look, known: Usual, place: int, now: float) -> Reading:
    onset = look.steps[place]
    why = (
        f"{look.series} is {now:.4g} in the last {params.of} values up to step {look.steps[-1]}; before the run was "
        f"taken up at step {onset} it was usually {known.value:.4g}"
    )
    evidence = {"series": look.series, "value": now, "usual": known.value, "limit": params.times}
    return Reading(look.labels, now, onset, why, evidence)
