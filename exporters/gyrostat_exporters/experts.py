"""Experts as the page shows them: how even each layer and loop is, and of single experts the fullest.

Called by ``metrics`` at each scrape, with the newest counts. An expert's number is a value and no label: which are the
fullest changes from step to step, and as labels all 61 x 256 would become series in the end.
"""

from collections.abc import Mapping, Sequence
from heapq import nlargest
from operator import add, itemgetter
from typing import NamedTuple

from gyrostat.wire import ExpertLoad
from gyrostat_rules.experts import Balance, balance, judged

_ROWS, _FULLEST, _EARLIER = 96, 8, 4  # most rows and experts that are shown; loads of the steps before that are kept
_SMALL = 4096  # counts up to which those are: only small ones have too few assignments to be judged alone
POOL = "pool"  # stands for the loop where a layer's loops are added up

Loads = tuple[ExpertLoad, ...]


class Fullest(NamedTuple):
    """One expert; ``load`` is 1 where it gets an even share of its layer's assignments."""

    load: float
    layer: int
    expert: int


class Shown(NamedTuple):
    """Of the newest load: ``rows`` are layer, loop and balance; ``cut`` rows and ``hidden`` experts are not there."""

    rows: tuple[tuple[str, str, Balance], ...] = ()
    fullest: tuple[Fullest, ...] = ()
    cut: int = 0
    hidden: int = 0


def remember(loads: Loads, load: ExpertLoad) -> Loads:
    """The loads to keep, oldest first: the newest, and where it is small a few before it."""
    return (*loads[-_EARLIER:], load) if len(load.counts) <= _SMALL else (load,)


def shown(loads: Loads) -> Shown:
    """Reduce the newest of these loads. Rows with too few assignments to tell are left out, as the rules leave them."""
    if not loads:
        return Shown()
    rows = judged(loads[-1], loads[:-1])
    pools = _pools([(layer, counts) for layer, _, counts, _ in rows])
    found = [(str(layer), str(loop), balance(counts)) for layer, loop, counts, _ in rows]
    if len(found) > _ROWS:
        found = [(str(layer), POOL, balance(counts)) for layer, counts in pools.items()]
    worst = sorted(found, key=lambda row: row[2])[:_ROWS] if len(found) > _ROWS else found
    fullest = _fullest(pools)
    return Shown(tuple(worst), fullest, len(found) - len(worst), sum(map(len, pools.values())) - len(fullest))


def _pools(rows: Sequence[tuple[int, Sequence[int]]]) -> Mapping[int, Sequence[int]]:
    """Each layer's counts, its loops added up: they share their experts."""
    pools: dict[int, Sequence[int]] = {}
    for layer, counts in rows:
        pools[layer] = list(map(add, pools[layer], counts)) if layer in pools else counts
    return pools


def _fullest(pools: Mapping[int, Sequence[int]]) -> tuple[Fullest, ...]:
    """They lie in as many layers as they are, those whose fullest is fullest: the others need no look."""
    tops = nlargest(_FULLEST, ((max(counts) * len(counts) / sum(counts), layer) for layer, counts in pools.items()))
    each = (
        Fullest(top * count / max(pools[layer]), layer, expert)
        for top, layer in tops
        for expert, count in nlargest(_FULLEST, enumerate(pools[layer]), key=itemgetter(1))
    )
    return tuple(nlargest(_FULLEST, each))
