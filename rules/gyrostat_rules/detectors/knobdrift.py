"""A number of the trainer's that nobody told it to change: a knob that reads otherwise, a learning rate that leaps.

A knob can be compared where the trainer also tells a series of the knob's very name. A change that comes with a
directive, a jump back or a Hello is somebody's word and no drift. A person who begins a run anew where it stopped,
at a far higher rate, is told of it all the same.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, Gauge, waits
from gyrostat_rules.detectors.looks import Look, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import WINDOW, Action, State, key_of

_ROUNDING = 1 + 1e-6  # a warm-up that begins at a third, as ConstantLR's does, goes to three thirds and a bit
_KNOWN = 192  # values to be seen before a leap, once a run's first ones may have been let go


class KnobDrift(NamedTuple):
    """A knob and its series may differ by ``tolerance``, relative. A series of ``rates`` leaps where it is more than
    ``factor`` times all before, once ``warmup`` values were told, and more yet where it had come down."""

    rates: tuple[str, ...] = ("learning_rate", "lr")
    factor: Annotated[float, Field(gt=1)] = 3.0
    warmup: Annotated[int, Field(ge=1)] = 8
    tolerance: float = 1e-6


class _Leap(NamedTuple):
    """``place`` of the first value after the leap; ``usual``: the value before it."""

    place: int
    usual: float


def knob_drift(params: KnobDrift, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a knob that strays from Hello, one a rate that leapt and is still up. The onset is the first such
    value since the last directive or jump back."""
    for look in looks(sorted(_knobs(state, moment)), state, moment):
        yield from _strayed(params, look, state)
    for look in looks(params.rates, state, moment, 2 * WINDOW):
        yield from _leapt(params, look, state)


def knob_gauges(params: KnobDrift, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a knob, against what it should read; one a rate, against the next leap that would be told."""
    for look in looks(sorted(_knobs(state, moment)), state, moment):
        value, wanted = look.values[-1], state.processes[key_of(look.role, look.rank)].knobs[look.series].value
        said = f"it is {value:g}, and the knob reads {wanted:g}"
        if _is_turning(state, look):
            said += "; a directive is on its way"
        apart = abs(value - wanted) / (max(abs(value), abs(wanted)) or 1.0)
        yield Gauge(look.labels, look.series, apart, params.tolerance, ABOVE, said, "difference from the knob")
    for look in looks(params.rates, state, moment, 2 * WINDOW):
        if len(look.values) <= _least(params, look.values):
            yield waits(look, _least(params, look.values) + 1)
            continue
        leap, before = _leap(params, look, state), look.values[:-1]
        limit = params.factor * leap.usual if leap else _reach(params, max(before), before[-1])
        said = f"it leapt from {leap.usual:g} and is still up" if leap else f"it was {before[-1]:g} before"
        yield Gauge(look.labels, look.series, look.values[-1], limit, ABOVE, said)


def _knobs(state: State, moment: Moment) -> set[str]:
    """Knobs that a speaker offers and also tells under the same name."""
    keys = [key_of(r.role, r.rank) for r in moment.records]
    return {n for k in keys if k in state.processes for n in state.processes[k].knobs if n in state.windows.get(k, {})}


def _strayed(params: KnobDrift, look: Look, state: State) -> Iterator[Reading]:
    process = state.processes.get(key_of(look.role, look.rank))
    knob = process.knobs.get(look.series) if process is not None else None
    if knob is None or _is_near(look.values[-1], knob.value, params) or _is_turning(state, look):
        return
    since = _last_word(state, look)
    if not any(_is_near(v, knob.value, params) for v in look.values) and not _was_told(state, look, knob.value):
        return  # never the same number: a series that only bears the knob's name, in another unit
    onset = 0
    for step, value in zip(reversed(look.steps), reversed(look.values), strict=True):
        if step <= since or _is_near(value, knob.value, params):
            break
        onset = step
    if look.steps[-1] > since:
        found = look.values[-1]
        why = (
            f"knob {look.series} should be {knob.value:g} and is {found:g} since step {onset}; no directive changed it"
        )
        evidence = {"knob": look.series, "expected": knob.value, "found": found}
        yield Reading(look.labels, found, onset, why, evidence)


def _leapt(params: KnobDrift, look: Look, state: State) -> Iterator[Reading]:
    leap = _leap(params, look, state)
    if leap is None:
        return
    found, onset = look.values[-1], look.steps[leap.place]
    times = look.values[leap.place] / leap.usual
    why = (
        f"{look.series} went from {leap.usual:g} to {look.values[leap.place]:g}, {times:.3g} times as much, at step "
        f"{onset} and is {found:g} at step {look.steps[-1]}; no directive changed it"
    )
    evidence = {"series": look.series, "expected": leap.usual, "found": found, "times": times}
    yield Reading(look.labels, found, onset, why, evidence)


def _leap(params: KnobDrift, look: Look, state: State) -> _Leap | None:
    """The leap from which the rate has not come down.

    What schedules do is none of it: 1. a warm-up from 0 or near it multiplies in its first values alone. 2. A decay
    goes down. 3. A schedule that begins anew goes no higher than before. Where what was before may have been let go,
    it comes from the low end of a decay: the further the rate has come down, the further up a leap must go, by the
    square of it.
    """
    values, top, leap = look.values, 0.0, None
    least = _least(params, values)
    if values[-1] <= params.factor * min(values[params.warmup - 1 :], default=values[-1]):
        return None  # the cheap way out, of a rate that is constant or low
    for place, (before, value) in enumerate(pairwise(values), 1):
        if leap is not None:
            leap = leap if value > params.factor * leap.usual else None
            continue
        top = max(top, before)
        grown = before > 0 and value > _reach(params, top, before)
        if grown and place >= least and not _is_somebodys(state, look, place):
            leap = _Leap(place, before)
    return leap


def _least(params: KnobDrift, values: Sequence[float]) -> int:
    """The place of the first value that may be a leap."""
    return params.warmup if len(values) < WINDOW else max(params.warmup, _KNOWN)


def _reach(params: KnobDrift, top: float, before: float) -> float:
    """What a rate must exceed to have leapt, from the highest so far and the one before it."""
    return params.factor * _ROUNDING * top * (top / before) ** 2 if before > 0 else math.inf


def _is_near(value: float, wanted: float, params: KnobDrift) -> bool:
    return abs(value - wanted) <= params.tolerance * max(abs(value), abs(wanted))


def _turned(state: State, look: Look) -> Iterator[Action]:
    """The actions that concern this process's numbers: knobs, and procedures that put a checkpoint's knobs back."""
    for incident in state.incidents:
        yield from (a for a in incident.actions if a.number and a.role in (look.role, "supervisor"))


def _is_turning(state: State, look: Look) -> bool:
    """True while a directive is out: the trainer announces its knobs before its answer is read."""
    return any(not a.outcome and a.applied_step < 0 for a in _turned(state, look))


def _was_told(state: State, look: Look, value: float) -> bool:
    return any(c.name == look.series and c.value == value for a in _turned(state, look) for c in a.knobs)


def _last_word(state: State, look: Look) -> int:
    """The step at which the newest directive was applied, or to which the run last went back, the later. The step
    itself is in doubt: one trainer tells it before it obeys, another after. Directives before the newest one may have
    been applied at steps that are undone."""
    newest = max(_turned(state, look), key=lambda a: a.number, default=None)
    return max([-1, *(j.step for j in state.jumps[-1:]), *([_when(newest)] if newest is not None else [])])


def _when(action: Action) -> int:
    """The step at which it was applied; of an undo, whose answer carries none, the one after it was sent."""
    return action.applied_step if action.applied_step >= 0 else action.sent_step + 1


def _is_somebodys(state: State, look: Look, place: int) -> bool:
    """True where a directive turned knobs, or a person went back, between a value and the one before it.

    A jump back that a directive of ours asked for is no reason for a higher rate.
    """
    before, step = look.steps[place - 1], look.steps[place]
    actions = list(_turned(state, look))
    ours = {a.arguments.get("step") for a in actions}
    turned = any(before - 1 <= _when(a) <= step for a in actions if a.knobs)
    return turned or any(before <= j.step < step and j.step not in ours for j in state.jumps)
