"""Memory that fills up: at the rate of the last rows it is out before long."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import linear_regression
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import AT_LEAST, Gauge
from gyrostat_rules.detectors.looks import Look, Names, found, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State, key_of


class Filling(NamedTuple):
    """Breached where ``series`` is above ``share`` of ``total``, told by the same process in the same unit, and a line
    through its last ``of`` values comes to all of it within ``ahead`` more.

    The values must also go up as chance would not (``z`` of Kendall's rank statistic): a cache that is full and level
    is as it should be.
    """

    series: Names
    total: Names
    share: Annotated[float, Field(gt=0, lt=1)] = 0.8
    ahead: Annotated[float, Field(gt=0)] = 20.0
    of: Annotated[int, Field(ge=8, le=64)] = 24
    z: float = 4.0


def filling(params: Filling, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series that fills up. Its value: how many more rows it takes; its onset: the lowest looked at."""
    for look in looks(params.series, state, moment, params.of):
        total = _total(params, look, state)
        used = look.values[-1]
        if total is None or len(look.values) < params.of or used < params.share * total:
            continue
        slope, base = linear_regression(range(params.of), look.values)
        if slope <= 0 or _kendall(look.values) < params.z:
            continue
        left = (total - base) / slope - (params.of - 1)
        if left < params.ahead:
            yield _reading(look, total, slope, max(left, 0.0))


def filling_gauges(params: Filling, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series that is told beside its total."""
    for look in looks(params.series, state, moment, params.of):
        total = _total(params, look, state)
        if total is not None:
            said = f"of {total:.4g} in all; it must also go up, so that it is full within {params.ahead:g} rows"
            yield Gauge(look.labels, look.series, look.values[-1], params.share * total, AT_LEAST, said)


def _total(params: Filling, look: Look, state: State) -> float | None:
    windows = state.windows.get(key_of(look.role, look.rank), {})
    name = next(found(params.total, windows), None)
    values = windows[name].values if name is not None else []
    return values[-1] if values and math.isfinite(values[-1]) and values[-1] > 0 else None


def _kendall(values: Sequence[float]) -> float:
    n = len(values)
    score = sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2))
    return score / math.sqrt(n * (n - 1) * (2 * n + 5) / 18)


def _reading(look: Look, total: float, slope: float, left: float) -> Reading:
    used, lowest = look.values[-1], min(look.values)
    onset = look.steps[look.values.index(lowest)]
    why = (
        f"{look.series} is {used:.4g} of {total:.4g} at step {look.steps[-1]} and grows by {slope:.3g} a row, "
        f"from {lowest:.4g} at step {onset}: all of it within {left:.0f} more rows"
    )
    evidence = {"series": look.series, "value": used, "total": total, "slope": slope, "rows": left}
    return Reading(look.labels, left, onset, why, evidence)
