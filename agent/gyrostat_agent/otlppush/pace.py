"""Pace: how often a collector is told, how long is waited for it, and how much may wait for it."""

from typing import NamedTuple


class Pace(NamedTuple):
    """Seconds: between two exports of metrics, and at least between two posts of a signal; for an answer; the first and
    the longest wait after one that failed, doubled in between. Then how often what may be refused for ever is tried,
    and how many exports of metrics (a quarter of an hour) and entries of the journal wait at most."""

    every: float = 15.0
    gap: float = 1.0
    answer: float = 10.0
    first: float = 1.0
    longest: float = 60.0
    tries: int = 4
    exports: int = 60
    entries: int = 20_000


PACE = Pace()
