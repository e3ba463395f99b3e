"""Expert balance of one layer and loop, reduced from raw counts, and the series that a record's counts give.

    CV = std_e(f) * E      rho_eff = 1 / (1 + CV^2)      dead share = share of experts with f_e < 0.1 / E

CV is corrected for the finite sample: even perfect routing of N assignments gives E[CV^2] = (E - 1) / N.
A row of fewer than 50 assignments an expert is not judged alone: the counts of the steps before are added,
and where they are too few as well, it is left out, for chance alone would read as dead experts.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from operator import add, itemgetter
from typing import NamedTuple

from gyrostat.wire import ExpertLoad

RHO_EFF, DEAD_SHARE, SHARE = "expert_rho_eff", "expert_dead_share", "expert_share"
WORST_LAYER, WORST_LOOP, POOL = "expert_worst_layer", "expert_worst_loop", "pool"
ENOUGH = 50  # assignments an expert
_ROWS = 64  # layers times loops up to which each has series of its own: a window a name is kept of each process
_SHARES = 64  # layers times experts up to which each expert has
_KEPT = 4096  # counts up to which a thin load is kept for the steps after it

Row = tuple[int, int, Sequence[int], int]  # layer, loop, counts of each expert, and their sum


class Balance(NamedTuple):
    """Effective share of experts in use (0 to 1), share of dead ones, largest share of one expert."""

    rho_eff: float
    dead_share: float
    top_share: float


def balance(counts: Sequence[int]) -> Balance:
    """Balance of one row of counts; perfect where nothing was routed, for nothing is known then."""
    total = sum(counts)
    use = _use(counts, total)
    return Balance(*use, max(counts) / total if total else 0.0)


class _Use(NamedTuple):
    """What is kept of each row at each step, the least balanced first in order."""

    rho_eff: float
    dead_share: float


def _use(counts: Sequence[int], total: int) -> _Use:
    experts = len(counts)
    if not experts or not total:
        return _Use(1.0, 0.0)
    # No loop of our own: a tenth of the time where there are 61 layers of 256; hypot rounds far below the correction.
    cv2 = experts * (math.hypot(*counts) / total) ** 2 - 1.0
    adjusted = max(0.0, cv2 - (experts - 1) / total)
    few = 0.1 * total / experts
    dead = bisect_left(sorted(counts), few) / experts if min(counts) < few else 0.0
    return _Use(1.0 / (1.0 + adjusted), dead)


def worst(load: ExpertLoad) -> Balance:
    """The least balanced layer and loop."""
    return min((balance(counts) for _, _, counts in load.rows()), default=Balance(1.0, 0.0, 0.0))


def evenness(counts: Sequence[int]) -> float:
    """Entropy of the load over that of an even one, 0 to 1; 1 where nothing was routed."""
    total = sum(counts)
    if total == 0 or len(counts) < 2:
        return 1.0
    return -sum(c / total * math.log(c / total) for c in counts if c) / math.log(len(counts))


def series_of(load: ExpertLoad | None, earlier: Iterable[ExpertLoad | None] = ()) -> dict[str, float]:
    """The series that a record's counts give, by name; ``earlier`` are loads of the steps before it, oldest first.

    Always ``expert_rho_eff``, lowest of any layer and loop, ``expert_dead_share``, highest of any, and where the
    former is: ``expert_worst_layer``, ``expert_worst_loop``; ``expert_rho_eff/pool`` and ``expert_dead_share/pool``,
    of the least balanced layer, its loops added up. For at most 64 layers and loops ``expert_rho_eff/1/0`` and
    ``expert_dead_share/1/0``, of layer 1 and loop 0. For at most 64 experts of all layers ``expert_share/1/5``, the
    share of its layer's assignments that expert 5 gets. Of rows with too few assignments nothing.
    """
    rows = judged(load, earlier) if load else []
    found = [(layer, loop, _use(counts, total)) for layer, loop, counts, total in rows]
    if not found or load is None:
        return {}
    layer, loop, low = min(found, key=itemgetter(2))
    dead = max(b.dead_share for _, _, b in found)
    out = {RHO_EFF: low.rho_eff, DEAD_SHARE: dead, WORST_LAYER: float(layer), WORST_LOOP: float(loop)}
    if load.layers * load.loops <= _ROWS:
        out.update({f"{RHO_EFF}/{i}/{j}": b.rho_eff for i, j, b in found})
        out.update({f"{DEAD_SHARE}/{i}/{j}": b.dead_share for i, j, b in found})
    pool: _Use | Balance = low
    if load.loops > 1 or load.layers * load.experts <= _SHARES:
        pools = _pooled(rows)
        pool = min(map(balance, pools.values()))
        out.update(_shares(pools) if load.layers * load.experts <= _SHARES else {})
    out.update({f"{RHO_EFF}/{POOL}": pool.rho_eff, f"{DEAD_SHARE}/{POOL}": pool.dead_share})
    return out


def thin(load: ExpertLoad | None) -> ExpertLoad | None:
    """The load where it is worth keeping for the steps after it: few assignments, and few numbers; else None."""
    if load is None or len(load.counts) > _KEPT:
        return None
    return load if any(sum(counts) < ENOUGH * load.experts for _, _, counts in load.rows()) else None


def judged(load: ExpertLoad, earlier: Iterable[ExpertLoad | None] = ()) -> list[Row]:
    """The rows that have assignments enough, alone or with those of earlier steps, newest first."""
    shape = load[:3]
    before = [e.counts for e in earlier if e is not None and e[:3] == shape]
    rows: list[Row] = []
    enough = ENOUGH * max(load.experts, 1)
    for layer, loop, counts in load.rows():
        total, summed, first = sum(counts), counts, (layer * load.loops + loop) * load.experts
        for old in reversed(before) if total < enough else ():
            summed = tuple(map(add, summed, old[first : first + load.experts]))
            if (total := sum(summed)) >= enough:
                break
        if total >= enough:
            rows.append((layer, loop, summed, total))
    return rows


def _pooled(rows: Iterable[Row]) -> Mapping[int, Sequence[int]]:
    """Each layer's counts, its loops added up: they share their experts, layers do not."""
    pools: dict[int, Sequence[int]] = {}
    for layer, _, counts, _ in rows:
        pools[layer] = list(map(add, pools[layer], counts)) if layer in pools else counts
    return pools


def _shares(pools: Mapping[int, Sequence[int]]) -> dict[str, float]:
    out = {}
    for layer, counts in pools.items():
        total = sum(counts)
        out.update({f"{SHARE}/{layer}/{expert}": count / total for expert, count in enumerate(counts)})
    return out
