"""Noise: how numbers of a run move when nothing is wrong. The dice are handed in; the standard library is enough."""

import math
from collections.abc import Sequence
from random import Random

NORMAL = math.inf  # degrees of freedom of a tail that is none


def student(dice: Random, freedom: float = NORMAL) -> float:
    """One draw of Student's t, scaled to variance 1. ``freedom`` above 2; the lower, the heavier its tails."""
    drawn = dice.gauss(0.0, 1.0)
    if math.isinf(freedom):
        return drawn
    return drawn * math.sqrt((freedom - 2.0) / (2.0 * dice.gammavariate(freedom / 2.0, 1.0)))


def wander(dice: Random, count: int, spread: float, hold: float = 0.0, freedom: float = NORMAL) -> list[float]:
    """``count`` values about 0 with standard deviation ``spread``; each keeps the share ``hold`` of the one before."""
    fresh, held, out = spread * math.sqrt(1.0 - hold * hold), student(dice, freedom) * spread, []
    for _ in range(count):
        out.append(held)
        held = hold * held + fresh * student(dice, freedom)
    return out


def shaken(
    dice: Random,
    level: Sequence[float],
    spread: float,
    hold: float = 0.0,
    freedom: float = NORMAL,
    most: float = math.log(12.0),
) -> list[float]:
    """Positive values about ``level``: ``spread`` is that of their logarithm, and none is further than ``most``."""
    moved = wander(dice, len(level), spread, hold, freedom)
    return [value * math.exp(min(most, max(-most, by))) for value, by in zip(level, moved, strict=True)]


def shares(dice: Random, level: Sequence[float], of: int, spread: float = 0.0, hold: float = 0.0) -> list[float]:
    """Shares of ``of`` that succeed, each with the chance ``level``: counts, with the noise that counts have.

    ``spread`` and ``hold`` move the chance itself from step to step, as batches of unlike difficulty do.
    """
    moved, out = wander(dice, len(level), spread, hold), []
    for chance, by in zip(level, moved, strict=True):
        sure = min(1.0, max(0.0, chance + by))
        count = round(of * sure + dice.gauss(0.0, 1.0) * math.sqrt(of * sure * (1.0 - sure)))
        out.append(min(of, max(0, count)) / of)
    return out


def robust(values: Sequence[float]) -> float:
    """Spread of values that does not mind a few wild ones: 1.4826 times the median distance from the median."""
    if not values:
        return 0.0
    middle = sorted(values)[len(values) // 2]
    return 1.4826 * sorted(abs(value - middle) for value in values)[len(values) // 2]
