"""A value far above (or below) those before it: a gradient norm that jumps, a step that takes ten times as long.

It finds what is sudden, and nothing that comes slowly: the values it compares with move along (:
a rolling robust z saw no shift of three standard deviations). For slow shifts there is drift.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, BELOW, Gauge, waits
from gyrostat_rules.detectors.looks import Direction, Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.detectors.usual import Usual, usual
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State


class Spike(NamedTuple):
    """Breached where ``needed`` of the last ``of`` values, the newest among them, lie more than ``z`` spreads away.

    Away from the median of the ``window`` values before them, in logarithms where ``log`` and they are positive; one
    beyond ``alone`` needs no company. With fewer than half a window, from ``least`` values on, a value must be
    ``times`` the size of the largest before it (Megatron's guard for the first hundred); where ``alone`` is given, such
    a value needs no company either. Values of a size below ``beyond`` are none, whatever they are compared with.
    """

    series: Names
    z: float = 6.0
    needed: Annotated[int, Field(ge=1)] = 1
    of: Annotated[int, Field(ge=1, le=64)] = 1
    alone: float = math.inf
    direction: Direction = "up"
    log: bool = True
    window: Annotated[int, Field(ge=8, le=192)] = 64
    floor: float = 0.05
    least: Annotated[int, Field(ge=1)] = 8
    times: float = 10.0
    beyond: float = 0.0


class _Yard(NamedTuple):
    """How far each of the last values is away, what is too far, and the words for it; by which spread, if by one."""

    far: list[float]
    limit: float
    alone: float
    usual: float
    said: str
    known: Usual | None = None


def spike(params: Spike, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series that spikes now. The onset is the first of the last ``of`` values that is too far away."""
    for look in looks(params.series, state, moment, params.window + params.of):
        few = _few(params, look.values)
        before, newest = look.values[:-few], look.values[-few:]
        if abs(newest[-1]) < params.beyond or len(before) < params.least or _is_near(params, before, newest[-1]):
            continue
        yard = _yard(params, before, newest)
        if yard is None or yard.far[-1] <= yard.limit:
            continue
        beyond = [f > yard.limit for f in yard.far]
        if sum(beyond) >= min(params.needed, few) or yard.far[-1] > yard.alone:
            yield _reading(look, yard, look.steps[len(before) + beyond.index(True)], sum(beyond))


def spike_gauges(params: Spike, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series, of its newest value."""
    for look in looks(params.series, state, moment, params.window + params.of):
        few = _few(params, look.values)
        before, newest = look.values[:-few], look.values[-few:]
        if len(before) < params.least:
            yield waits(look, params.least + 1)
        elif yard := _yard(params, before, newest):
            yield _gauge(params, look, yard, before)
        else:
            said = f"the {len(before)} values before are all alike and give no scale"
            yield Gauge(look.labels, look.series, newest[-1], math.nan, ABOVE, said)


def _gauge(params: Spike, look: Look, yard: _Yard, before: Sequence[float]) -> Gauge:
    value = look.values[-1]
    down = params.direction == "down" or (params.direction == "both" and value < yard.usual)
    edge = yard.known.at(-yard.limit if down else yard.limit) if yard.known else yard.limit * max(map(abs, before))
    edge = edge if down else max(edge, params.beyond)
    count = sum(f > yard.limit for f in yard.far)
    needed = min(params.needed, len(yard.far))
    said = f"{yard.said.format(yard.far[-1])} the median is {yard.usual:.4g}; {count} of the last {len(yard.far)} "
    said += f"{'was' if count == 1 else 'were'} beyond, {needed} {'is' if needed == 1 else 'are'} needed"
    return Gauge(look.labels, look.series, value, edge, BELOW if down else ABOVE, said)


def _few(params: Spike, values: Sequence[float]) -> int:
    """How many are looked at as new: a young run has little to compare with."""
    return max(1, min(params.of, len(values) - params.least))


def _is_near(params: Spike, before: Sequence[float], newest: float) -> bool:
    """True where the least spread there can be, ``floor`` of the median, keeps it within the limit.

    The cheap way out, of most healthy steps: logarithms reach further, for (1 + f) ** z is at least 1 + z * f.
    """
    if params.direction != "up" or params.z < 1 or 2 * len(before) < params.window:
        return False
    middle = sorted(before)[(len(before) - 1) // 2]
    return newest <= 0.999 * middle * (1 + params.z * params.floor) if middle > 0 else False


def _yard(params: Spike, before: Sequence[float], newest: Sequence[float]) -> _Yard | None:
    if 2 * len(before) < params.window:
        return _first_yard(params, before, newest)
    known = usual(before, log=params.log, floor=params.floor)
    if known is None:
        return None
    sign = -1.0 if params.direction == "down" else 1.0
    far = [sign * f for f in known.distances(newest)]
    if params.direction == "both":
        far = [abs(f) for f in far]
    said = f"z {{:.3g}}, the limit is {params.z:g}; of {len(before)} values before"
    return _Yard(far, params.z, params.alone, known.value, said, known)


def _first_yard(params: Spike, before: Sequence[float], newest: Sequence[float]) -> _Yard | None:
    """The first values of a run give no scale yet; only what is far beyond the largest of them counts."""
    top = max(map(abs, before))  # a loss around 0 has a largest that says nothing, and a size that does
    if top == 0 or params.direction == "down":
        return None
    said = f"{{:.3g}} times the largest of the first {len(before)}, the limit is {params.times:g}; of those values"
    alone = params.times if params.alone < math.inf else math.inf
    return _Yard([v / top for v in newest], params.times, alone, median(before), said)


def _reading(look: Look, yard: _Yard, onset: int, count: int) -> Reading:
    value, far = look.values[-1], yard.far[-1]
    why = (
        f"{look.series} is {value:.4g} at step {look.steps[-1]} ({yard.said.format(far)} the median is "
        f"{yard.usual:.4g}), {count} of the last {len(yard.far)} since step {onset}"
    )
    evidence = {"series": look.series, "value": value, "usual": yard.usual, "far": _told(far), "limit": yard.limit,
                "beyond": count, "of": len(yard.far)}  # fmt: skip
    return Reading(look.labels, value, onset, why, evidence)


def _told(far: float) -> float:
    """Evidence is written as JSON, which has no infinity."""
    return far if math.isfinite(far) else math.copysign(1e300, far)
