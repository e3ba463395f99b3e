"""rldoctor: its LiveMonitor, fed the metrics under the names that it knows."""

import logging
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from peers.watcher import Alarm, Peer, Setting

_EVERY, _NEVER = 25, 1 << 60
_CALLED: Mapping[str, str] = {
    "response_length": "completions/mean_length", "truncated_fraction": "completions/clipped_ratio",
    "zero_advantage_fraction": "frac_reward_zero_std", "clip_fraction": "clip_ratio/region_mean",
    "val_acc": "val/test_score",
}  # fmt: skip


class RlDoctor:
    """Its check of the history so far, once there are ``fewest`` rows."""

    def __init__(self, fewest: int) -> None:
        from rl_doctor.live import LiveMonitor

        logging.getLogger("rl-doctor").setLevel(logging.CRITICAL)
        self.fewest = fewest
        self.monitor: Any = LiveMonitor(check_every=_NEVER, min_steps=fewest, on_finding=lambda finding: None)

    def row(self, step: int, values: Mapping[str, float], asked: bool) -> Collection[Alarm]:
        """What is new or worse."""
        self.monitor.log({_CALLED.get(name, name): value for name, value in values.items()}, step=step)
        if not asked or len(self.monitor.records) < self.fewest:
            return ()
        return [Alarm(one.detector, one.severity.label == "CRIT") for one in self.monitor.check()]


PEER = Peer(
    "rldoctor",
    (
        Setting("as it comes, from row 60 on", partial(RlDoctor, 60)),
        Setting("from row 8 on", partial(RlDoctor, 8)),
    ),
    "reward, entropy, kl, grad_norm, lengths, groups, validation",
    ("rl_doctor.live",),
    every=_EVERY,
)
