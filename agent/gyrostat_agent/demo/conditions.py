"""Conditions: what must hold in a scenario beside what must hold in all, each as the reason why it does not, or ''."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from gyrostat_agent.demo.cases import Case, Deed
from gyrostat_agent.demo.course import Course, Point
from gyrostat_agent.demo.trio import Trio

_WITHIN = 3  # steps in which a finite death is one incident
_QUARTER = 0.25  # of the first entropy: an incident must come before
_FIRST = 5
_ENTROPY_STEPS, _EXPERT_STEPS = 40, 25  # from the action to its effect
_EVEN, _DEAD = 0.6, 0.1
_SMOOTH = 5
_HORIZON = 10  # steps in which an inert knob must be found
_RATES = ("lr_scale",)  # a playbook may leave these lower than it found them
_GUARDED = 1  # step that may be lost where StepGuard is on


def done(course: Course) -> list[Deed]:
    """The actions that were carried out and held, in order; giving knobs back is none."""
    return [d for d in course.deeds if d.applied_step >= 0 and d.outcome == "done" and d.remedy != "undo"]


def applied(course: Course) -> list[Deed]:
    """The actions that were carried out, whatever came of them, in order; giving knobs back is none."""
    return [d for d in course.deeds if d.applied_step >= 0 and d.remedy not in ("undo", "page")]


def mean(values: Iterable[float]) -> float:
    """The mean, NaN of nothing."""
    found = list(values)
    return sum(found) / len(found) if found else math.nan


def _first(trio: Trio, kind: str = "") -> Case:
    """The first incident, of that kind where there is one; there is one at least, or the run was judged already."""
    cases = list(trio.treated.course.cases.values())
    return next((case for case in cases if case.kind == kind), cases[0])


def _nothing_happened(trio: Trio) -> str:
    cases = trio.treated.course.cases
    return f"nothing was wrong, and there was an incident: {_first(trio).kind}" if cases else ""


def _fired_within(steps: int, trio: Trio) -> str:
    late = _first(trio).fired_step - trio.fault_step
    return f"it fired {late} steps after the fault" if late > steps else ""


def _weights_stayed_finite(trio: Trio) -> str:
    bad = [p.step for p in trio.treated.course.told if p.values.get("params_finite", 1.0) != 1.0]
    return f"a parameter was not finite at step {bad[0]}" if bad else ""


def _few_lost(trio: Trio) -> str:
    lost = trio.treated.course.lost
    guarded = trio.scenario.guard
    return f"{lost} steps were lost, with StepGuard on" if guarded and lost > _GUARDED else ""


def _knobs_came_back(names: Sequence[str], trio: Trio) -> str:
    """They read at the end as before the fault."""
    points = trio.treated.course.points
    before = next((p for p in trio.treated.course.told if p.step == trio.fault_step - 1), points[0]).values
    for name in names:
        was, now = before.get(name, math.nan), points[-1].values.get(name, math.nan)
        if not (now == was or (name in _RATES and now < was)):
            return f"{name} was {was:g} before the fault and is {now:g}"
    return ""


def _passed_over(trio: Trio) -> str:
    """The item was passed over, and nothing undone, unless it came back."""
    deeds = [deed for deed in trio.treated.course.deeds if deed.outcome]
    if not any(d.remedy == "skip_data" and d.outcome in ("done", "ineffective") for d in deeds):
        return "the item was not passed over"
    held = all(d.outcome == "done" for d in deeds if d.remedy == "skip_data")
    back = [d.remedy for d in deeds if d.remedy in ("rollback", "restart")]
    return f"{back[0]}, though nothing had come back" if held and back else ""


def _went_back(remedies: Sequence[str], trio: Trio) -> str:
    held = any(d.remedy in remedies for d in done(trio.treated.course))
    return "" if held else f"no {' or '.join(remedies)} held"


def _one_incident(kinds: Sequence[str], trio: Trio) -> str:
    soon = [c for c in trio.treated.course.cases.values() if c.fired_step <= trio.fault_step + _WITHIN]
    if len(soon) != 1:
        return f"{len(soon)} incidents within {_WITHIN} steps of the fault"
    return "" if soon[0].kind in kinds else f"it was led by {soon[0].kind}"


def _led_by(kind: str, trio: Trio) -> str:
    return "" if _first(trio).kind == kind else f"it was called {_first(trio).kind}"


def _entropy_in_time(trio: Trio) -> str:
    """The incident came before the running entropy was under a quarter of what it began at."""
    points = trio.treated.course.told
    if (kind := _first(trio, "entropy").kind) != "entropy":
        return f"it was called {kind}"
    start = mean(p.entropy for p in points[:_FIRST])
    low = next((p.step for p in points if p.values.get("entropy_average", p.entropy) < _QUARTER * start), math.inf)
    fired = _first(trio, "entropy").fired_step
    return f"it fired at step {fired}, and a quarter of the entropy was left at {low:.0f}" if fired >= low else ""


def _entropy_is_back(after: Callable[[Course], list[Deed]], trio: Trio) -> str:
    """The running entropy was above the trainer's floor again within 40 steps of the action.

    That it has not gone since is another check's: it would be an incident again.
    """
    action = next(iter(after(trio.treated.course)), None)
    if action is None or not done(trio.treated.course):
        return "no action held"
    since = action.applied_step
    course = trio.treated.course
    points = [p for p in course.points if since < p.step <= since + _ENTROPY_STEPS]
    return (
        ""
        if any(map(_above_its_floor, points))
        else f"the entropy was not above its floor within {_ENTROPY_STEPS} steps of step {since}"
    )


def _experts_are_even(trio: Trio) -> str:
    """In means of five steps the least balanced layer and loop had rho_eff and dead share as they should, in time."""
    if not done(trio.treated.course):
        return "no action held"
    since = applied(trio.treated.course)[0].applied_step
    points = [p for p in trio.treated.course.points if since < p.step <= since + _EXPERT_STEPS]
    spans = [points[i : i + _SMOOTH] for i in range(len(points) - _SMOOTH + 1)]
    found = [
        (mean(min(p.balance) for p in s), mean(max(p.dead) for p in s)) for s in spans if all(p.balance for p in s)
    ]
    if any(rho > _EVEN and dead < _DEAD for rho, dead in found):
        return ""
    rho, dead = max(found, default=(math.nan, math.nan))
    return f"within {_EXPERT_STEPS} steps of step {since} rho_eff came to {rho:.2f}, {dead:.0%} dead"


def _router_left_alone(trio: Trio) -> str:
    turned = [name for d in trio.treated.course.deeds for name in d.knobs if name.startswith("router_")]
    return f"{turned[0]} was turned" if turned else ""


def _found_inert(trio: Trio) -> str:
    """The first rung was found to have no effect within its horizon, and the next one held.

    Counted are the steps at which it was called for: a control that rests above the floor shows nothing either way.
    """
    deeds = [d for d in _first(trio, "entropy").deeds.values() if d.outcome and d.remedy != "undo"]
    if not deeds or deeds[0].outcome != "ineffective":
        return "the knob that does nothing was not found"
    since, until = deeds[0].applied_step, deeds[0].ended_step
    late = sum(since < p.step <= until and not _above_its_floor(p) for p in trio.treated.course.points)
    return f"it was called for at {late} steps before it was found" if late > _HORIZON else ""


def _above_its_floor(point: Point) -> bool:
    return point.values.get("entropy_average", 0.0) >= point.values.get("entropy_floor", math.inf)


_RATE, _ALL = ("lr_scale", "max_grad_norm"), ("lr_scale", "max_grad_norm", "kl_coef", "kl_clamp", "ratio_cap")

CONDITIONS: Mapping[str, Sequence[Callable[[Trio], str]]] = {
    "nan_data": (_passed_over,),
    "nan_applied": (partial(_went_back, ("rollback", "restart")),),
    "nan_crash": (partial(_went_back, ("restart", "rollback")),),
    "nan_advantage": (
        partial(_fired_within, 1), partial(_knobs_came_back, ("adv_eps",)), _weights_stayed_finite, _few_lost,
    ),
    "nan_loud": (partial(_knobs_came_back, _ALL),),
    "divergence": (partial(_one_incident, ("knobs", "divergence")), partial(_knobs_came_back, _RATE)),
    "entropy_collapse": (_entropy_in_time, partial(_entropy_is_back, applied)),
    "expert_imbalance": (_experts_are_even,),
    "mismatch": (partial(_led_by, "mismatch"), _router_left_alone, partial(_went_back, ("restart",))),
    "inert_knob": (_found_inert, partial(_entropy_is_back, done)),
    "clean": (_nothing_happened,),
}  # fmt: skip
