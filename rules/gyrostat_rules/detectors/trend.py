"""A number that goes one way from the first values on: a run that was resumed and unlearns.

Kendall's rank statistic over the first values of a life: it knows no unit, and a value that sticks out moves it little.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import AT_LEAST, Gauge
from gyrostat_rules.detectors.looks import Direction, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State


class Trend(NamedTuple):
    """Breached where, of the last ``of`` values, so many pairs go ``direction`` that chance would not: ``z`` standard
    deviations. Looked at while a series has from ``least`` to ``most`` values: later it is drift's.
    """

    series: Names
    z: float = 2.3
    of: Annotated[int, Field(ge=5, le=64)] = 9
    least: Annotated[int, Field(ge=5, le=64)] = 9
    most: Annotated[int, Field(ge=5, le=256)] = 10
    direction: Direction = "up"


def trend(params: Trend, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series with a trend. The onset is its lowest value, or its highest where it goes down."""
    for look in looks(params.series, state, moment):
        if not params.least <= len(look.values) <= params.most:
            continue
        steps, values = look.steps[-params.of :], look.values[-params.of :]
        z = _kendall(values)
        sign = _sign(params, z)
        if sign * z < params.z:
            continue
        begin = min(range(len(values)), key=lambda place, s=sign, v=values: s * v[place])  # type: ignore[misc]
        why = (
            f"{look.series} goes {'up' if sign > 0 else 'down'} from {values[begin]:.4g} at step {steps[begin]} to "
            f"{values[-1]:.4g} at step {steps[-1]} (z {abs(z):.3g}, the limit is {params.z:g})"
        )
        evidence = {"series": look.series, "value": values[-1], "from": values[begin], "z": z}
        yield Reading(look.labels, values[-1], steps[begin], why, evidence)


def trend_gauges(params: Trend, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series: how much more often it goes that way than chance would."""
    for look in looks(params.series, state, moment):
        z, count = _kendall(look.values[-params.of :]), len(look.values)
        looked = params.least <= count <= params.most
        said = f"{count} values are told; looked at from {params.least} to {params.most}"
        way = "up" if _sign(params, z) > 0 else "down"
        limit = params.z if looked else math.nan
        yield Gauge(look.labels, look.series, _sign(params, z) * z, limit, AT_LEAST, said, f"z of going {way}")


def _sign(params: Trend, z: float) -> float:
    return math.copysign(1.0, z) if params.direction == "both" else -1.0 if params.direction == "down" else 1.0


def _kendall(values: Sequence[float]) -> float:
    """z of Kendall's S, with continuity correction; ties count for nothing."""
    score = sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2))
    n = len(values)
    spread = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return (score - math.copysign(1.0, score)) / spread if score else 0.0
