"""PivotRL: local group RL from states within a trajectory that the policy sometimes gets right from.

After Yi et al. (NVIDIA), arXiv 2603.21383. Of all states along a trajectory most carry no signal: from them every
continuation succeeds, or none does. So ``sample_steps`` states are drawn, each is continued G = 8 times, a verifier
says 0 or 1, and with mu the share that is right and v = mu (1 - mu), at most 1/4, a state is kept as a *pivot* iff

    v >= variance_threshold (0.15)   and   mu < difficulty_threshold (0.6)

which at G = 8 means 2, 3 or 4 right of 8; 5.7 % of the states whose true rate is 0.05 pass too. (The threshold is
not safe at G = 4, where one of four has 0.1875.) Groups are then drawn from the pivots, with the loss on tokens
after the prefix only. Profiled first with the frozen reference policy, again with the present one when the pivots
are used up: rewards over them spread by less than a third of what they did, or 50 steps have gone by.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from gyrostat_reference import task

CONTINUATIONS = 8  # of each state that is profiled
SHARE = 4  # at most a pivot group for every so many groups: a fifth of the batch
_STALE, _SPENT = 50, 1 / 3  # steps, and share of the spread at profiling
_USUAL = (0.03, 0.6)  # yield: outside of it, twice running, verifier or sampler are set up wrong

Continue = Callable[[Tensor, Tensor], Tensor]  # sequences and depths to whole sequences


class Pivot(NamedTuple):
    """A state to go on from: ``prefix`` is the prompt and the answer's first tokens, ``item`` the prompt's id."""

    prefix: tuple[int, ...]
    item: int

    @property
    def depth(self) -> int:
        """Answer tokens that are given."""
        return len(self.prefix) - task.PROMPT_LENGTH


class Pool(NamedTuple):
    """The pivots of a run. ``spread`` of their rewards when ``profiled``, a step (0: never); ``odd`` yields running."""

    pivots: tuple[Pivot, ...] = ()
    profiled: int = 0
    spread: float = math.nan
    share: float = math.nan
    odd: int = 0


class States(NamedTuple):
    """Candidates: ``sequences`` (n, LENGTH), ``items`` and ``depths`` (n,); what follows the depth is ignored."""

    sequences: Tensor
    items: Tensor
    depths: Tensor


def candidates(sequences: Tensor, items: Tensor, mask: Tensor, count: int, random: Generator) -> States:
    """At most ``count`` states along ``sequences``, without replacement, a third from each tercile of depth.

    Each answer token that ``mask`` (N, ANSWER_LENGTH) holds gives the state before it; one that several answers
    share counts once. Depth 0 is the prompt, which the batch has anyway: no state. Shapes as in Rollouts.
    """
    rows, depths = mask.nonzero(as_tuple=True)
    keys = zip(items[rows].tolist(), sequences[rows].tolist(), depths.tolist(), strict=True)
    seen: dict[tuple[int, ...], int] = {}
    for place, (item, sequence, depth) in enumerate(keys):
        if depth:
            seen.setdefault((item, *sequence[: task.PROMPT_LENGTH + depth]), place)
    once = torch.tensor(list(seen.values()), dtype=torch.int64)
    rows, depths = rows[once], depths[once]
    order = torch.randperm(len(rows), generator=random)
    by_depth = order[depths[order].argsort(stable=True)]
    parts = by_depth.tensor_split(3)
    wanted = [count // 3 + (part < count % 3) for part in range(3)]
    chosen = torch.cat([p[torch.randperm(len(p), generator=random)[:n]] for p, n in zip(parts, wanted, strict=True)])
    return States(sequences[rows[chosen]], items[rows[chosen]], depths[chosen])


def kept(right: Tensor, threshold: float, hardest: float) -> Tensor:
    """Which states are pivots, bool (n,): ``right`` (n, CONTINUATIONS) is each continuation's reward, 0 or 1.

    A reward that is not finite keeps a state out: it would make pivots of a broken verifier.
    """
    mu = right.mean(1)
    variance = (mu * (1 - mu)).float()
    return torch.isfinite(mu) & (variance >= threshold - 1e-6) & (mu < hardest - 1e-6)


def profiled(
    pool: Pool, states: States, go_on: Continue, verify: Callable[[Tensor, Tensor], Tensor], step: int,
    threshold: float, hardest: float,
) -> Pool:  # fmt: skip
    """A new pool out of ``states``; the old pivots go, whatever comes: stale ones are worse than none.

    ``go_on`` completes sequences from their depth, ``verify`` rewards sequences by item.
    """
    count = len(states.depths)
    if not count:
        return Pool(profiled=step, odd=pool.odd)
    done = go_on(states.sequences.repeat_interleave(CONTINUATIONS, 0), states.depths.repeat_interleave(CONTINUATIONS))
    right = verify(done, states.items.repeat_interleave(CONTINUATIONS)).view(count, CONTINUATIONS)
    keep = kept(right, threshold, hardest)
    share = float(keep.float().mean())
    odd = pool.odd + 1 if not _USUAL[0] <= share <= _USUAL[1] else 0
    spread = float(right[keep].std(1, correction=0).mean()) if keep.any() else math.nan
    return Pool(tuple(_pivots(states, keep)), step, spread, share, odd)


def is_due(pool: Pool, step: int, spread: float | None) -> bool:
    """True where the pool must be profiled (again); ``spread``: of the pivots' rewards in the last step, if any."""
    if not pool.profiled or step - pool.profiled >= _STALE:
        return True
    return spread is not None and spread < _SPENT * pool.spread


def drawn(pool: Pool, groups: int, random: Generator) -> list[Pivot]:
    """Pivots for a step that has ``groups`` ordinary groups, without replacement; none where the pool is empty."""
    order = torch.randperm(len(pool.pivots), generator=random).tolist()
    return [pool.pivots[i] for i in order[: groups // SHARE]]


def without(pool: Pool, items: frozenset[int]) -> Pool:
    """The pool without the pivots of ``items``: an item that is passed over must not come back by a prefix."""
    return pool._replace(pivots=tuple(p for p in pool.pivots if p.item not in items))


def measures(pool: Pool) -> dict[str, float]:
    """What PivotRL exports of a step."""
    values = {"pivot_pool": float(len(pool.pivots)), "pivot_yield": pool.share, "pivot_yield_odd": float(pool.odd >= 2)}
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _pivots(states: States, keep: Tensor) -> list[Pivot]:
    rows = keep.nonzero().flatten().tolist()
    return [
        Pivot(
            tuple(states.sequences[row, : task.PROMPT_LENGTH + int(states.depths[row])].tolist()),
            int(states.items[row]),
        )
        for row in rows
    ]
