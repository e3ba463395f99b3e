"""Entropy runs: entropies that sink through their floor, each in its own way, for a forecast to be held against.

Falls are those of policies that collapse: by the same share each step, in a line, faster and faster, slower and slower,
by the law of reward against entropy, or by turns; under noise with memory. Every one crosses, sooner or later.
"""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from noise import shaken

STEPS = 600
_QUIET = (25, 120)  # rows of a healthy beginning, which the floor is measured by


class EntropyRun(NamedTuple):
    """``values``: entropy in nats, one a step from step 1 on; ``way``: how it falls."""

    way: str
    seed: int
    values: list[float]


def runs(seed: int) -> Iterator[EntropyRun]:
    """Runs without end, each way in turn."""
    place = 0
    while True:
        way = list(_WAYS)[place % len(_WAYS)]
        yield run(way, seed + place)
        place += 1


def run(way: str, seed: int) -> EntropyRun:
    """The run of a way and a seed: a quiet beginning, then the fall, to far under half of the start."""
    dice = Random(f"entropy/{way}/{seed}")
    start = math.exp(dice.uniform(math.log(0.25), math.log(1.4)))
    at, over = dice.randrange(*_QUIET), math.exp(dice.uniform(math.log(12.0), math.log(150.0)))
    settled = dice.uniform(0.85, 1.0)
    last = dice.uniform(0.02, 0.6) * min(0.3, 0.5 * start) / (start * settled)
    falls = [_WAYS[way](max(0.0, (row - at) / over)) for row in range(STEPS)]
    level = [
        start * (1.0 - (1.0 - settled) * min(1.0, row / at)) * (last + (1.0 - last) * f) for row, f in enumerate(falls)
    ]
    return EntropyRun(way, seed, shaken(dice, level, dice.uniform(0.01, 0.08), dice.uniform(0.0, 0.7)))


# What is left of the way at a time, from 1 at time 0; about a tenth or less at time 2.
_WAYS: dict[str, Callable[[float], float]] = {
    "same share": lambda time: math.exp(-1.2 * time),
    "line": lambda time: max(0.0, 1.0 - 0.5 * time),
    "faster": lambda time: max(0.0, 1.0 - 0.25 * time * time),
    "slower": lambda time: 1.0 / (1.0 + 2.5 * time) ** 1.5,
    "late": lambda time: 1.0 - 1.0 / (1.0 + math.exp(-5.0 * (time - 1.0))) if time > 0.0 else 1.0,
    "by turns": lambda time: math.exp(-1.2 * time - 0.15 * math.sin(2.5 * math.pi * time)),
}
