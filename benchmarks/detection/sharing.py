"""Sharing: the runs of a corpus dealt to several processes, and what each of them counted put together again.

Called by `sidebyside.py --jobs`. A run is judged in one process, by all; which one it was changes no count.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeAlias

from standing import Counted, Standing

from gyrostat_agent.backtest.tally import Count, Tally

# Judges the runs ``place``, ``place + parts``, ...: what each entrant came to, in the order of the entrants.
Share: TypeAlias = "Callable[[int, int], list[Counted]]"


def shared(standings: Sequence[Standing], share: Share, parts: int) -> None:
    """Have ``share`` run in so many processes, and count what they say; ``share`` must be one that can be pickled."""
    for counts in _all(share, parts):
        for standing, counted in zip(standings, counts, strict=True):
            take(standing, counted)


def take(standing: Standing, counted: Counted) -> None:
    """Add what was counted elsewhere of the same entrant."""
    join(standing.tally, counted.tally)
    standing.seconds += counted.seconds
    standing.rows += counted.rows
    standing.broken += counted.broken
    standing.why = counted.why or standing.why


def join(whole: Tally, part: Tally) -> None:
    """Add the counts of other runs; their lines are not kept."""
    add(whole.overall, part.overall)
    add(whole.marked, part.marked)
    for kind, count in part.kinds.items():
        add(whole.kinds.setdefault(kind, Count()), count)
    whole.runs += part.runs
    whole.steps += part.steps
    whole.incidents += part.incidents
    whole.warnings += part.warnings
    whole.early += part.early


def add(whole: Count, part: Count) -> None:
    """Add the cases of other runs."""
    whole.faulty += part.faulty
    whole.found += part.found
    whole.healthy += part.healthy
    whole.failed += part.failed
    whole.errors += part.errors
    whole.leads += part.leads
    whole.actions += Counter(part.actions)


def _all(share: Share, parts: int) -> Iterator[list[Counted]]:
    if parts == 1:
        yield share(0, 1)
        return
    # A fresh interpreter each: a fork of a process with threads may hang.
    with ProcessPoolExecutor(parts, get_context("spawn")) as pool:
        yield from pool.map(share, range(parts), [parts] * parts)
