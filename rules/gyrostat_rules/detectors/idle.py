"""Steps that change nothing: a gradient of 0 although there is something to learn.

A gradient of 0 is right where no group has spread, and where the step was skipped; those steps count for nothing. A
run that tells a reward, and neither its spread nor the share of groups without one, is not judged.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import AT_LEAST, Gauge
from gyrostat_rules.detectors.looks import Look, Names, found, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.series import STEP_APPLIED
from gyrostat_rules.state import State, Window, key_of

_REWARD, _SKIPPED = "reward", "skipped_steps"


class Idle(NamedTuple):
    """Breached where the last ``exact`` values are 0, or the last ``needed`` of a size below ``nothing``.

    Each with a reward whose spread (``spread``) is above 0, and fewer than ``most`` groups without any (``alike``).
    Where nothing of a reward is told, as in supervised training, the last ``needed`` must be 0.
    """

    series: Names = ("grad_norm",)
    spread: Names = ("reward_std",)
    alike: Names = ("zero_advantage_fraction", "zero_adv_frac", "frac_reward_zero_std")
    most: Annotated[float, Field(gt=0, le=1)] = 0.95
    nothing: Annotated[float, Field(ge=0)] = 1e-8
    exact: Annotated[int, Field(ge=1, le=64)] = 3
    needed: Annotated[int, Field(ge=1, le=64)] = 5


class _Lesson(NamedTuple):
    """What says whether a step had something to learn from; ``rewarded``: the run tells a reward."""

    spread: Window | None
    alike: Window | None
    applied: Window | None
    skipped: Window | None
    rewarded: bool


def idle(params: Idle, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a gradient that is gone. The onset is the first of the steps that changed nothing."""
    for look in looks(params.series, state, moment, 64):
        if abs(look.values[-1]) > params.nothing:
            continue  # the cheap way out, of nearly every healthy step
        lesson = _lesson(params, state.windows.get(key_of(look.role, look.rank), {}))
        tiny, zeros = _counts(params, look, lesson)
        if zeros >= (params.exact if lesson.rewarded else params.needed) or (lesson.rewarded and tiny >= params.needed):
            yield _reading(look, max(tiny, zeros), lesson)


def idle_gauges(params: Idle, state: State, moment: Moment) -> Iterator[Gauge]:
    """Two gauges a gradient: steps at the end without any, and with next to none, although there was what to learn."""
    for look in looks(params.series, state, moment, 64):
        lesson = _lesson(params, state.windows.get(key_of(look.role, look.rank), {}))
        tiny, zeros = map(float, _counts(params, look, lesson))
        said = f"it is {look.values[-1]:.3g}; steps that had nothing to learn from do not count"
        exact = float(params.exact if lesson.rewarded else params.needed)
        yield Gauge(look.labels, look.series, zeros, exact, AT_LEAST, said, "steps that are 0")
        if lesson.rewarded:
            yield Gauge(look.labels, look.series, tiny, float(params.needed), AT_LEAST, said, "steps that are tiny")


def _lesson(params: Idle, windows: Mapping[str, Window]) -> _Lesson:
    def window(names: Names) -> Window | None:
        name = next(found(names, windows), None)
        return windows[name] if name else None

    spread, alike = window(params.spread), window(params.alike)
    rewarded = spread is not None or alike is not None or window((_REWARD,)) is not None
    return _Lesson(spread, alike, windows.get(STEP_APPLIED), windows.get(_SKIPPED), rewarded)


def _counts(params: Idle, look: Look, lesson: _Lesson) -> tuple[int, int]:
    """How many steps at the end changed next to nothing, and how many of those at the end nothing at all."""
    tiny, zeros, exact = 0, 0, True
    for step, value in zip(reversed(look.steps), reversed(look.values), strict=True):
        if abs(value) > params.nothing or not _could_learn(params, lesson, step):
            break
        tiny, exact = tiny + 1, exact and value == 0.0
        zeros += exact
    return tiny, zeros


def _could_learn(params: Idle, lesson: _Lesson, step: int) -> bool:
    if _at(lesson.applied, step) == 0.0 or _has_grown(lesson.skipped, step):
        return False
    if not lesson.rewarded:
        return True
    spread, alike = _at(lesson.spread, step), _at(lesson.alike, step)
    if spread is None and alike is None:
        return False
    return (spread is None or spread > 0) and (alike is None or alike < params.most)


def _at(window: Window | None, step: int) -> float | None:
    """The newest value up to ``step``: some trainers tell a reward every second step only."""
    place = bisect_right(window.steps, step) if window is not None else 0
    return window.values[place - 1] if window is not None and place else None


def _has_grown(window: Window | None, step: int) -> bool:
    place = bisect_right(window.steps, step) if window is not None else 0
    return window is not None and place > 1 and window.values[place - 1] > window.values[place - 2]


def _reading(look: Look, count: int, lesson: _Lesson) -> Reading:
    onset = look.steps[-count]
    why = f"{look.series} is {look.values[-1]:.3g} for {count} steps, since step {onset}"
    why += ", although groups had spread" if lesson.rewarded else ", and no step was skipped"
    evidence = {"series": look.series, "value": look.values[-1], "steps": count}
    return Reading(look.labels, look.values[-1], onset, why, evidence)
