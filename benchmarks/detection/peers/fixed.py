"""Fixed thresholds, as a Prometheus user writes them, on the four series that everybody charts."""

from collections import deque
from collections.abc import Collection, Mapping
from functools import partial
from itertools import product

from peers.watcher import Alarm, Breached, Peer, Setting

LOW, HIGH, KL, TIMES, MEAN_OF = 0.3, 10.0, 0.3, 2.0, 20  # nats; norm; nats; of the loss's mean over so many rows
SCALES, FOR = (1.0, 0.5, 2.0, 4.0, 8.0), (1, 3)


class FixedThresholds:
    """Entropy under a floor, gradient norm and KL over a limit, a loss over a multiple of its mean, a NaN.

    ``scale``: how much farther out all limits are; ``rows``: how many in a row must be over one (``for:``).
    """

    def __init__(self, scale: float, rows: int) -> None:
        self.scale, self.rows = scale, rows
        self.out, self.losses, self.counts = Breached(), deque[float](maxlen=MEAN_OF), dict[str, int]()

    def row(self, step: int, values: Mapping[str, float], asked: bool) -> Collection[Alarm]:
        """What is over a limit."""
        for series in ("loss", "grad_norm", "entropy", "kl"):
            if series in values and not self.out.odd(series, value := values[series], series in ("loss", "grad_norm")):
                self._judge(series, value)
        return self.out.now.values()

    def _judge(self, series: str, value: float) -> None:
        over = self._over(series, value)
        self.counts[series] = self.counts.get(series, 0) + 1 if over else 0
        self.out.mark(f"{series} is out of bounds", self.counts[series] >= self.rows)

    def _over(self, series: str, value: float) -> bool:
        if series == "entropy":
            return value < LOW / self.scale
        if series != "loss":
            return value > self.scale * (HIGH if series == "grad_norm" else KL)
        mean = sum(self.losses) / len(self.losses) if self.losses else value
        self.losses.append(value)
        return value > TIMES * self.scale * mean


PEER = Peer(
    "fixed thresholds",
    tuple(Setting(f"limits x {s:g}, for {n}", partial(FixedThresholds, s, n)) for n, s in product(FOR, SCALES)),
    "loss, grad_norm, entropy, kl",
    stands=True,
)
