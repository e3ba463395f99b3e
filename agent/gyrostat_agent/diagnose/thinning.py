"""Thinning: a log of very many steps, several of them looked at as one, so that a diagnosis takes seconds.

What is not finite is never merged with anything: it is told at its own step, and so is what lies beside it.
"""

import math
from collections.abc import Iterable, Iterator

from gyrostat.wire import Record

MOST = 10_000  # records that are judged one by one


def thinned(records: Iterable[Record], each: int) -> Iterator[Record]:
    """Means of ``each`` records in a row; of one, all of them as they are."""
    if each <= 1:
        yield from records
        return
    held: list[Record] = []
    for record in records:
        if held and (held[0].segment != record.segment or record.step <= held[-1].step):
            yield from _merged(held)
        if not math.isfinite(sum(record.values.values())):
            yield from _merged(held)
            yield record
            continue
        held.append(record)
        if len(held) == each:
            yield from _merged(held)
    yield from _merged(held)


def _merged(held: list[Record]) -> Iterator[Record]:
    """One record of those held, which are let go. A name that is missing in some is the mean of the others."""
    if not held:
        return
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for record in held:
        for name, value in record.values.items():
            sums[name] = sums.get(name, 0.0) + value
            counts[name] = counts.get(name, 0) + 1
    yield held[-1]._replace(step=held[0].step, values={name: sums[name] / counts[name] for name in sums})
    held.clear()
