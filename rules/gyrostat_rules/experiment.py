"""Experiment: every knob that was turned is one. Does what it turned move at all, and does the run pay for it?

Both are asked in each step of probation, long before the alert has had its time to clear: a trainer that says yes and
changes nothing is found within a few steps, and what does harm is taken back before it has done much.
"""

import math
from collections.abc import Mapping
from statistics import fmean

from gyrostat.wire import KnobChange
from gyrostat_rules.pack import Effect
from gyrostat_rules.profile import named
from gyrostat_rules.state import Action, State

_SAME = 1e-6  # relative; a knob may be kept as float32


def moved(action: Action, values: Mapping[str, float]) -> list[KnobChange]:
    """What would take back the changes of an action whose knobs read otherwise than it asked for."""
    found = [(c, values.get(c.name, math.nan)) for c in action.knobs]
    return [c._replace(expect=v, value=c.expect, undo_of=action.number) for c, v in found
            if not math.isnan(v) and v != c.expect]  # fmt: skip


def misread(action: Action, values: Mapping[str, float]) -> str:
    """Why the ``values`` that an answer reads back are not what its directive asked for, or ''."""
    for change in action.knobs:
        found = values.get(change.name, change.value)
        if not math.isclose(found, change.value, rel_tol=_SAME):
            return f"acknowledged, and {change.name} reads {found:g} instead of {change.value:g}"
    return ""


def inert(state: State, action: Action) -> str:
    """Why a part of the action is known to have had no effect at all, or ''. What is not told proves nothing."""
    return next((why for effect in action.effects if (why := _unmoved(state, action, effect))), "")


def _unmoved(state: State, action: Action, effect: Effect) -> str:
    series = _since(state, action, effect.series)
    if (
        2 * len(series) < effect.within
        or state.examined() < action.applied_step + effect.within
        or any(_shows(effect, v) for v in series)
    ):
        return ""
    side, limit = ("above", effect.above) if effect.above is not None else ("below", effect.below)
    return f"inert: {effect.series} was never {side} {limit:g} in {len(series)} steps"


def _shows(effect: Effect, value: float) -> bool:
    over = effect.above is not None and value > effect.above
    return over or (effect.below is not None and value < effect.below)


def harmful(state: State, action: Action) -> str:
    """Why the action does more harm than it may, or ''. Means of as many steps before it and of the newest since."""
    harm, before = action.harm, _until(state, action)
    if harm is None:
        return ""
    after = _since(state, action, harm.series)
    if len(before) < harm.over or len(after) < harm.over:
        return ""
    was, now = fmean(before[-harm.over :]), fmean(after[-harm.over :])
    if now >= was - harm.falls * abs(was):
        return ""
    return f"harmful: {harm.series} fell from {was:.3g} to {now:.3g}, means of {harm.over} steps"


def _since(state: State, action: Action, series: str) -> list[float]:
    """The finite values that rank 0 has told since the action was applied; none where it may not have been."""
    return [v for s, v in _told(state, series) if s > action.applied_step > 0]


def _until(state: State, action: Action) -> list[float]:
    return [v for s, v in _told(state, action.harm.series if action.harm else "") if s <= action.applied_step]


def _told(state: State, series: str) -> list[tuple[int, float]]:
    window = named(state.windows.get("trainer/0", {}), series) if series else None
    return [(s, v) for s, v in zip(window.steps, window.values, strict=True) if math.isfinite(v)] if window else []
