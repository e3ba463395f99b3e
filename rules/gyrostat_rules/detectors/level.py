"""A value beyond a limit for some of the last steps: an entropy that is gone, groups that all have one reward.

A limit may be a number, a multiple of the run's own first values, or both: a fixed entropy limit fires for ever on one
base model and too late on another, so that its rule is min(0.3, half of the first).
"""

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, BELOW, Gauge, Side, waits
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import WINDOW, State


class Level(NamedTuple):
    """Breached where ``needed`` of the last ``of`` values, the newest among them, lie ``below`` or ``above`` a limit.

    ``below_times`` and ``above_times`` multiply the median of the ``first`` values after ``skip``, of those that are
    still remembered (the last 256 at least); where a number is given too, a value must be beyond both. Nothing is
    said before ``least`` values.
    """

    series: Names
    below: float | None = None
    below_times: float | None = None
    above: float | None = None
    above_times: float | None = None
    needed: Annotated[int, Field(ge=1)] = 3
    of: Annotated[int, Field(ge=1, le=200)] = 5
    first: Annotated[int, Field(ge=1, le=128)] = 20
    skip: Annotated[int, Field(ge=0, le=64)] = 5
    least: Annotated[int, Field(ge=0, le=256)] = 0


class _Limit(NamedTuple):
    """``sign`` 1: values above ``value`` are beyond it; -1: below. ``start`` is the first values' median, if asked."""

    value: float
    sign: int
    start: float | None


def level(params: Level, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series and side that is beyond its limit. The onset is where it went beyond, dated back over
    the steps that would have been breached too."""
    for look in looks(params.series, state, moment, 2 * WINDOW):
        if len(look.values) < max(params.least, params.needed):
            continue
        for limit in _limits(params, look.values):
            beyond = _beyond(params, look.values, limit)
            if beyond[-1] and sum(beyond) >= min(params.needed, params.of):
                yield _reading(params, look, limit, sum(beyond))


def level_gauges(params: Level, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series and limit, of its newest value."""
    for look in looks(params.series, state, moment, 2 * WINDOW):
        if len(look.values) < max(params.least, params.needed):
            yield waits(look, max(params.least, params.needed))
            continue
        limits = list(_limits(params, look.values))
        for limit in limits:
            count = sum(_beyond(params, look.values, limit))
            said = f"{count} of the last {params.of} values were, {min(params.needed, params.of)} are needed"
            if limit.start is not None:
                said += f"; the run began at {limit.start:.4g}"
            side: Side = ABOVE if limit.sign > 0 else BELOW
            yield Gauge(look.labels, look.series, look.values[-1], limit.value, side, said)
        if not limits:
            wanted = params.skip + params.first
            said = f"its limit is a multiple of the first {wanted} values' median: {len(look.values)} are told"
            yield Gauge(look.labels, look.series, look.values[-1], math.nan, ABOVE, said)


def _beyond(params: Level, values: Sequence[float], limit: _Limit) -> list[bool]:
    return [limit.sign * (v - limit.value) > 0 for v in values[-params.of :]]


def _limits(params: Level, values: Sequence[float]) -> Iterator[_Limit]:
    for sign, fixed, times in ((-1, params.below, params.below_times), (1, params.above, params.above_times)):
        if times is None:
            if fixed is not None:
                yield _Limit(fixed, sign, None)
        elif len(values) >= params.skip + params.first:
            start = median(values[params.skip : params.skip + params.first])
            limit = times * start if fixed is None else sign * max(sign * fixed, sign * times * start)
            if start > 0:  # a share of nothing, or of a negative number, is no limit
                yield _Limit(limit, sign, start)


def _onset(params: Level, look: Look, limit: _Limit) -> int:
    """The oldest value beyond the limit with no more good ones between two bad than the rule forgives."""
    onset, good = look.steps[-1], 0
    for step, value in zip(reversed(look.steps), reversed(look.values), strict=True):
        if limit.sign * (value - limit.value) > 0:
            onset, good = step, 0
        elif (good := good + 1) > params.of - min(params.needed, params.of):
            break
    return onset


def _reading(params: Level, look: Look, limit: _Limit, count: int) -> Reading:
    side, onset = "above" if limit.sign > 0 else "below", _onset(params, look, limit)
    usually = "" if limit.start is None else f"; the run began at {limit.start:.4g}"
    why = (
        f"{look.series} is {look.values[-1]:.4g} at step {look.steps[-1]}, {side} {limit.value:.4g} in {count} of the "
        f"last {params.of} values, since step {onset}{usually}"
    )
    evidence = {"series": look.series, "value": look.values[-1], "limit": limit.value, "side": side,
                "beyond": count, "of": params.of}  # fmt: skip
    if limit.start is not None:
        evidence["start"] = limit.start
    two = (params.below, params.below_times) != (None, None) != (params.above, params.above_times)
    return Reading({**look.labels, "side": side} if two else look.labels, look.values[-1], onset, why, evidence)
