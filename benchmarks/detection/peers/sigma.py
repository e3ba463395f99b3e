"""k-sigma on every series: how many standard deviations a value lies from the mean of the values before it."""

import math
from collections import deque
from collections.abc import Collection, Mapping
from functools import partial
from itertools import product

from peers.watcher import Alarm, Breached, Peer, Setting

WINDOWS, SIGMAS = (50, 20, 200), (4.0, 6.0, 8.0, 12.0, 20.0, 40.0)
_FEWEST = 10


class Moments:
    """Mean and spread of the last values, kept up to date by sums."""

    def __init__(self, window: int) -> None:
        self.values, self.total, self.squares = deque[float](), 0.0, 0.0
        self.window = window

    def away(self, value: float) -> float:
        """How many standard deviations ``value`` lies from the mean; 0 while too little is known."""
        count = len(self.values)
        if count < min(_FEWEST, self.window):
            return 0.0
        mean = self.total / count
        variance = (self.squares - self.total * mean) / (count - 1)
        return abs(value - mean) / max(math.sqrt(max(0.0, variance)), 1e-9 * abs(mean), 1e-12)

    def add(self, value: float) -> None:
        """Take a value in; the oldest goes."""
        self.values.append(value)
        self.total, self.squares = self.total + value, self.squares + value * value
        if len(self.values) > self.window:
            old = self.values.popleft()
            self.total, self.squares = self.total - old, self.squares - old * old


class Sigma:
    """Every series by itself. ``odd``: a value that is not finite is an alarm, too."""

    def __init__(self, sigmas: float, window: int, odd: bool) -> None:
        self.sigmas, self.window, self.odd = sigmas, window, odd
        self.out, self.known = Breached(), dict[str, Moments]()

    def row(self, step: int, values: Mapping[str, float], asked: bool) -> Collection[Alarm]:
        """What is farther out than so many standard deviations."""
        for series, value in values.items():
            if self.out.odd(series, value, self.odd):
                continue
            known = self.known.get(series) or self.known.setdefault(series, Moments(self.window))
            self.out.mark(f"{series} is far out", known.away(value) > self.sigmas)
            known.add(value)
        return self.out.now.values()


PEER = Peer(
    "3-sigma",
    (
        Setting("3 sigma of 50", partial(Sigma, 3.0, 50, False)),
        *(Setting(f"{k:g} sigma of {n}, NaN", partial(Sigma, k, n, True)) for n, k in product(WINDOWS, SIGMAS)),
    ),
    "every series",
    stands=True,
)
