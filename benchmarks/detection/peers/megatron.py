"""Megatron-LM's own rule: a loss or gradient norm that is not finite, or many times the largest seen so far.

Source: megatron/core/rerun_state_machine.py, `is_unexpectedly_large`: no verdict until so many values are seen, then
one at `threshold` times the largest of them.
"""

from collections.abc import Collection, Mapping
from functools import partial
from itertools import product

from peers.watcher import Alarm, Breached, Peer, Setting

TIMES, SEEN = (10.0, 5.0, 3.0, 2.0, 1.5), (100, 20, 5)


class Largest:
    """``times`` the largest of the first ``seen`` values."""

    def __init__(self, times: float, seen: int) -> None:
        self.times, self.seen = times, seen
        self.out, self.first = Breached(), dict[str, list[float]]()

    def row(self, step: int, values: Mapping[str, float], asked: bool) -> Collection[Alarm]:
        """What is larger than that."""
        for series in ("loss", "grad_norm"):
            if series in values and not self.out.odd(series, value := values[series]):
                self._judge(series, value)
        return self.out.now.values()

    def _judge(self, series: str, value: float) -> None:
        first = self.first.setdefault(series, [])
        if len(first) < self.seen:
            first.append(value)
        else:
            self.out.mark(f"{series} is too large", value >= self.times * max(first) > 0)


PEER = Peer(
    "Megatron's rule",
    tuple(Setting(f"{t:g} x the largest of {n}", partial(Largest, t, n)) for n, t in product(SEEN, TIMES)),
    "loss, grad_norm",
    stands=True,
)
