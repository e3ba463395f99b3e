"""Measures: what a step came to, as telemetry records it. Nothing is filtered, replaced or rounded here."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gyrostat_reference import gepo, opefo, pivotrl, task
from gyrostat_reference.credit import Credit
from gyrostat_reference.data import Batch
from gyrostat_reference.estimates import Estimates
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import k1, k3, mean_over
from gyrostat_reference.model import Output, route_overlap
from gyrostat_reference.rollout import Rollouts
from gyrostat_reference.state import local
from gyrostat_reference.update import Update

UNITS = {
    "entropy": "nats", "entropy_average": "nats", "entropy_floor": "nats", "gepo_tau_lo": "nats", "gepo_tau_hi": "nats",
    "kl": "nats", "kl_k1": "nats", "mismatch_kl": "nats", "response_length": "tokens", "step_time": "s",
    "session_round_p99": "s", "data_cursor": "items", "data_items": "items", "pivot_pool": "states",
}  # fmt: skip
_DECAY = 0.8  # of the running averages


class Step(NamedTuple):
    """What one step made; the first ``len(batch.items)`` groups are the batch's, those after them pivots'."""

    batch: Batch
    rollouts: Rollouts
    credit: Credit
    update: Update


def measure(step: Step, estimates: Estimates, knobs: KnobValues) -> dict[str, float]:
    """The step's values by name, of this rank's part of the batch but for loss and gradient norm."""
    return {
        **_of_learning(step),
        **_of_policy(step.rollouts, knobs),
        **_of_routers(step.rollouts.output),
        **_of_data(step.batch, step.credit.rewards),
        **_of_algorithms(step, estimates, knobs),
    }


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
    """True where all parameters are: one NaN or infinity makes the norm so. Of a shard, this rank's part."""
    norms = [local(p.detach()).norm() for p in model.parameters()]
    return math.isfinite(float(torch.stack(norms).sum()))


def _of_learning(step: Step) -> dict[str, float]:
    groups = len(step.batch.items)
    rewards, advantages = step.credit.rewards[:groups], step.credit.advantages
    answers = step.rollouts.sequences[:, task.PROMPT_LENGTH :].tolist()
    return {
        "loss": step.update.loss,
        "grad_norm": step.update.grad_norm,
        "clip_fraction": step.update.clip_fraction,
        "reward": float(rewards.mean()),
        "reward_min": float(rewards.min()),
        "reward_max": float(rewards.max()),
        "reward_finite": float(torch.isfinite(rewards).float().mean()),
        "reward_std": float(advantages.spread[:groups].mean()),
        "zero_advantage_fraction": float(advantages.degenerate[:groups].float().mean()),
        "unique_fraction": len(set(map(tuple, answers))) / len(answers),
    }


def _of_policy(rollouts: Rollouts, knobs: KnobValues) -> dict[str, float]:
    said, base, mask = rollouts.policy.log_probs, rollouts.base.log_probs, rollouts.mask
    return {
        "entropy": float(mean_over(rollouts.policy.entropies, mask)),
        "kl": float(mean_over(k3(said, base, knobs.kl_clamp, knobs.ratio_cap), mask)),
        "kl_k1": float(mean_over(k1(said, base), mask)),
        "mismatch_kl": float(mean_over(k3(said, rollouts.drawn.log_probs), mask)),
        "response_length": float(mask.sum(1).mean()),
    }


def _of_routers(output: Output) -> dict[str, float]:
    values = {
        "router_confidence": float(torch.stack([p.confidence for p in output.passes]).mean()),
        "router_logit_rms": float(torch.stack([p.size for p in output.passes]).mean().sqrt()),
    }
    if len(output.passes) > 1:
        values["route_overlap"] = float(route_overlap(output.passes))
    return values | {f"loop_update_{loop}": value for loop, value in enumerate(output.updates.tolist(), 1)}


def _of_data(batch: Batch, rewards: Tensor) -> dict[str, float]:
    """``suspect_item`` is there only where a verifier's result was not finite."""
    values = {"data_cursor": float(batch.start), "data_items": float(batch.stop - batch.start)}
    odd = (~torch.isfinite(rewards[: len(batch.items)])).any(1).nonzero()
    if len(odd):
        values["suspect_item"] = float(batch.items[int(odd[0])])
    return values


def _of_algorithms(step: Step, estimates: Estimates, knobs: KnobValues) -> dict[str, float]:
    credit, groups = step.credit, len(step.batch.items)
    values = opefo.measures(estimates.flow, knobs)
    if estimates.band.ramp > 0:
        values |= gepo.measures(
            estimates.band, credit.advantages.values, credit.shaped, credit.entropy, credit.rewards.mean(1),
            knobs.difficulty_threshold,
        )  # fmt: skip
    if estimates.pool.profiled:
        values |= pivotrl.measures(estimates.pool)
    if len(credit.rewards) > groups:
        values["pivot_reward"] = float(credit.rewards[groups:].mean())
        values["pivot_reward_std"] = float(credit.advantages.spread[groups:].mean())
    return values
