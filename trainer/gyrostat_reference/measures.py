"""Measures: what a step came to, as telemetry records it. Nothing is filtered, replaced or rounded here."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gyrostat_reference.advantage import Advantages
from gyrostat_reference.data import Batch
from gyrostat_reference.loss import k3, mean_over
from gyrostat_reference.rollout import Rollouts
from gyrostat_reference.update import Update

UNITS = {
    "entropy": "nats", "entropy_average": "nats", "kl": "nats", "response_length": "tokens", "step_time": "s",
    "data_cursor": "items", "data_items": "items",
}  # fmt: skip
_DECAY = 0.8  # of the running averages


class Step(NamedTuple):
    """What one step made: ``rewards`` has shape (groups, rollouts)."""

    batch: Batch
    rollouts: Rollouts
    rewards: Tensor
    advantages: Advantages
    update: Update


def measure(step: Step) -> dict[str, float]:
    """The step's values by name; ``suspect_item`` is there only where a verifier's result was not finite."""
    batch, rollouts, rewards, advantages, update = step
    values = {
        "loss": update.loss,
        "reward": float(rewards.mean()),
        "reward_std": float(advantages.spread.mean()),
        "entropy": float(mean_over(rollouts.policy.entropies, rollouts.mask)),
        "grad_norm": update.grad_norm,
        "kl": float(mean_over(k3(rollouts.policy.log_probs, rollouts.base.log_probs), rollouts.mask)),
        "clip_fraction": update.clip_fraction,
        "zero_advantage_fraction": float(advantages.degenerate.float().mean()),
        "response_length": float(rollouts.mask.sum(1).mean()),
        "data_cursor": float(batch.start),
        "data_items": float(batch.stop - batch.start),
    }
    odd = (~torch.isfinite(rewards)).any(1).nonzero()
    if len(odd):
        values["suspect_item"] = float(batch.items[int(odd[0])])
    return values


def averaged(averages: Mapping[str, float], values: Mapping[str, float]) -> dict[str, float]:
    """Running averages of reward and entropy, moved on by a step.

    A value that is not finite is left out: it would stay in the average for ever. It
    stands in the record as it is.
    """
    new = dict(averages)
    for name in ("reward", "entropy"):
        value, key = values[name], f"{name}_average"
        if math.isfinite(value):
            new[key] = _DECAY * averages.get(key, value) + (1 - _DECAY) * value
    return new


def are_finite(model: nn.Module) -> bool:
    """True where all parameters are: one NaN or infinity makes the norm so."""
    norms = [p.detach().norm() for p in model.parameters()]
    return math.isfinite(float(torch.stack(norms).sum()))
