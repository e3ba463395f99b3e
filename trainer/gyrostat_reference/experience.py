"""Experience: the completions of one step and their rewards, from the batch's prompts and from pivots."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from gyrostat_reference import pivotrl, task
from gyrostat_reference.data import Batch
from gyrostat_reference.engine import SIZE, RolloutEngine, Turn
from gyrostat_reference.faults import verify
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.model import LoopMoE
from gyrostat_reference.pivotrl import Pivot
from gyrostat_reference.policy import Policy
from gyrostat_reference.ranks import unsharded
from gyrostat_reference.rollout import Drawn, Rollouts, go_on, scored


class Experience(NamedTuple):
    """``rewards`` (groups, SIZE): of the batch's groups first, then of the pivots'; ``items`` (groups * SIZE,)."""

    batch: Batch
    rollouts: Rollouts
    rewards: Tensor
    items: Tensor


def gathered(
    policy: Policy, engine: RolloutEngine, batch: Batch, pivots: list[Pivot], temperature: float, random: Generator
) -> Experience:
    """Draw, verify, score; raises PolicyDestroyed or PoolError."""
    with unsharded(policy.model):
        drawn, rewards = engine.draw(batch.prompts, batch.items, temperature, random)
        items = torch.tensor(batch.items).repeat_interleave(SIZE)
        depths = torch.zeros_like(items)
        if pivots:
            turn, of_pivots, behind = _from_pivots(policy.model, pivots, temperature, random)
            drawn = Drawn(*(torch.cat(both) for both in zip(drawn, turn.drawn, strict=True)))
            rewards, items = torch.cat([rewards, turn.rewards]), torch.cat([items, of_pivots])
            depths = torch.cat([depths, behind])
        rollouts = scored(policy.model, policy.base, drawn, depths)
    return Experience(batch, rollouts, rewards.view(-1, SIZE), items)


def profiled(
    pool: pivotrl.Pool, seen: Experience, model: LoopMoE, step: int, knobs: KnobValues, count: int, random: Generator
) -> pivotrl.Pool:
    """The pool, profiled anew at ``count`` states of the batch's trajectories, ``model`` going on from each.

    Items whose verifier does not work make no pivots: what it says is not finite, and such states are not kept.
    """
    rows = len(seen.batch.items) * SIZE
    rollouts = seen.rollouts
    states = pivotrl.candidates(rollouts.sequences[:rows], seen.items[:rows], rollouts.mask[:rows], count, random)
    broken = seen.items[:rows][~torch.isfinite(seen.rewards.flatten()[:rows])]
    fit = ~torch.isin(states.items, broken)
    return pivotrl.profiled(
        pool, pivotrl.States(*(each[fit] for each in states)),
        lambda sequences, depths: go_on(model, sequences, depths, random).sequences,
        lambda sequences, items: verify(sequences, items, None),
        step, knobs.variance_threshold, knobs.difficulty_threshold,
    )  # fmt: skip


def _from_pivots(
    model: LoopMoE, pivots: list[Pivot], temperature: float, random: Generator
) -> tuple[Turn, Tensor, Tensor]:
    """Completions of each pivot's prefix, their items, their depths."""
    blank = [list(p.prefix) + [task.END] * (task.LENGTH - len(p.prefix)) for p in pivots]
    sequences = torch.tensor(blank).repeat_interleave(SIZE, 0)
    depths = torch.tensor([p.depth for p in pivots]).repeat_interleave(SIZE)
    items = torch.tensor([p.item for p in pivots]).repeat_interleave(SIZE)
    drawn = go_on(model, sequences, depths, random, temperature)
    return Turn(drawn, verify(drawn.sequences, items, None)), items, depths
