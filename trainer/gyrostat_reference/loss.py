"""The loss of a minibatch: clipped policy gradient, clamped KL, entropy bonus, router losses.

A mean is over the tokens of all ranks: each rank adds up its own, divides by the ranks' mean count, and averaging
the gradients over ranks does the rest.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.model import Output
from gyrostat_reference.rollout import Rollouts, score


class Lesson(NamedTuple):
    """What there is to learn from a step's completions, a row each.

    ``learn`` is ``mask`` without the completions of groups left out: those stay out of the denominator too.
    ``advantages`` and ``weights`` (OPEFO's, 1 where it is off) are (n, ANSWER_LENGTH), ``eps_hi`` (n, 1).
    """

    sequences: Tensor
    mask: Tensor
    learn: Tensor
    advantages: Tensor
    weights: Tensor
    eps_hi: Tensor
    old: Tensor
    base: Tensor


class Minibatch(NamedTuple):
    """Some rows of a lesson; the mean over ranks of their tokens, masked and to learn from."""

    rows: Lesson
    tokens: float
    learnt: float


class Loss(NamedTuple):
    """``total`` to take the gradient of; ``clip_fraction``, the share of tokens whose gradient was clipped away."""

    total: Tensor
    clip_fraction: Tensor


def lesson(
    rollouts: Rollouts, advantages: Tensor, left_out: Tensor, eps_hi: Tensor, weights: Tensor, size: int
) -> Lesson:
    """Spread ``advantages`` (groups, size), ``left_out`` and ``eps_hi`` (groups,) over the tokens of a step."""
    mask = rollouts.mask
    learn = mask * (~left_out).repeat_interleave(size)[:, None]
    each = advantages.reshape(-1, 1).expand_as(mask)
    upper = eps_hi.repeat_interleave(size)[:, None]
    return Lesson(
        rollouts.sequences, mask, learn, each, weights, upper, rollouts.policy.log_probs, rollouts.base.log_probs
    )


def taken(whole: Lesson, orders: Sequence[Tensor]) -> list[Lesson]:
    """The rows of a lesson in ``orders``, an index tensor for each minibatch."""
    return [Lesson(*(t[rows] for t in whole)) for rows in orders]


def loss_of(output: Output, batch: Minibatch, knobs: KnobValues, bonus: float) -> Loss:
    """The loss of a minibatch under the model's ``output`` for it; ``bonus`` is the floor controller's alpha.

    Clipped unevenly (DAPO, arXiv 2503.14476); the router's balance loss (Switch, 2101.03961) and z loss
    (ST-MoE, 2202.08906) are added.
    """
    rows = batch.rows
    scores = score(output.logits, rows.sequences)
    ratio = (scores.log_probs - rows.old).clamp(-knobs.ratio_cap, knobs.ratio_cap).exp()
    plain = -rows.advantages * ratio
    clipped = -rows.advantages * torch.minimum(ratio.clamp(min=1 - knobs.eps_lo), 1 + rows.eps_hi)
    total = _mean(torch.maximum(plain, clipped) * rows.weights, rows.learn, batch.learnt)
    total = total + knobs.router_aux_coef * output.balance + knobs.router_z_coef * output.z
    if bonus:
        total = total - bonus * _mean(scores.entropies, rows.mask, batch.tokens)
    if knobs.kl_coef:
        kl = k3(scores.log_probs, rows.base, knobs.kl_clamp, knobs.ratio_cap)
        total = total + knobs.kl_coef * _mean(kl, rows.mask, batch.tokens)
    gap = (clipped - plain).detach()
    # A comparison with NaN is false: without this, a poisoned batch would report that nothing was clipped.
    was_clipped = torch.where(gap.isnan(), gap, (gap > 0).float())
    return Loss(total, _mean(was_clipped, rows.learn, batch.learnt))


def k1(log_probs: Tensor, base: Tensor) -> Tensor:
    """The k1 estimate of KL(policy, base) at each token, in nats: unbiased, and of either sign."""
    return log_probs - base


def k3(log_probs: Tensor, base: Tensor, clamp: float = 10.0, cap: float = 20.0) -> Tensor:
    """The k3 estimate of KL(policy, base) at each token, in nats, never below 0, clamped.

    Raw, one rare token made its mean 1e3 in a healthy run, and its gradient overflows at a high learning rate.
    """
    difference = (base - log_probs).clamp(-cap, cap)
    return (difference.exp() - difference - 1).clamp(max=clamp)


def mean_over(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of ``values`` where ``mask`` is 1; 0 over nothing. NaN under the mask still shows: NaN * 0 is NaN."""
    return (values * mask).sum() / mask.sum().clamp(min=1)


def _mean(values: Tensor, mask: Tensor, count: float) -> Tensor:
    return (values * mask).sum() / max(count, 1e-9) if count else (values * mask).sum()
