"""Bound: how much of what a rule would have done was called for, at least, and how many more hits would say so."""

from gyrostat_agent.backtest.rates import Rate, wilson

LEAST = 0.9
_MOST = 100_000


def share(hits: int, misses: int) -> Rate:
    """Hits of all that is decided, with Wilson's bounds, 95 %; of nothing there is no share."""
    return wilson(hits, hits + misses)


def passes(hits: int, misses: int, least: float) -> bool:
    """True where the lower bound comes to ``least``; 0 of 0 is no evidence, whatever is asked."""
    return hits + misses > 0 and share(hits, misses).low >= least


def needed(hits: int, misses: int, least: float) -> int | None:
    """How many more hits, without a miss, would make it pass; None where no number of them does."""
    if passes(hits, misses, least):
        return 0
    if not passes(_MOST, misses, least):
        return None
    low, high = 0, _MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(hits + middle, misses, least) else (middle, high)
    return high
