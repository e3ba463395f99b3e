"""stabilityguard: its spike detector on the gradient norm, and its rule for KL (ten times the target)."""

import math
from collections.abc import Collection, Mapping
from functools import partial

from peers.watcher import Alarm, Breached, Peer, Setting

_TARGET, _TIMES = 0.1, 10.0  # of RLHFStabilityGuard
_THRESHOLDS = (5.0, 3.0, 20.0)
_LAYER = "policy"


class StabilityGuard:
    """The norm of all gradients stands for those of its layers, for logs tell no others."""

    def __init__(self, threshold: float) -> None:
        from stabilityguard.core.spike_detector import SpikeDetector

        self.spikes, self.out = SpikeDetector(threshold=threshold), Breached()

    def row(self, step: int, values: Mapping[str, float], asked: bool) -> Collection[Alarm]:
        """A spike, a gradient that is not finite, a KL far over its target."""
        if "grad_norm" in values:
            norm = values["grad_norm"]
            found, _, _ = self.spikes.check({_LAYER: norm}, set() if math.isfinite(norm) else {_LAYER})
            self.out.mark("gradient spike", bool(found))
        if "kl" in values:
            self.out.mark("KL explosion", values["kl"] > _TIMES * _TARGET)
        return self.out.now.values()


PEER = Peer(
    "stabilityguard",
    (
        Setting("as it comes", partial(StabilityGuard, 10.0)),
        *(Setting(f"spike threshold {limit:g}", partial(StabilityGuard, limit)) for limit in _THRESHOLDS),
    ),
    "grad_norm, kl",
    ("stabilityguard.core.spike_detector",),
    stands=True,
)
