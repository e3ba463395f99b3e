"""Healthy mixtures of experts under RL: their balance as the trainer tells it, even or skewed by nature.

Specialists are busy, all of them: the effective share of experts in use may be as low as four tenths from the first
step on, and stays there, while the reward climbs. Nothing is to be done about that.
"""

from random import Random

from course import Columns, Course
from curves import line, settle
from noise import wander
from rlvr import course_of, policy


def balanced(dice: Random, rows: int) -> Columns:
    """All columns of a run whose experts are used evenly enough, for a fault to be put into."""
    return {
        **policy(dice, rows),
        **_told(dice, settle(rows, dice.uniform(0.8, 0.95), dice.uniform(0.68, 0.9), 80.0), 0.02),
    }


def even_experts(dice: Random, rows: int) -> Course:
    """Experts that are used evenly, and a little less so as the policy narrows."""
    return course_of(dice, balanced(dice, rows))


def specialists(dice: Random, rows: int) -> Course:
    """A load skewed by nature: it was so in the first step and stays so, nobody is dead, and the run learns."""
    own = dice.uniform(0.4, 0.62)
    return course_of(dice, {**policy(dice, rows), **_told(dice, line(rows, own, own * dice.uniform(0.93, 1.1)), 0.03)})


def _told(dice: Random, rho: list[float], dead: float) -> Columns:
    noise = wander(dice, len(rho), 0.012, 0.5)
    idle = wander(dice, len(rho), 0.012, 0.3)
    return {
        "expert_rho_eff": [min(1.0, max(0.05, value + by)) for value, by in zip(rho, noise, strict=True)],
        "expert_dead_share": [min(0.09, max(0.0, dead + by)) for by in idle],
    }
