"""Trios as the definition of mended wants them, one for each scenario, and the changes that a test makes to them."""

import math
from collections.abc import Iterable
from typing import Any

from gyrostat_agent.demo.cases import Case, Deed
from gyrostat_agent.demo.course import Course, Point
from gyrostat_agent.demo.scenarios import CLEAN, SCENARIOS, TREATED, UNTREATED
from gyrostat_agent.demo.trio import Result, Trio

STEPS, FAULT = 120, 40
USUAL = 0.8
ENTROPY_FROM, ENTROPY_BACK = 30, 40  # where it is under the floor, and where above it again
_KNOBS = {"adv_eps": 1e-4, "lr_scale": 1.0, "max_grad_norm": 1.0, "kl_coef": 0.01, "kl_clamp": 5.0, "ratio_cap": 20.0}
_KIND = {
    "nan_advantage": "knobs", "divergence": "divergence", "nan_loud": "knobs", "entropy_collapse": "entropy",
    "inert_knob": "entropy", "expert_imbalance": "experts", "mismatch": "mismatch",
}  # fmt: skip
ENTROPY = ("entropy_collapse", "inert_knob")


def good(name: str) -> Trio:
    """The scenario's three runs, the treated one mended as it should be."""
    scenario = SCENARIOS[name]
    start = scenario.from_start
    fault = 1 if start else FAULT
    reward = 0.95 if start else USUAL
    points = [_point(step, reward, entropic=name in ENTROPY) for step in range(1, STEPS + 1)]
    treated = Course(points=points)
    if name != "clean":
        fired = ENTROPY_FROM if start else FAULT + 1
        case = Case(_KIND.get(name, "nonfinite"), "resolved", fault, fired, fired + 25)
        case.deeds = {f"i0001.{place}": deed for place, deed in enumerate(_deeds(name, fired), 1)}
        treated.cases = {"i0001": case}
    results = {
        CLEAN: Result(Course(), "", 1.0),
        UNTREATED: Result(Course(), "", 1.0),
        TREATED: Result(treated, "", 1.0),
    }
    return Trio(scenario, 0, STEPS, fault, results)


def course(trio: Trio) -> Course:
    """The treated run's."""
    return trio.treated.course


def case(trio: Trio) -> Case:
    """Its first incident."""
    return next(iter(course(trio).cases.values()))


def deeds(trio: Trio) -> list[Deed]:
    """What was done about it."""
    return list(case(trio).deeds.values())


def do(trio: Trio, *done: Deed) -> Trio:
    """Only that was done about the first incident."""
    case(trio).deeds = {f"i0001.{place}": deed for place, deed in enumerate(done, 1)}
    return trio


def also(trio: Trio, kind: str, fired: int, *, first: bool = False) -> Trio:
    """Another incident, resolved five steps after it fired, before or behind the others."""
    other, cases = {"i0099": Case(kind, "resolved", fired, fired, fired + 5)}, course(trio).cases
    course(trio).cases = {**other, **cases} if first else {**cases, **other}
    return trio


def tell(trio: Trio, steps: Iterable[int], **values: Any) -> Trio:
    """What those steps told instead; ``reward``, ``balance``, ``dead`` and ``applied`` are a point's own."""
    wanted = set(steps)
    course(trio).points = [_changed(p, values) if p.step in wanted else p for p in course(trio).points]
    return trio


def went_back(trio: Trio, to: int, at: int, **again: Any) -> Trio:
    """The run went back to step ``to`` when it had told step ``at``; the steps told ``again`` are changed."""
    course(trio).undone = [[p for p in course(trio).points if to < p.step <= at]]
    return tell(trio, range(to + 1, STEPS + 1), **again)


def did_not_live(trio: Trio, why: str) -> Trio:
    """The treated run died."""
    return trio._replace(results={**trio.results, TREATED: trio.treated._replace(died=why)})


def _changed(point: Point, values: dict[str, Any]) -> Point:
    own = {name: value for name, value in values.items() if name in Point._fields}
    return point._replace(values={**point.values, **values}, **own)


def _point(step: int, reward: float, *, entropic: bool) -> Point:
    entropy = 0.6
    if entropic and step >= ENTROPY_FROM:
        entropy = 0.2 if step < ENTROPY_BACK else 0.4
    values = {**_KNOBS, "params_finite": 1.0, "entropy_average": entropy, "entropy_floor": 0.3}
    return Point(float(step), step, reward, entropy, 0.5, (0.9, 0.8), True, (0.0, 0.0), values)


def _deeds(name: str, fired: int) -> list[Deed]:
    def deed(remedy: str, **more: Any) -> Deed:
        return Deed(
            1, remedy, "allow", **{"outcome": "done", "applied_step": fired + 1, "ended_step": fired + 25, **more}
        )

    if name == "nan_data":
        return [deed("skip_data")]
    if name == "nan_advantage":
        return [deed("put_back", knobs=("adv_eps",))]
    if name in ("nan_crash", "mismatch"):
        return [deed("restart", applied_step=FAULT - 5, back_to=FAULT - 5)]
    if name == "inert_knob":
        inert = deed("turn", outcome="ineffective", ended_step=fired + 9, knobs=("token_entropy_flow_control",))
        undo = deed("undo", applied_step=fired + 10, ended_step=fired + 10)
        return [inert, undo, deed("turn", applied_step=fired + 10, knobs=("alpha_max",))]
    if name in ("entropy_collapse", "expert_imbalance"):
        return [deed("turn", knobs=("alpha_max",) if name == "entropy_collapse" else ("router_aux_coef",))]
    return [deed("rollback", back_to=FAULT - 5)]


NAN, INF = math.nan, math.inf
