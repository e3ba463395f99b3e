"""Updates that are skipped again and again, by a counter that grows: half precision that overflows, a guard that trips.

A search for the loss scale at a run's start skips step after step and is right to; it is over with the first steps
that are not skipped.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, AT_LEAST, Gauge
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State


class Skips(NamedTuple):
    """Breached where the last ``in_a_row`` steps were all skipped, or more than ``share`` of the last ``of`` steps.

    Nothing is said until ``still`` steps in a row were not skipped, or ``search`` steps were: no scale takes longer.
    """

    series: Names = ("skipped_steps",)
    in_a_row: Annotated[int, Field(ge=1, le=64)] = 3
    share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    of: Annotated[int, Field(ge=5, le=200)] = 25
    still: Annotated[int, Field(ge=1, le=64)] = 5
    search: Annotated[int, Field(ge=1, le=200)] = 40


class _Stretch(NamedTuple):
    """Between two values: the step of the second, how many steps it is long, and how many of them were skipped."""

    step: int
    steps: int
    skipped: float


def skips(params: Skips, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a counter that grows too fast. The onset is the first skipped step of the stretch looked at."""
    for look in looks(params.series, state, moment):
        if len(look.values) < 2 or look.values[-1] == look.values[max(0, len(look.values) - params.of)]:
            continue  # the cheap way out: none of late
        stretches = _after_search(params, _stretches(look))
        last = _last(stretches, params.of)
        if not last or last[-1].skipped == 0:
            continue
        steps, skipped = sum(s.steps for s in last), sum(s.skipped for s in last)
        if _row(stretches) >= params.in_a_row or (steps >= params.of and skipped > params.share * steps):
            yield _reading(look, last, steps, skipped)


def skips_gauges(params: Skips, state: State, moment: Moment) -> Iterator[Gauge]:
    """Two gauges a counter: steps in a row that were skipped, and the share of the newest steps."""
    for look in looks(params.series, state, moment):
        stretches = _after_search(params, _stretches(look))
        last = _last(stretches, params.of)
        steps, skipped = sum(s.steps for s in last), sum(s.skipped for s in last)
        said = f"{skipped:g} of the last {steps} steps were skipped"
        row = float(_row(stretches))
        yield Gauge(look.labels, look.series, row, float(params.in_a_row), AT_LEAST, said, "skipped in a row")
        limit = params.share * steps if steps >= params.of else math.nan
        yield Gauge(look.labels, look.series, skipped, limit, ABOVE, said, "skipped of the newest")


def _stretches(look: Look) -> list[_Stretch]:
    """A counter that has begun anew has skipped what it says."""
    pairs = pairwise(zip(look.steps, look.values, strict=True))
    return [_Stretch(b, b - a, max(0.0, new - old if new >= old else new)) for (a, old), (b, new) in pairs]


def _after_search(params: Skips, stretches: Sequence[_Stretch]) -> Sequence[_Stretch]:
    """Without those in which the scale was sought."""
    still = sought = 0.0
    for place, one in enumerate(stretches):
        still = still + one.steps if one.skipped == 0 else 0.0
        sought += one.steps
        if still >= params.still or sought >= params.search:
            return stretches[place + 1 :]
    return []


def _last(stretches: Sequence[_Stretch], steps: int) -> list[_Stretch]:
    """The newest, of ``steps`` steps or a little more."""
    found: list[_Stretch] = []
    for one in reversed(stretches):
        if sum(s.steps for s in found) >= steps:
            break
        found.insert(0, one)
    return found


def _row(stretches: Sequence[_Stretch]) -> int:
    """Steps at the end that were all skipped."""
    count = 0
    for one in reversed(stretches):
        if one.skipped < one.steps:
            break
        count += one.steps
    return count


def _reading(look: Look, last: Sequence[_Stretch], steps: int, skipped: float) -> Reading:
    first = next(s for s in last if s.skipped > 0)
    onset = first.step - first.steps + 1
    why = f"{skipped:.0f} of the last {steps} steps up to step {look.steps[-1]} were skipped, since step {onset}"
    why += f" ({look.series})"
    evidence = {"series": look.series, "value": look.values[-1], "skipped": skipped, "steps": steps}
    return Reading(look.labels, look.values[-1], onset, why, evidence)
