"""Trial: one rule's detector, with the rule's parameters, on two simulated runs, through the engine itself.

The rule is tried alone and bare, without its ``for``, ``when`` and ``match``: what is tried is the detector.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from gyrostat_agent.selftest import learning, numbers, processes
from gyrostat_agent.selftest.script import Script
from gyrostat_rules.alerts import FIRING
from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Pack
from gyrostat_rules.pack import Rule, RulePack, Severity
from gyrostat_rules.state import State

Simulation = Callable[[Any, Script, bool], None]
SIMULATIONS: Mapping[str, Simulation] = {
    "nonfinite": learning.nonfinite,
    "stall": processes.stall,
    "spike": numbers.spike,
    "drift": numbers.drift,
    "drop": numbers.drop,
    "level": numbers.level,
    "stuck": numbers.stuck,
    "trend": numbers.trend,
    "apart": numbers.apart,
    "raised": numbers.raised,
    "frozen": numbers.frozen,
    "filling": numbers.filling,
    "regression": numbers.regression,
    "hollow": learning.hollow,
    "overuse": learning.overuse,
    "loops": learning.loops,
    "idle": learning.idle,
    "resumed": learning.resumed,
    "skips": learning.skips,
    "entropy": learning.entropy,
    "expert_balance": learning.expert_balance,
    "knob_drift": learning.knob_drift,
    "rise": numbers.rise,
    "grows": numbers.grows,
    "share": numbers.share,
    "beside": processes.beside,
    "behind": processes.behind,
    "quiet": processes.quiet,
    "overdue": processes.overdue,
    "damaged": processes.damaged,
    "exit": processes.exited,
    "fault_line": processes.fault_line,
}
# What a rule must at least say, for detectors that no rule of the pack uses.
_LEAST: Mapping[str, Any] = {
    "series": ("loss",), "rising": ("reward",), "falling": ("eval/score",), "part": ("data_time",),
    "whole": ("step_time",), "total": ("gpu_memory_total",), "above": 0.5, "kinds": ("nccl_timeout",),
    "roles": ("rollout",),
}  # fmt: skip
PASS, FAIL, NOT_SIMULATED = "pass", "FAIL", "not simulated"
_NAME, _SEED, _RANKS = "Tried", 20, {"beside": 3}


class Trial(NamedTuple):
    """``rule``: '' for a detector that no rule uses. ``fault`` and ``fired``: steps, -1 where there is none."""

    detector: str
    rule: str
    verdict: str
    why: str
    fault: int = -1
    fired: int = -1


class _Alarm(NamedTuple):
    """The first alarm: the place of the input that led to it, -1 for none, and its step; ``broken``: what it threw."""

    place: int = -1
    step: int = -1
    why: str = ""
    broken: str = ""


def trials(pack: RulePack) -> Iterator[Trial]:
    """Each rule of the pack tried, detector by detector; those that no rule uses with parameters of their own."""
    for detector in DETECTORS:
        rules = [rule for rule in pack.rules if rule.detector == detector]
        for rule in rules or [Rule("", detector, _sample(detector), Severity.WARNING)]:
            yield trial(rule)


def trial(rule: Rule) -> Trial:
    """One rule's detector on both runs."""
    simulation = SIMULATIONS.get(rule.detector)
    if simulation is None or rule.params is None:
        return Trial(rule.detector, rule.alert, NOT_SIMULATED, "there is no simulated run for this detector")
    try:
        ill, well = _script(rule, simulation, True), _script(rule, simulation, False)
    except (ArithmeticError, ValueError) as error:
        return Trial(rule.detector, rule.alert, NOT_SIMULATED, f"no run can be made for these parameters: {error}")
    alarm, false = _play(rule, ill), _play(rule, well)
    why = _failure(ill, alarm, false)
    return Trial(rule.detector, rule.alert, FAIL if why else PASS, why, ill.step, alarm.step)


def _failure(ill: Script, alarm: _Alarm, false: _Alarm) -> str:
    """What is wrong with how a rule spoke in the run with the fault and in the quiet one; '' where nothing is."""
    if broken := alarm.broken or false.broken:
        return f"it throws: {broken}"
    if alarm.place < 0:
        return f"it was silent in the run with a fault at step {ill.step}"
    if alarm.place < ill.fault:
        return f"it spoke at step {alarm.step}, before the fault at step {ill.step}: {alarm.why}"
    return f"it spoke at step {false.step} of the quiet run: {false.why}" if false.place >= 0 else ""


def _sample(detector: str) -> Any:
    """Parameters of a detector with nothing said that need not be; None where it is not known what must."""
    params: Any = DETECTORS[detector].params
    needed = [name for name in params._fields if name not in params._field_defaults]
    given = [*needed, *(["above"] if detector == "level" else [])]  # a level without a limit is none
    return params(**{name: _LEAST[name] for name in given}) if set(given) <= _LEAST.keys() else None


def _script(rule: Rule, simulation: Simulation, ill: bool) -> Script:
    script = Script(_SEED, ranks=_RANKS.get(rule.detector, 1), root="/ck" if rule.detector == "overdue" else "")
    simulation(rule.params, script, ill)
    return script


def _play(rule: Rule, script: Script) -> _Alarm:
    """Feed the run to an engine with that rule alone, until it fires or throws."""
    engine = Engine()
    engine.feed(Pack(0.0, "selftest", _alone(rule)))
    for place, given in enumerate(script.inputs):
        engine.feed(given)
        if found := _firing(engine.state):
            return _Alarm(place, max(engine.state.step, 0), found)
        if engine.state.broken:
            return _Alarm(broken=next(iter(engine.state.broken.values())).why)
    return _Alarm()


def _firing(state: State) -> str:
    return next((alert.why for alert in state.alerts.values() if alert.state == FIRING), "")


def _alone(rule: Rule) -> str:
    """A pack of the one rule, as text: JSON is YAML."""
    known = rule.params._field_defaults
    given = {n: _spelled(v) for n, v in rule.params._asdict().items() if n not in known or known[n] != v}
    bare = {"alert": _NAME, "detector": rule.detector, "severity": Severity.WARNING, "with": given}
    return json.dumps({"pack": "selftest", "groups": [{"name": "tried", "rules": [bare]}]})


def _spelled(value: Any) -> Any:
    """As a pack says it: YAML spells an infinity otherwise than JSON."""
    return str(value) if isinstance(value, float) and math.isinf(value) else value
