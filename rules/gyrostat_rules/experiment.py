"""Experiment: every knob that was turned is one. Does what it turned move at all, and does the run pay for it?

Both are asked in each step of probation, long before the alert has had its time to clear: a trainer that says yes and
changes nothing is found within a few steps, and what does harm is taken back before it has done much.
"""

import math
from statistics import fmean, pvariance

from gyrostat.wire import KnobChange
from gyrostat_rules.pack import Effect
from gyrostat_rules.profile import named
from gyrostat_rules.state import Action, State

_ERRORS = 4.0  # standard errors that a fall is more than luck by; asked in each of some forty steps
_SAME = 1e-6  # relative; a knob may be kept as float32


def misread(action: Action) -> str:
    """Why what the ranks read back is not what the directive asked for, or ''."""
    for key, values in action.read.items():
        for change in action.knobs:
            found = values.get(change.name, change.value)
            if not math.isclose(found, change.value, rel_tol=_SAME):
                return f"{key} acknowledged, and {change.name} reads {found:g} instead of {change.value:g}"
    return ""


def apart(action: Action) -> bool:
    """True where the ranks read back different values: they no longer train alike."""
    return any(len({str(values.get(c.name)) for values in action.read.values()}) > 1 for c in action.knobs)


def moved(action: Action) -> list[KnobChange]:
    """What would take back the changes of an action whose knobs read otherwise than it asked for."""
    values = next(iter(action.read.values()), {})
    found = [(c, values.get(c.name, math.nan)) for c in action.knobs]
    return [c._replace(expect=v, value=c.expect, undo_of=action.number) for c, v in found
            if not math.isnan(v) and v != c.expect]  # fmt: skip


def inert(state: State, action: Action) -> str:
    """Why a part of the action is known to have had no effect at all, or ''. What is not told proves nothing."""
    return next((why for effect in action.effects if (why := _unmoved(state, action, effect))), "")


def _unmoved(state: State, action: Action, effect: Effect) -> str:
    told = [(step, value) for step, value in _told(state, effect.series) if step > action.applied_step > 0]
    if effect.when:
        lower, higher = (dict(_told(state, name)) for name in effect.when)
        told = [(s, v) for s, v in told if s in lower and s in higher and lower[s] < higher[s]]
    if len(told) < effect.within or any(_shows(effect, value) for _, value in told):
        return ""
    side, limit = ("above", effect.above) if effect.above is not None else ("below", effect.below)
    return f"inert: {effect.series} was never {side} {limit:g} in {len(told)} steps"


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
    before, after = before[-harm.over :], after[-harm.over :]
    was, now = fmean(before), fmean(after)
    chance = _ERRORS * math.sqrt((pvariance(before) + pvariance(after)) / harm.over)
    if now >= was - max(harm.falls * abs(was), chance):  # around 0 a share is nothing, and luck looks like harm
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
