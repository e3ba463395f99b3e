"""One number rises while another, which it should go with, falls: a reward that is hacked.

A rising reward vetoes nothing. What it stands for is told apart from it: a validation, a part of the reward that is
true, how long the answers are.
"""

from collections.abc import Iterator
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import AT_LEAST, BELOW, Gauge
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import WINDOW, State


class Apart(NamedTuple):
    """Breached where a value of ``rising`` is ``gain`` times the median of its ``over`` before and more, while one of
    ``falling`` is below ``left`` of the same. Both with two values before at least, positive, and above all before or
    below all before, so that it is no swing of the usual size.
    """

    rising: Names
    falling: Names
    gain: Annotated[float, Field(gt=1)] = 1.15
    left: Annotated[float, Field(gt=0, lt=1)] = 0.6
    over: Annotated[int, Field(ge=2, le=128)] = 25


def apart(params: Apart, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading for each series that falls while another rises. The onset is the step at which it is seen."""
    risen = [look for look in looks(params.rising, state, moment, WINDOW) if _times(look, params.over) >= params.gain]
    for up in risen:
        for down in looks(params.falling, state, moment, WINDOW):
            same = (up.role, up.rank, up.steps[-1]) == (down.role, down.rank, down.steps[-1])
            if same and down.series != up.series and 0 <= -_times(down, params.over) < params.left:
                yield _reading(params, up, down)


def apart_gauges(params: Apart, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a series: how many times the usual the rising are, and what is left of the falling."""
    for look in looks(params.rising, state, moment, WINDOW):
        yield Gauge(
            look.labels, look.series, abs(_times(look, params.over)), params.gain, AT_LEAST,
            f"the rising one, {look.values[-1]:.4g}; 1 within the range of those before", "times the usual before",
        )  # fmt: skip
    for look in looks(params.falling, state, moment, WINDOW):
        yield Gauge(
            look.labels, look.series, abs(_times(look, params.over)), params.left, BELOW,
            f"the falling one, {look.values[-1]:.4g}; both at once are needed", "times the usual before",
        )  # fmt: skip


def _times(look: Look, over: int) -> float:
    """The newest value over the median before it where it is above all of those, minus that where it is below; else 1.

    A step up is 1 or more, a step down between -1 and 0.
    """
    before, now = look.values[-over - 1 : -1], look.values[-1]
    if len(before) < 2 or min(before) <= 0 or min(before) <= now <= max(before):
        return 1.0
    times = now / median(before)
    return times if now > max(before) else -max(times, 0.0)


def _reading(params: Apart, up: Look, down: Look) -> Reading:
    step = up.steps[-1]
    why = (
        f"{up.series} rose to {up.values[-1]:.4g} at step {step} ({_times(up, params.over):.3g} times the usual), "
        f"while {down.series} fell to {down.values[-1]:.4g} ({-_times(down, params.over):.3g} times)"
    )
    evidence = {"rising": up.series, "falling": down.series, "value": up.values[-1], "fallen": down.values[-1]}
    return Reading(down.labels, down.values[-1], step, why, evidence)
