"""rlwatch: its detectors and its alert rationing, without the database that it writes every step to."""

import contextlib
import io
import logging
from collections.abc import Collection, Mapping
from functools import partial
from itertools import product
from typing import Any

from peers.watcher import Alarm, Peer, Setting

_CALLED: Mapping[str, str] = {
    "loss": "loss", "grad_norm": "grad_norm", "entropy": "entropy", "kl": "kl_divergence", "reward": "reward_mean",
    "reward_std": "reward_std",
}  # fmt: skip
_SIGMAS, _FLOORS, _ROWS = (3.0, 6.0, 10.0), (0.3, 0.1), 3


class RlWatch:
    """``log_step`` of its monitor. ``given``: what its configuration says otherwise than it comes."""

    def __init__(self, given: Mapping[str, Mapping[str, float]]) -> None:
        from rlwatch.alerts import AlertManager
        from rlwatch.config import RLWatchConfig
        from rlwatch.detectors import DetectorSuite

        logging.getLogger("rlwatch").setLevel(logging.CRITICAL)
        config: Any = RLWatchConfig()
        for part, fields in given.items():
            for name, value in fields.items():
                setattr(getattr(config, part), name, value)
        self.detectors, self.alerts = DetectorSuite(config), AlertManager(config.alerts, run_id="run")

    def row(self, step: int, values: Mapping[str, float], asked: bool) -> Collection[Alarm]:
        """What it sends: its cooldown and its budget of alerts count."""
        known = {to: values[name] for name, to in _CALLED.items() if name in values}
        if not known:
            return ()
        with contextlib.redirect_stderr(io.StringIO()):  # it draws a panel for each
            alerts = [one for one in self.detectors.check_step(step, **known) if self.alerts.send(one)]
        return [Alarm(one.detector, one.severity == "critical") for one in alerts]


def _given(sigmas: float, floor: float) -> Mapping[str, Mapping[str, float]]:
    return {
        "entropy_collapse": {"threshold": floor, "consecutive_steps": _ROWS},
        "kl_explosion": {"sigma_multiplier": sigmas},
        "gradient_norm_spike": {"sigma_multiplier": sigmas},
        "reward_hacking": {"variance_multiplier": sigmas},
        "reward_mean_drift": {"consecutive_steps": 10 * _ROWS},
        "alerts": {"cooldown_steps": 10},
    }


PEER = Peer(
    "rlwatch",
    (
        Setting("as it comes", partial(RlWatch, {})),
        *(
            Setting(f"{k:g} sigma, entropy under {floor:g} for {_ROWS}", partial(RlWatch, _given(k, floor)))
            for k, floor in product(_SIGMAS, _FLOORS)
        ),
    ),
    "loss, grad_norm, entropy, kl, reward, reward_std",
    ("rlwatch.detectors", "rlwatch.alerts"),
)
