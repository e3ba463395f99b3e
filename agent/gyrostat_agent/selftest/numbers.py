"""Simulated runs for the detectors of numbers: a healthy beginning, made from the rule's own limits, then the fault.

Each is called with ``ill`` for the run in which its detector must speak, and without for the one in which it must not.
"""

import math
from collections.abc import Iterator

from gyrostat_agent.selftest.script import Script
from gyrostat_rules.detectors.apart import Apart
from gyrostat_rules.detectors.drift import Drift
from gyrostat_rules.detectors.drop import Drop
from gyrostat_rules.detectors.filling import Filling
from gyrostat_rules.detectors.frozen import Frozen
from gyrostat_rules.detectors.grows import Grows
from gyrostat_rules.detectors.level import Level
from gyrostat_rules.detectors.raised import Raised
from gyrostat_rules.detectors.regression import Regression
from gyrostat_rules.detectors.rise import Rise
from gyrostat_rules.detectors.share import Share
from gyrostat_rules.detectors.spike import Spike
from gyrostat_rules.detectors.stuck import Stuck
from gyrostat_rules.detectors.trend import Trend

_NAMES = {"any validation score": "eval/score", "any checked reward": "rewards/accuracy"}
_STEADY = 0.001  # of the level; no limit is as near as that


def named(names: tuple[str, ...]) -> str:
    """The first series that a rule names, as a trainer would call it."""
    return _NAMES.get(names[0], names[0])


def level(params: Level, script: Script, ill: bool) -> None:
    """A value that is on the right side of its limit, and then far on the wrong one."""
    name, healthy = named(params.series), _healthy(params)
    script.column(
        name, script.about(healthy, max(params.skip + params.first, params.least, params.needed) + 5, _STEADY)
    )
    script.ill()
    bad = next(_too_far(params, healthy), healthy) if ill else healthy
    script.column(name, script.about(bad, params.of, _STEADY))


def _healthy(params: Level) -> float:
    """A value within the limits: half of what is too much, twice what is too little."""
    if params.below is not None and params.above is not None:
        return (params.below + params.above) / 2
    if params.below is not None:
        return 2 * params.below if params.below > 0 else params.below + 1
    if params.above is not None:
        return params.above / 2 if params.above > 0 else params.above - 1 if params.above_times is None else 1.0
    return 1.0


def _too_far(params: Level, start: float) -> Iterator[float]:
    for sign, fixed, times in ((1, params.above, params.above_times), (-1, params.below, params.below_times)):
        both = [v for v in (fixed, None if times is None else times * start) if v is not None]
        if both:
            limit = sign * max(sign * v for v in both)
            yield limit + sign * (abs(limit) / 2 or 1.0)


def spike(params: Spike, script: Script, ill: bool) -> None:
    """A jump to a thousandfold; in the quiet run one of a tenth."""
    name = named(params.series)
    script.column(name, script.about(1.0, params.window + params.of + params.least))
    script.ill()
    away = math.exp(4 * max(params.z, params.alone if math.isfinite(params.alone) else 0.0) * math.log1p(params.floor))
    far = max(1000.0, away) * max(1.0, params.beyond)
    bad = 1.1 if not ill else far if params.direction != "down" else 1 / far if params.log else -far
    script.column(name, [bad] * params.of)


def drift(params: Drift, script: Script, ill: bool) -> None:
    """A shift to twice or a third for good."""
    name = named(params.series)
    script.column(name, script.about(1.0, params.reference + 40))
    script.ill()
    bad = 1.0 if not ill else 1 / 3 if params.direction == "down" else 2.0
    script.column(name, script.about(bad, 20 + 2 * int(params.limit)))


def drop(params: Drop, script: Script, ill: bool) -> None:
    """A tenth of what is too little, for good; in the quiet run one low value among others, where one is not enough."""
    name, usual = named(params.series), max(1.0, 20 * params.least)
    script.column(name, script.about(usual, params.window + params.few + params.of))
    script.ill()
    low = usual * params.ratio / 10
    if ill:
        script.column(name, [low] * (params.of + 2))
    else:
        script.column(name, [*([low] if params.of > 2 else []), *script.about(usual, params.of)])


def stuck(params: Stuck, script: Script, ill: bool) -> None:
    """Values that are nearly alike; in the quiet run they swing."""
    name, middle = named(params.series), params.saturated / 2
    swing = 3 * params.within
    script.column(name, [middle * (1 + (swing if i % 2 else -swing)) for i in range(params.of)])
    script.ill()
    swing = params.within / 8 if ill else swing
    script.column(name, [middle * (1 + (swing if i % 2 else -swing)) for i in range(params.of + 5)])


def trend(params: Trend, script: Script, ill: bool) -> None:
    """One way from the first value on; in the quiet run to and fro."""
    sign = -1 if params.direction == "down" else 1
    script.ill()
    values = [10.0 + (sign * i if ill else i % 2) for i in range(params.most + 5)]
    script.column(named(params.series), values)


def apart(params: Apart, script: Script, ill: bool) -> None:
    """One rises while the other falls; in the quiet run it rises alone."""
    up = named(params.rising)
    down = next((n for n in map(named, zip(params.falling, strict=False)) if n != up), "")
    if not down:
        raise ValueError(f"{up} cannot both rise and fall")
    for a, b in zip(script.about(1.0, params.over + 2), script.about(1.0, params.over + 2), strict=True):
        script.tell({up: a, down: b})
    script.ill()
    script.tell({up: 2 * params.gain, down: params.left / 2 if ill else 1.0})


def rise(params: Rise, script: Script, ill: bool) -> None:
    """Twice what is too much, value after value; in the quiet run once."""
    name, usual = named(params.series), 1.0
    script.column(name, script.about(usual, params.window + params.least))
    script.ill()
    bad = 2 * params.times * usual
    script.column(name, [bad] * (params.of if ill else min(1, params.needed - 1)))
    script.column(name, [bad if ill else usual] * params.of)


def frozen(params: Frozen, script: Script, ill: bool) -> None:
    """Values that moved from step to step and stand; in the quiet run they go on moving."""
    name, middle = named(params.series), params.saturated / 2
    moving = [middle * (1 + (i % 2) / 10) for i in range(2 * params.before + params.of)]
    script.column(name, moving)
    script.ill()
    script.column(name, [middle] * (params.of + 2) if ill else moving)


def filling(params: Filling, script: Script, ill: bool) -> None:
    """A memory that fills up row by row; in the quiet run it is nearly full and stays so."""
    used, total = named(params.series), named(params.total)
    full, rows = 1.02, 2 * params.of
    script.ill()
    for i in range(rows):
        script.tell({used: full * (i + 1) / rows if ill else 0.99, total: 1.0})


def regression(params: Regression, script: Script, ill: bool) -> None:
    """A validation that loses half of its best and stays there; in the quiet run it does so once."""
    name = named(params.series)
    script.column(name, script.about(1.0, params.least + params.among + 5))
    script.ill()
    low = 1 - min(0.99, 2 * params.below + 0.1 * params.spreads)
    script.column(name, [low] * (params.needed if ill else params.needed - 1) + ([] if ill else [1.0]))


def raised(params: Raised, script: Script, ill: bool) -> None:
    """Far above what was usual, value after value."""
    name = named(params.series)
    script.column(name, script.about(1.0, params.few + params.of + 8))
    script.ill()
    bad = 10 * max(params.times + params.by, params.beyond, 1.0) if ill else 1.0
    script.column(name, script.about(bad, params.of))


def grows(params: Grows, script: Script, ill: bool) -> None:
    """A counter that stands, and then counts."""
    name = named(params.series)
    script.column(name, [0.0] * (params.steps + 2))
    script.ill()
    script.column(name, [2 * params.more_than + 1 if ill else 0.0] * 3)


def share(params: Share, script: Script, ill: bool) -> None:
    """A small part, and then one and a half times what is too much."""
    part, whole = named(params.part), named(params.whole)
    for bad in (False, True):
        if bad:
            script.ill()
        for value in script.about(params.above * (1.5 if bad and ill else 0.3), params.of + 2):
            script.tell({part: value, whole: 1.0})
