"""Group advantages: how much better a completion was than the others of its prompt.

A value that is not finite goes through: an infinite reward makes its group's mean infinite, its advantages NaN
and the loss NaN. Hiding that here would hide the fault from everyone who could mend its cause.
"""

from typing import NamedTuple

import torch
from torch import Tensor

_NO_SPREAD = 1e-6


class Advantages(NamedTuple):
    """``values`` (groups, rollouts); ``spread``, each group's standard deviation of rewards (groups,).

    ``degenerate`` (groups,) is true where all rollouts got the same reward: nothing to learn, masked from the loss.
    """

    values: Tensor
    spread: Tensor
    degenerate: Tensor


def group_advantages(rewards: Tensor, eps: float) -> Advantages:
    """``(r - mean) / (sigma + eps)`` within each group, as GRPO has it; rewards (groups, rollouts).

    A group is degenerate only if its sigma is finite and small: a bare ``<`` is false for NaN as well, but the
    same test turned round would mask a poisoned group and pass for health.
    """
    mean = rewards.mean(1, keepdim=True)
    spread = rewards.std(1, keepdim=True)
    degenerate = torch.isfinite(spread) & (spread < _NO_SPREAD)
    return Advantages((rewards - mean) / (spread + eps), spread.squeeze(1), degenerate.squeeze(1))
