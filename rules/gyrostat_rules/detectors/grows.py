"""Counters that grow: memory errors, packets that were lost, processes that the kernel has killed.

Only what is new counts: a card that has had errors since it was made, and none in this run, is nobody's news. What is
in use of something that hardly comes back, such as swap, may be looked at in the same way.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, Gauge
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import WINDOW, State, key_of


class Grows(NamedTuple):
    """Breached where a value is by more than ``more_than`` above the lowest of the last ``steps`` steps and of the
    value before those: what a counter that began anew has come to since, and no more.

    ``from_zero``: a series that has just come into being has grown from nothing. That holds for counts that are not
    told before there is something to count, and for no others.
    """

    series: Names
    more_than: Annotated[float, Field(ge=0)] = 0.0
    steps: Annotated[int, Field(ge=1, le=200)] = 20
    from_zero: bool = False


def grows(params: Grows, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a series that has grown. The onset is the first value above the lowest."""
    for look in looks(params.series, state, moment, WINDOW):
        begin, lowest = _lowest(params, look, state)
        if look.values[-1] - lowest > params.more_than:
            yield _reading(params, look, begin, lowest)


def grows_gauges(params: Grows, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series: by how much it has grown."""
    for look in looks(params.series, state, moment, WINDOW):
        _, lowest = _lowest(params, look, state)
        said = f"it is {look.values[-1]:.6g}, and the lowest of the last {params.steps} steps {lowest:.6g}"
        yield Gauge(look.labels, look.series, look.values[-1] - lowest, params.more_than, ABOVE, said, "growth")


def _lowest(params: Grows, look: Look, state: State) -> tuple[int, float]:
    """The place from which on it is looked at, and the lowest value there."""
    place = bisect_right(look.steps, look.steps[-1] - params.steps)
    begin = max(place - 1, 0)
    return begin, 0.0 if params.from_zero and _is_new(look, place, state) else min(look.values[begin:])


def _is_new(look: Look, place: int, state: State) -> bool:
    """True for one that was never told before those steps, or was not in the process's record before its newest."""
    if place == 0:
        return True
    before = [r for r in state.recent.get(key_of(look.role, look.rank), ()) if r.step < look.steps[-1]]
    return bool(before) and look.series not in before[-1].values


def _reading(params: Grows, look: Look, begin: int, lowest: float) -> Reading:
    onset = look.steps[-1]
    for step, value in zip(reversed(look.steps[begin:]), reversed(look.values[begin:]), strict=True):
        if value <= lowest:
            break
        onset = step
    value, grown = look.values[-1], look.values[-1] - lowest
    why = (
        f"{look.series} is {value:.6g} at step {look.steps[-1]}, {grown:.6g} more than within {params.steps} steps "
        f"before, since step {onset}; the limit is {params.more_than:g}"
    )
    evidence = {"series": look.series, "value": value, "grown": grown, "limit": params.more_than}
    return Reading(look.labels, value, onset, why, evidence)
