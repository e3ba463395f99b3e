"""A divergence that looks like improvement: a KL that was huge comes down, of a policy that is gone."""

from collections.abc import Iterator
from statistics import fmean, median
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.looks import Look, Names, found, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.profile import newest
from gyrostat_rules.state import WINDOW, State, Window, key_of


class Hollow(NamedTuple):
    """Breached where a KL is below ``fallen`` of its highest, which was above ``huge`` nats and ten times its first
    values, while in the last ``of`` rows the reward was below ``nothing`` on average and ``cut`` of the answers were
    cut off.
    """

    series: Names = ("kl",)
    reward: Names = ("reward",)
    truncated: Names = ("truncated_fraction",)
    huge: Annotated[float, Field(gt=0)] = 1.0
    fallen: Annotated[float, Field(gt=0, lt=1)] = 0.2
    nothing: float = 0.01
    cut: Annotated[float, Field(gt=0, le=1)] = 0.95
    of: Annotated[int, Field(ge=1, le=32)] = 3


_FIRST, _TIMES = 5, 10.0


def hollow(params: Hollow, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a process whose KL is small for no good reason. The onset is the KL's highest value."""
    for look in looks(params.series, state, moment, WINDOW):
        peak = max(look.values)
        if peak < params.huge or look.values[-1] >= params.fallen * peak:
            continue  # the cheap way out, of nearly every healthy step
        place = look.values.index(peak)
        first = median(look.values[:_FIRST])
        if place >= _FIRST and peak > _TIMES * first and _is_dead(params, look, state):
            why = (
                f"{look.series} came down from {peak:.4g} at step {look.steps[place]} to {look.values[-1]:.4g}, but no "
                f"reward is won any more and the answers are cut off"
            )
            evidence = {"series": look.series, "value": look.values[-1], "peak": peak}
            yield Reading(look.labels, look.values[-1], look.steps[place], why, evidence)


def _is_dead(params: Hollow, look: Look, state: State) -> bool:
    windows = state.windows.get(key_of(look.role, look.rank), {})

    def last(names: Names) -> list[float]:
        name = next(found(names, windows), None)
        window: Window | None = windows[name] if name is not None else None
        values = newest(window, params.of)
        return values if len(values) == params.of else []

    rewards, cut = last(params.reward), last(params.truncated)
    return bool(rewards and cut) and fmean(rewards) < params.nothing and fmean(cut) >= params.cut
