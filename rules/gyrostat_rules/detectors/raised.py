"""A value that has risen above its own usual, at once or over some dozens of steps: lengths, balance, sizes of scores.

A spike compares with the values right before it and so learns a slow rise; here a gap lies between what is usual and
what is looked at. It is for series that are positive and lie level in a healthy run.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, Gauge, waits
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.detectors.usual import Usual, usual
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import WINDOW, State


class Raised(NamedTuple):
    """Breached where ``needed`` of the last ``of`` values, the newest among them, are ``times`` the usual and ``by``
    more, and ``z`` spreads of it away; none is below ``beyond``.

    Usual is the median of the ``window`` values before the last ``gap``; of a young run, of its first ``few``. A
    spread is at least ``floor`` of it.
    """

    series: Names
    times: Annotated[float, Field(ge=1)] = 1.5
    by: Annotated[float, Field(ge=0)] = 0.0
    z: float = 6.0
    beyond: float = 0.0
    needed: Annotated[int, Field(ge=1)] = 3
    of: Annotated[int, Field(ge=1, le=32)] = 5
    gap: Annotated[int, Field(ge=1, le=64)] = 32
    window: Annotated[int, Field(ge=8, le=192)] = 128
    few: Annotated[int, Field(ge=8, le=128)] = 24
    floor: Annotated[float, Field(ge=0, lt=1)] = 0.05


def raised(params: Raised, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series that has risen. The onset is the first of the values at the end that are too high."""
    for look in looks(params.series, state, moment, WINDOW):
        values = look.values
        if len(values) < params.few + params.needed or values[-1] < max(params.beyond, params.times * min(values)):
            continue  # the cheap way out, of most healthy steps
        known = _usual(params, values)
        if known is None:
            continue
        limit = _limit(params, known)
        far = known.distances(values[-params.of :])
        high = [v > limit and f > params.z for v, f in zip(values[-params.of :], far, strict=True)]
        if high[-1] and sum(high) >= min(params.needed, params.of):
            yield _reading(params, look, known, limit)


def raised_gauges(params: Raised, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series, of its newest value."""
    for look in looks(params.series, state, moment, WINDOW):
        known = _usual(params, look.values) if len(look.values) >= params.few + params.needed else None
        if known is None:
            yield waits(look, params.few + params.needed)
            continue
        limit = max(_limit(params, known), known.at(params.z))
        count = sum(v > limit for v in look.values[-params.of :])
        needed = min(params.needed, params.of)
        said = f"usually {known.value:.4g}; {count} of the last {params.of} were, {needed} are needed"
        yield Gauge(look.labels, look.series, look.values[-1], limit, ABOVE, said)


def _limit(params: Raised, known: Usual) -> float:
    return max(params.times * known.value + params.by, params.beyond)


def _usual(params: Raised, values: Sequence[float]) -> Usual | None:
    """None where the series does not vary, or is not positive: a multiple of a number around 0 is no limit."""
    end = max(params.few, len(values) - params.gap)
    known = usual(values[max(0, end - params.window) : end], log=True, floor=params.floor)
    return known if known is not None and known.log else None


def _reading(params: Raised, look: Look, known: Usual, limit: float) -> Reading:
    place, good = len(look.values) - 1, 0
    for i in range(len(look.values) - 1, -1, -1):
        if look.values[i] > limit:
            place, good = i, 0
        elif (good := good + 1) > params.of - min(params.needed, params.of):
            break
    value, onset = look.values[-1], look.steps[place]
    why = (
        f"{look.series} is {value:.4g} at step {look.steps[-1]}, usually {known.value:.4g}: above its limit of "
        f"{limit:.4g} since step {onset}"
    )
    evidence = {"series": look.series, "value": value, "usual": known.value, "limit": limit}
    return Reading(look.labels, value, onset, why, evidence)
