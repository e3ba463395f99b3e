"""Expert cases: runs whose experts are skewed, dead, routed apart or specialised, with what they are as the label.

A case is a run's records, step by step: raw counts of each layer and loop, and the numbers told beside them. The label
is what was done to it. *imbalance*: tokens crowd on a few experts and that is what is wrong. *dead*: some get nothing,
the rest is even. *mismatch*: rollouts and training route apart, whatever the load. *specialisation*: the load is the
model's own and has been from the first step on, everybody works, and the run learns.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from curves import climb, growth, level, line, weight
from noise import shaken, wander

IMBALANCE, DEAD, MISMATCH, SPECIALISATION = LABELS = ("imbalance", "dead", "mismatch", "specialisation")
STEPS = 60
_STRUCK = (22, 40)  # rows between which what was not there from the start begins
_SKEW = (0.28, 0.44)  # rho_eff of a skewed load: under the warning's 0.5, clear of the noise of counts


class Step(NamedTuple):
    """One record: values by name, and counts, a row for each layer and loop (layer by layer)."""

    values: Mapping[str, float]
    counts: Sequence[Sequence[int]]


class ExpertCase(NamedTuple):
    """A labelled run. ``subject``: layer and loop that an alert would name; none where the load is even."""

    label: str
    seed: int
    layers: int
    loops: int
    subject: tuple[int, int] | None
    steps: Sequence[Step]
    note: str


class _Router(NamedTuple):
    """Shares of the experts, step by step, of the row that is looked at; the other rows are even."""

    layers: int
    loops: int
    experts: int
    tokens: int
    place: int
    shares: Sequence[Sequence[float]]


def cases(seed: int, count: int) -> Iterator[ExpertCase]:
    """``count`` cases of each label, one of each in turn; the same seed gives the same cases."""
    for place in range(count):
        for label in LABELS:
            yield case(label, seed + place)


def case(label: str, seed: int) -> ExpertCase:
    """The case of a label and a seed."""
    dice = Random(f"experts/{label}/{seed}")
    return _MAKERS[label](dice, seed)


# -- one maker a label --------------------------------------------------------------------------------


def _imbalance(dice: Random, seed: int) -> ExpertCase:
    """Even at first and then crowded; or crowded on other experts than at first; or with a reward that falls."""
    experts, at = dice.choice((8, 16, 32)), dice.randrange(*_STRUCK)
    crowded = skewed(dice, experts, dice.uniform(*_SKEW))
    way = dice.choice(("crowds", "moves", "reward", "idle"))
    first = even(experts) if way in ("crowds", "idle") else crowded
    last = crowded
    if way == "moves":
        last = moved(dice, crowded)
    if way == "idle":  # one or two in eight besides get nothing, and the rest is skewed
        last = emptied(crowded, dice.uniform(0.12, 0.18))
    values = _healthy(dice)
    if way == "reward":
        values["reward"] = _fallen(values["reward"], at)
    return _case(IMBALANCE, seed, dice, _turned(first, last, at, dice.randrange(0, 12)), values, way)


def _dead(dice: Random, seed: int) -> ExpertCase:
    """A fifth to a half of the experts get nothing, or next to nothing, and the others share evenly."""
    experts, at = dice.choice((8, 16, 32)), dice.randrange(*_STRUCK)
    last = emptied(rough(dice, experts, 0.15), dice.uniform(0.26, 0.55))
    first = last if dice.random() < 0.3 else even(experts)
    return _case(DEAD, seed, dice, _turned(first, last, at, dice.randrange(0, 12)), _healthy(dice), "unused")


def _mismatch(dice: Random, seed: int) -> ExpertCase:
    """KL between rollouts and training, routes that differ, or a lag that grows; the load even, skewed or thinned."""
    experts, at = dice.choice((8, 16, 32)), dice.randrange(*_STRUCK)
    values, way = _healthy(dice), dice.choice(("kl", "kl", "flips", "lag"))
    if way == "kl":
        last = math.exp(dice.uniform(math.log(0.02), math.log(0.5)))
        way_up = [v if row < at else last for row, v in enumerate(values["mismatch_kl"])]
        values["mismatch_kl"] = shaken(dice, way_up, 0.2, 0.3)
    elif way == "flips":
        values["route_flip_rate"] = [(0.1 if row < at else dice.uniform(0.28, 0.6)) for row in range(STEPS)]
    else:
        values["policy_lag"] = [1.0 if row < at else 1.0 + row - at for row in range(STEPS)]
    shapes = (even(experts), skewed(dice, experts, dice.uniform(*_SKEW)), emptied(even(experts), 0.3))
    return _case(MISMATCH, seed, dice, _turned(even(experts), dice.choice(shapes), at, 3), values, way)


def _specialisation(dice: Random, seed: int) -> ExpertCase:
    """Skewed from the first step on by the model's own nature, drifting a little; nobody idle, and the run learns."""
    experts = dice.choice((8, 16, 32))
    first = skewed(dice, experts, dice.uniform(*_SKEW), least=0.2)
    drifted = [share * math.exp(dice.gauss(0.0, 0.06)) for share in first]
    shares = _turned(first, [d / sum(drifted) for d in drifted], 0, STEPS)
    return _case(SPECIALISATION, seed, dice, shares, _healthy(dice), "own load")


_MAKERS = {IMBALANCE: _imbalance, DEAD: _dead, MISMATCH: _mismatch, SPECIALISATION: _specialisation}


# -- loads --------------------------------------------------------------------------------------------


def even(experts: int) -> list[float]:
    """All alike."""
    return [1.0 / experts] * experts


def rough(dice: Random, experts: int, by: float) -> list[float]:
    """Nearly alike."""
    raw = [math.exp(dice.gauss(0.0, by)) for _ in range(experts)]
    return [value / sum(raw) for value in raw]


def skewed(dice: Random, experts: int, rho: float, least: float = 0.13) -> list[float]:
    """Shares, falling by a power, whose effective share in use is ``rho``; nobody gets under ``least`` of an even one.

    Where both cannot be had, the floor stays and rho is as low as it lets be.
    """
    low, high = 0.0, 6.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(_power(experts, middle, least)) > rho else (low, middle)
    shares = _power(experts, high, least)
    return dice.sample(shares, k=experts)


def _power(experts: int, steep: float, least: float) -> list[float]:
    raw = [(place + 1.0) ** -steep for place in range(experts)]
    return [least / experts + (1.0 - least) * value / sum(raw) for value in raw]


def effective(shares: Sequence[float]) -> float:
    """rho_eff = 1 / (E * sum of squared shares)."""
    return 1.0 / (len(shares) * sum(share * share for share in shares))


def moved(dice: Random, shares: Sequence[float], least: float = 0.2) -> list[float]:
    """The same load on other experts: at least so many nats of KL away."""
    while True:
        other = dice.sample(list(shares), k=len(shares))
        if sum(new * math.log(new / old) for new, old in zip(other, shares, strict=True)) >= least:
            return other


def emptied(shares: Sequence[float], part: float) -> list[float]:
    """The same with the least busy ``part`` of the experts left with nothing to speak of."""
    gone = set(sorted(range(len(shares)), key=lambda expert: shares[expert])[: max(1, round(part * len(shares)))])
    raw = [0.0 if expert in gone else share for expert, share in enumerate(shares)]
    return [value / sum(raw) for value in raw]


def _turned(first: Sequence[float], last: Sequence[float], at: int, over: int) -> list[list[float]]:
    ways = weight(STEPS, at, over)
    return [[(1.0 - way) * a + way * b for a, b in zip(first, last, strict=True)] for way in ways]


# -- what is told -------------------------------------------------------------------------------------


def _healthy(dice: Random) -> dict[str, list[float]]:
    start = dice.uniform(0.3, 1.2)
    settled = growth(STEPS, 0, dice.uniform(0.75, 1.0), STEPS)
    rate = climb(STEPS, dice.uniform(0.2, 0.5), dice.uniform(0.5, 0.8), 30.0, 80.0)
    return {
        "reward": [value + by for value, by in zip(rate, wander(dice, STEPS, 0.015, 0.3), strict=True)],
        "entropy": shaken(dice, [start * s for s in settled], 0.02, 0.5),
        "mismatch_kl": shaken(dice, level(STEPS, dice.uniform(5e-4, 3e-3)), 0.2, 0.5, most=0.8),
        "policy_lag": [float(dice.choice((1, 1, 2))) for _ in range(STEPS)],
    }


def _fallen(reward: Sequence[float], at: int) -> list[float]:
    falls = line(STEPS - at, 0.9, 0.35)
    return [value if row < at else value * falls[row - at] for row, value in enumerate(reward)]


def _case(
    label: str, seed: int, dice: Random, shares: Sequence[Sequence[float]], values: Mapping[str, list[float]], note: str
) -> ExpertCase:
    layers, loops, experts = dice.choice((1, 2, 3)), dice.choice((1, 2, 4)), len(shares[0])
    tokens = experts * dice.choice((120, 250, 1000))
    router = _Router(layers, loops, experts, tokens, dice.randrange(layers * loops), shares)
    steps = [
        Step({name: column[row] for name, column in values.items()}, _counted(dice, router, row))
        for row in range(STEPS)
    ]
    subject = divmod(router.place, loops) if effective(shares[-1]) < 0.9 else None
    return ExpertCase(label, seed, layers, loops, subject, steps, note)


def _counted(dice: Random, router: _Router, row: int) -> list[list[int]]:
    """Counts of all rows in one step, with the noise that counts have."""
    plain = even(router.experts)
    out = []
    for place in range(router.layers * router.loops):
        shares = router.shares[row] if place == router.place else plain
        means = [router.tokens * share for share in shares]
        out.append([max(0, round(mean + math.sqrt(mean) * dice.gauss(0.0, 1.0))) for mean in means])
    return out
