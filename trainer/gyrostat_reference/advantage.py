"""Group advantages: how much better a completion was than the others of its prompt.

    A_i = (r_i - mu_g) / (sigma_mix + eps),   sigma_mix = (1 - eta) sigma_B + eta sigma_g

eta = 1 is GRPO. eta = 0 divides all groups by one running sigma_B: dividing by its own sigma gives a lone success
of eight the weight 2.65 and makes nearly solved and nearly failed groups as loud as mixed ones (Dr. GRPO, arXiv
2503.20783, drops the division for the same reason).

A value that is not finite goes through: an infinite reward makes its group's mean infinite, its advantages NaN and
the loss NaN. Hiding that here would hide the fault from everyone who could mend its cause.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

NO_SPREAD = 1e-6
_KEPT = 0.9  # of sigma_B, a step


class Advantages(NamedTuple):
    """``values`` (groups, rollouts); ``spread``, each group's standard deviation of rewards (groups,).

    ``degenerate`` (groups,) is true where all rollouts got the same reward, or where the spread is not finite:
    nothing to learn, kept from sigma_B. ``left_out`` (groups,): those of them that the loss's mean is not over.
    """

    values: Tensor
    spread: Tensor
    degenerate: Tensor
    left_out: Tensor


def group_spread(rewards: Tensor) -> Tensor:
    """sigma_g, the standard deviation of each group over its rollouts (not n - 1); rewards (groups, rollouts)."""
    return rewards.std(1, correction=0)


def is_degenerate(spread: Tensor) -> Tensor:
    """True unless sigma_g is finite and at least 1e-6.

    The bare ``spread < 1e-6`` is false for the NaN that an infinite reward leaves, and it would stay in sigma_B
    for ever.
    """
    return ~(torch.isfinite(spread) & (spread >= NO_SPREAD))


def batch_spread(before: float, count: float, squares: float) -> float:
    """sigma_B: EMA_0.9 of the root mean square of sigma_g.

    ``count`` groups of all ranks are not degenerate, the squares of their sigma_g add up to ``squares``; none
    leaves it as it was. ``before`` is NaN at first.
    """
    if not count:
        return before
    now = math.sqrt(squares / count)
    return now if math.isnan(before) else _KEPT * before + (1 - _KEPT) * now


def group_advantages(
    rewards: Tensor, eps: float, eta: float = 1.0, batch: float = math.nan, masked: bool = True
) -> Advantages:
    """Advantages of ``rewards`` (groups, rollouts); ``batch`` is sigma_B, of no matter where ``eta`` is 1.

    ``masked``: a group without spread has none to give, which without ``eps`` would be 0/0; a spread that is not finite
    goes through all the same.
    """
    mean, spread = rewards.mean(1, keepdim=True), group_spread(rewards)
    mixed = spread if eta == 1 or math.isnan(batch) else (1 - eta) * batch + eta * spread
    values, degenerate = (rewards - mean) / (mixed[:, None] + eps), is_degenerate(spread)
    if masked:
        values = torch.where((degenerate & torch.isfinite(spread))[:, None], 0.0, values)
    return Advantages(values, spread, degenerate, degenerate & masked)
