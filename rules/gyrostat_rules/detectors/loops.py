"""Loops of a recurrent-depth model that change more the later they come: what should settle runs away."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State, Window, key_of

_UPDATE = re.compile(r"loop_update_(\d{1,3})")


class Loops(NamedTuple):
    """Breached where a loop moves its input by more than ``times`` what the loop before it does, relative to its size,
    in ``needed`` of the last ``of`` rows, the newest among them. Read are ``loop_update_1``, ``loop_update_2`` and on.
    """

    times: Annotated[float, Field(gt=1)] = 1.5
    needed: Annotated[int, Field(ge=1)] = 3
    of: Annotated[int, Field(ge=1, le=64)] = 5


def loops(params: Loops, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a loop that moves more than the one before it. The onset is the first of the rows that are so."""
    for record in moment.records:
        windows = state.windows.get(key_of(record.role, record.rank), {})
        if "loop_update_2" not in record.values:
            continue
        for (_, earlier), (number, later) in pairwise(_updates(windows)):
            steps = _steps(params, earlier, later)
            if len(steps) >= params.needed and steps[-1] == record.step:
                before, after = earlier.values[-1], later.values[-1]
                labels = {"role": record.role, "rank": str(record.rank), "loop": str(number)}
                why = f"loop {number} moves its input by {after:.3g} of its size, the loop before it by {before:.3g}"
                yield Reading(labels, after, steps[0], f"{why}, since step {steps[0]}", {"before": before})


def _steps(params: Loops, earlier: Window, later: Window) -> list[int]:
    """The steps of the newest rows in which the later loop moved too much."""
    before = dict(zip(earlier.steps[-params.of :], earlier.values[-params.of :], strict=True))
    after = zip(later.steps[-params.of :], later.values[-params.of :], strict=True)
    return [step for step, value in after if step in before and value > params.times * before[step]]


def _updates(windows: Mapping[str, Window]) -> list[tuple[int, Window]]:
    """Each loop's window, in the loops' order."""
    matches = ((_UPDATE.fullmatch(name), window) for name, window in windows.items())
    return sorted(((int(m[1]), window) for m, window in matches if m), key=lambda one: one[0])
