"""Mending: whether a treated run was mended, by one definition for every scenario, and why or why not.

It came to its last step; each incident is resolved and did not come back within 20 steps; the reward is what it was
before (or, where the fault is there from the start, high at the end); and the scenario's own condition holds.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gyrostat_agent.demo.conditions import CONDITIONS, done, mean
from gyrostat_agent.demo.scenarios import NOTHING, STEPS
from gyrostat_agent.demo.trio import Trio

_APART = 20  # steps within which the same kind of incident is a recurrence
_BEFORE, _SMOOTH, _BACK, _LESS = 10, 5, 15, 0.05
_HIGH = 0.90
_BROKEN = {"knobs", "nonfinite", "divergence"}  # what one cause may be called, one time and the next


class Mending(NamedTuple):
    """Whether, and why or why not."""

    mended: bool
    why: str


def mending(trio: Trio) -> Mending:
    """Judge the treated run."""
    for check in _CHECKS:
        if why := check(trio):
            return Mending(False, why)
    for condition in CONDITIONS.get(trio.scenario.name, ()):
        if why := condition(trio):
            return Mending(False, why)
    return Mending(True, _how(trio))


def _reached_its_end(trio: Trio) -> str:
    course, died = trio.treated.course, trio.treated.died
    if died:
        return f"with the sidecar the run still died: {died}"
    return "" if course.step >= trio.steps else f"the run came to step {course.step} of {trio.steps}"


def _incidents_resolved(trio: Trio) -> str:
    course = trio.treated.course
    if not course.cases:
        return "" if trio.scenario.fault == NOTHING else "the sidecar opened no incident"
    states = [f"{name} is {case.state}" for name, case in course.cases.items() if case.state != "resolved"]
    return f"the run reached step {course.step}, and incident {', '.join(states)}" if states else ""


def _no_false_alarm(trio: Trio) -> str:
    early = [c for c in trio.treated.course.cases.values() if c.fired_step < trio.fault_step]
    if not early or trio.scenario.from_start:
        return ""
    return f"a {early[0].kind} incident fired at step {early[0].fired_step}, before the fault"


def _nothing_came_back(trio: Trio) -> str:
    cases = list(trio.treated.course.cases.values())
    for place, first in enumerate(cases):
        for later in cases[place + 1 :]:
            alike = later.kind == first.kind or {later.kind, first.kind} <= _BROKEN
            back = later.opened_at >= first.resolved_at and later.fired_step - first.resolved_step <= _APART
            if alike and first.resolved_step >= 0 and back:
                return f"{first.kind} was resolved at step {first.resolved_step}, and was back at {later.fired_step}"
    last = max((case.resolved_step for case in cases), default=-1)
    away = _APART if trio.steps >= STEPS else trio.steps // 5  # a run made shorter by hand proves that much less
    if last >= 0 and trio.steps - last < away:
        return f"resolved at step {last} of {trio.steps}: that it stays away for {away} steps was not seen"
    return ""


def _reward_is_back(trio: Trio) -> str:
    course = trio.treated.course
    if trio.scenario.from_start:
        return "" if course.reward >= _HIGH else f"the reward of the last ten steps is {course.reward:.3f}"
    if trio.scenario.fault == NOTHING:
        return ""
    first = {p.step: p.reward for p in reversed(course.told)}  # told again after going back, it is not what was before
    before = mean(first[s] for s in range(trio.fault_step - _BEFORE, trio.fault_step) if s in first)
    since = max([trio.fault_step - 1, *(deed.landed for deed in done(course)[-1:])])
    after = [p.reward for p in course.points if since < p.step <= since + _BACK]
    means = [mean(after[i : i + _SMOOTH]) for i in range(len(after) - _SMOOTH + 1)]
    best = max((m for m in means if math.isfinite(m)), default=0.0)
    if best >= before - _LESS:
        return ""
    return f"the reward was {before:.3f} before the fault, and {best:.3f} at best within {_BACK} steps of the action"


def _how(trio: Trio) -> str:
    said = [f"{d.remedy} at step {d.applied_step}" for d in done(trio.treated.course)]
    if not trio.treated.course.cases:
        return "no incident, no action"
    return " and ".join(said) or "the fault passed by itself"


_CHECKS: Sequence[Callable[[Trio], str]] = (
    _reached_its_end,
    _incidents_resolved,
    _no_false_alarm,
    _nothing_came_back,
    _reward_is_back,
)
