"""Buckets: a histogram's counts of one interval, and the quantiles that can be read from them.

Both ways in count since a process began, so an interval is the difference of two readings; a count that has become
smaller was begun anew, and is then all new. Called by ``metricspage`` and ``otlp``.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

QUANTILES = {"p50": 0.5, "p99": 0.99}


class Buckets(NamedTuple):
    """``counts[i]``: values up to ``bounds[i]`` and above the bound before; the last count has no bound.

    ``total``: their sum, NaN where nobody tells it.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float = math.nan


def since(now: Buckets, before: Buckets | None) -> Buckets:
    """What has come in since ``before``; all of it where that is unknown, or the counts were begun anew."""
    if before is None or now.bounds != before.bounds or any(map(_fell, now.counts, before.counts)):
        return now
    counts = tuple(a - b for a, b in zip(now.counts, before.counts, strict=True))
    return Buckets(now.bounds, counts, now.total - before.total)


def added(rows: Sequence[Buckets]) -> Buckets:
    """Several histograms as one; those whose bounds are not the first one's are left out."""
    same = [row for row in rows if row.bounds == rows[0].bounds]
    counts = tuple(sum(column) for column in zip(*(row.counts for row in same), strict=True))
    return Buckets(rows[0].bounds, counts, sum(row.total for row in same))


def quantile(buckets: Buckets, share: float) -> float:
    """The value that ``share`` of all lie below, even within a bucket as Prometheus' histogram_quantile reads it.

    NaN where there are none. Above the last bound nothing is known, so that bound is given: it is that at least.
    """
    bounds, counts = buckets.bounds, buckets.counts
    rank = share * sum(counts)
    if not bounds or not rank > 0:
        return math.nan
    below = 0.0
    for place, (bound, count) in enumerate(zip(bounds, counts, strict=False)):
        if count > 0 and below + count >= rank:
            start = bounds[place - 1] if place else min(0.0, bound)
            return start + (bound - start) * (rank - below) / count
        below += count
    return bounds[-1]


def described(name: str, interval: Buckets) -> dict[str, float]:
    """``name/p50``, ``name/p99`` and, where their sum is told, ``name/mean``; nothing where there was no value."""
    count = sum(interval.counts)
    if not count > 0:
        return {}
    values = {f"{name}/{word}": quantile(interval, share) for word, share in QUANTILES.items() if interval.bounds}
    if not math.isnan(interval.total):
        values[f"{name}/mean"] = interval.total / count
    return values


def _fell(now: float, before: float) -> bool:
    return now < before
