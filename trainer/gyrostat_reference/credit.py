"""Credit: what each token of a step is worth to learn, after all algorithms have had their say.

In this order: GRPO's advantage, GEPO's shaping of it, OPEFO's weights on its tokens. What they need of the whole
batch is added up over the ranks, twice a step. Called by the trainer between rewards and update.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from gyrostat_reference import gepo, opefo
from gyrostat_reference.advantage import Advantages, batch_spread, group_advantages, group_spread, is_degenerate
from gyrostat_reference.estimates import Estimates
from gyrostat_reference.gepo import Shaped
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.ranks import Ranks
from gyrostat_reference.rollout import Rollouts


class Credit(NamedTuple):
    """``rewards`` (groups, rollouts) and what became of them; ``entropy`` (groups,); ``weights`` as ``mask``."""

    rewards: Tensor
    entropy: Tensor
    advantages: Advantages
    shaped: Shaped
    weights: Tensor


def credited(
    rollouts: Rollouts, rewards: Tensor, before: Estimates, knobs: KnobValues, ranks: Ranks
) -> tuple[Credit, Estimates]:
    """The credit of a step, and the estimates moved on by it. ``rewards`` (groups, rollouts)."""
    size = rewards.shape[1]
    entropy = gepo.group_entropy(rollouts.policy.entropies, rollouts.mask, size)
    spread = group_spread(rewards)
    clear = spread[~is_degenerate(spread)].double()
    count, squares, groups, total, entropy_squares, nats, tokens = ranks.sums(
        [len(clear), float(clear.square().sum()), len(rewards), float(entropy.double().sum()),
         float(entropy.double().square().sum()), float((rollouts.policy.entropies * rollouts.mask).sum()),
         float(rollouts.mask.sum())]
    )  # fmt: skip
    sigma = batch_spread(before.sigma, count, squares)
    band = gepo.moved(before.band, groups, total, entropy_squares, bool(knobs.use_gepo))
    advantages = group_advantages(rewards, knobs.adv_eps, knobs.eta, sigma, bool(knobs.mask_degenerate))
    shaped = gepo.corrected(band, advantages.values, entropy, rewards.mean(1), knobs)
    changes = shaped.advantages.reshape(-1, 1) * rollouts.slopes * rollouts.mask
    up, down = ranks.sums([float(changes.clamp(min=0).sum()), float((-changes).clamp(min=0).sum())])
    length = tokens / (groups * size)
    flow = opefo.moved(before.flow, nats / max(tokens, 1.0), up, down, knobs, length)
    weights = opefo.token_weights(changes, flow.strength) if flow.strength else torch.ones_like(rollouts.mask)
    return Credit(rewards, entropy, advantages, shaped, weights), before._replace(sigma=sigma, band=band, flow=flow)
