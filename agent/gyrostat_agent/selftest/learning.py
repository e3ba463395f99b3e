"""Simulated runs for the detectors that know what they look at: entropy, experts, rates, values that are not finite.

Called as those of ``numbers`` are.
"""

import math

from gyrostat.wire import ExpertLoad
from gyrostat_agent.selftest.numbers import named
from gyrostat_agent.selftest.script import Script
from gyrostat_rules.detectors.balance import ExpertBalance
from gyrostat_rules.detectors.entropy import Entropy
from gyrostat_rules.detectors.hollow import Hollow
from gyrostat_rules.detectors.idle import Idle
from gyrostat_rules.detectors.knobdrift import KnobDrift
from gyrostat_rules.detectors.loops import Loops
from gyrostat_rules.detectors.nonfinite import MISSING, POISON, NonFinite
from gyrostat_rules.detectors.overuse import Overuse
from gyrostat_rules.detectors.resumed import Resumed
from gyrostat_rules.detectors.skips import Skips

_EXPERTS, _TOKENS = 16, 2000


def entropy(params: Entropy, script: Script, ill: bool) -> None:
    """The course that the look is for; in the quiet run it wanders about its start."""
    name, start = params.series, max(1.0, 2 * params.floor / (params.relative or 1.0))
    floor = min(params.floor, params.relative * start)
    script.column(name, script.about(start, 30))
    script.ill()
    slope = 1.0 - max(0.04, 1.5 * params.fall)
    falling = [start * slope**i for i in range(1, 90)]
    courses = {
        "level": [v for v in falling if v > floor / 10] + [floor / 10] * 20,
        "act": [v for v in falling if v > floor / 10] + [floor / 10] * 20,
        "forecast": [v for v in falling if v > floor],
        "collapse": [start * params.sudden / 5] * 5,
        "explosion": [2 * params.times * start] * 20,
        "rate": [start * params.lost / 3] * 3,
    }
    script.column(name, courses[params.look] if ill else script.about(start, 30))


def expert_balance(params: ExpertBalance, script: Script, ill: bool) -> None:
    """Even loads, and then one expert for all tokens."""
    even = ExpertLoad(1, 1, _EXPERTS, (_TOKENS,) * _EXPERTS)
    skewed = ExpertLoad(1, 1, _EXPERTS, (_TOKENS * _EXPERTS, *[0] * (_EXPERTS - 1)))
    for load in [even] * 25:
        script.tell({"loss": 1.0}, load)
    script.ill()
    for load in [skewed if ill else even] * (params.of + 3):
        script.tell({"loss": 1.0}, load)


def knob_drift(params: KnobDrift, script: Script, ill: bool) -> None:
    """A rate after its warm-up that leaps; in the quiet run it comes down, as schedules have it."""
    warm = [1e-4 * (i + 1) / params.warmup for i in range(params.warmup)]
    script.column(named(params.rates), warm + [1e-4] * 10)
    script.ill()
    script.column(named(params.rates), [2e-4 * params.factor] * 3 if ill else [1e-4 * 0.9**i for i in range(10)])


def nonfinite(params: NonFinite, script: Script, ill: bool) -> None:
    """A loss that is NaN twice over, or gone beside such a gradient, or a mean over nothing; else all is finite.

    Where only what did harm counts, the quiet run has one bad step, which the trainer itself has skipped.
    """
    healthy = {"loss": 1.0, "grad_norm": 0.5, "tokens_per_answer": 90.0, "step_applied": 1.0}
    for _ in range(6):
        script.tell(healthy)
    script.ill()
    if ill:
        bad = {**healthy, "tokens_per_answer": math.nan}
        if POISON in params.classes:
            bad = {**healthy, "loss": math.nan, "grad_norm": math.nan}
        elif MISSING in params.classes:
            bad = {"grad_norm": math.nan, "step_applied": 1.0}
        script.tell(bad)
        script.tell(bad)
    elif params.confirmed:
        script.tell({**healthy, "loss": math.nan, "step_applied": 0.0})
    for _ in range(0 if ill else 3):
        script.tell({**healthy, "grad_norm": 1e30})


def idle(params: Idle, script: Script, ill: bool) -> None:
    """A gradient that is gone although rewards differ; in the quiet run because they do not."""
    gradient, spread, alike = map(named, (params.series, params.spread, params.alike))
    for _ in range(10):
        script.tell({gradient: 1.0, spread: 0.3, alike: params.most / 2})
    script.ill()
    lesson = {spread: 0.3, alike: params.most / 2} if ill else {spread: 0.0, alike: 1.0}
    for _ in range(params.needed + params.exact):
        script.tell({gradient: 0.0, **lesson})


def resumed(params: Resumed, script: Script, ill: bool) -> None:
    """A life that begins elsewhere than the one before it ended; in the quiet run where it ended."""
    name = named(params.series)
    script.column(name, script.about(1.0, params.window + 5))
    script.hello()
    script.ill()
    far = 3 * params.times * math.exp(2 * params.z * 0.02)
    bad = 1.0 if not ill else 1 / far if params.direction == "down" else far
    script.column(name, script.about(bad, params.of + 3))


def hollow(params: Hollow, script: Script, ill: bool) -> None:
    """A KL that explodes and comes down with nothing won any more; in the quiet run the reward is back too."""
    names = tuple(map(named, (params.series, params.reward, params.truncated)))

    def rows(*values: float, count: int) -> None:
        for _ in range(count):
            script.tell(dict(zip(names, values, strict=True)))

    rows(params.huge / 100, 0.5, 0.0, count=10)
    script.ill()
    rows(params.huge * 10, 0.0, 1.0, count=3)
    rows(params.huge * params.fallen, *((0.0, 1.0) if ill else (0.5, 0.0)), count=params.of)


def overuse(params: Overuse, script: Script, ill: bool) -> None:
    """One expert takes all tokens of its layer; in the quiet run two share them."""
    even = ExpertLoad(1, 1, _EXPERTS, (_TOKENS,) * _EXPERTS)
    taken = (_TOKENS * _EXPERTS, 0) if ill else (_TOKENS * _EXPERTS // 2,) * 2
    skewed = ExpertLoad(1, 1, _EXPERTS, (*taken, *[0] * (_EXPERTS - 2)))
    for load in [even] * 5:
        script.tell({"loss": 1.0}, load)
    script.ill()
    for load in [skewed] * (params.needed + 2):
        script.tell({"loss": 1.0}, load)


def loops(params: Loops, script: Script, ill: bool) -> None:
    """A second loop that moves its input more than the first; in the quiet run less."""
    for bad in (False, True):
        if bad:
            script.ill()
        for _ in range(params.of + 3):
            script.tell({"loop_update_1": 1.0, "loop_update_2": 2 * params.times if bad and ill else 0.5})


def skips(params: Skips, script: Script, ill: bool) -> None:
    """A counter of skipped steps that counts every step; in the quiet run once."""
    name = named(params.series)
    script.column(name, [0.0] * (params.still + params.of))
    script.ill()
    script.column(name, [float(i + 1 if ill else 1) for i in range(params.in_a_row + 2)])
