"""The loss of a minibatch: clipped policy gradient, clamped KL towards the base policy, router losses."""

from typing import NamedTuple

import torch
from torch import Tensor

from gyrostat_reference.advantage import Advantages
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.model import Output
from gyrostat_reference.rollout import Rollouts, score

RATIO_CAP = 20.0  # on |log ratio|: exp of more overflows what follows
KL_CLAMP = 10.0  # on k3: raw, one rare token made its mean 1e3 in a healthy run


class Minibatch(NamedTuple):
    """Some of a step's completions: ``sequences`` (n, LENGTH), the rest (n, ANSWER_LENGTH).

    ``learn`` is ``mask`` without the completions of degenerate groups: those stay out of the denominator too.
    """

    sequences: Tensor
    mask: Tensor
    learn: Tensor
    advantages: Tensor
    old: Tensor
    base: Tensor


class Loss(NamedTuple):
    """``total`` to take the gradient of; ``clip_fraction``, the share of tokens whose gradient was clipped away."""

    total: Tensor
    clip_fraction: Tensor


def minibatches(rollouts: Rollouts, advantages: Advantages, order: Tensor, parts: int) -> list[Minibatch]:
    """Split a step's completions, taken in ``order``, into ``parts``."""
    size = advantages.values.shape[1]
    learn = rollouts.mask * (~advantages.degenerate).repeat_interleave(size)[:, None]
    each = advantages.values.reshape(-1, 1).expand_as(rollouts.mask)
    whole = Minibatch(
        rollouts.sequences, rollouts.mask, learn, each, rollouts.policy.log_probs, rollouts.base.log_probs
    )
    return [Minibatch(*(t[rows] for t in whole)) for rows in order.chunk(parts)]


def loss_of(output: Output, batch: Minibatch, knobs: KnobValues) -> Loss:
    """The loss of a minibatch under the model's ``output`` for it.

    Clipped unevenly (DAPO, arXiv 2503.14476); the router's balance loss (Switch, 2101.03961) and z loss
    (ST-MoE, 2202.08906) are added.
    """
    new = score(output.logits, batch.sequences).log_probs
    ratio = (new - batch.old).clamp(-RATIO_CAP, RATIO_CAP).exp()
    plain = -batch.advantages * ratio
    clipped = -batch.advantages * ratio.clamp(1 - knobs.eps_lo, 1 + knobs.eps_hi)
    total = mean_over(torch.maximum(plain, clipped), batch.learn)
    total = total + knobs.router_aux_coef * output.balance + knobs.router_z_coef * output.z
    if knobs.kl_coef:
        total = total + knobs.kl_coef * mean_over(k3(new, batch.base), batch.mask)
    gap = (clipped - plain).detach()
    # A comparison with NaN is false: without this, a poisoned batch would report that nothing was clipped.
    was_clipped = torch.where(gap.isnan(), gap, (gap > 0).float())
    return Loss(total, mean_over(was_clipped, batch.learn))


def k3(log_probs: Tensor, base: Tensor) -> Tensor:
    """The k3 estimate of KL(policy, base) at each token, in nats, clamped to KL_CLAMP."""
    difference = (base - log_probs).clamp(-RATIO_CAP, RATIO_CAP)
    return (difference.exp() - difference - 1).clamp(max=KL_CLAMP)


def mean_over(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of ``values`` where ``mask`` is 1; 0 over nothing. NaN under the mask still shows: NaN * 0 is NaN."""
    return (values * mask).sum() / mask.sum().clamp(min=1)
