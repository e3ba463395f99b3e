"""NOT RUN IN A REAL OPENRLHF: its PPO driver, by a logger of our own (written from the wheel of openrlhf 0.11.2).

The driver calls ``log_train``, ``log_eval`` and ``close`` of the object that it has as ``tensorboard_logger``. Give it
this one where the trainer is a class of your own, before it is made a Ray actor::

    class Watched(PPOTrainer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.tensorboard_logger = GyrostatLogger(self.tensorboard_logger)

Set ``--logger.logging_steps 1``: what is not logged is not told. No knob is offered, for what would be set lives in
other processes; ``gyrostat run`` restarts.
"""

from collections.abc import Mapping
from typing import Any

import gyrostat

NAMES = {
    "policy_loss": "loss",
    "entropy_loss": "entropy",
    "actor_grad_norm": "grad_norm",
    "actor_lr": "learning_rate",
    "ppo_clip_ratio": "clip_fraction",
    "vllm_kl": "mismatch_kl",
    "rollout/truncated_rate": "truncated_fraction",
    "timing/step_total": "step_seconds",
}


def _is_number(value: Any) -> bool:
    """Numbers of Python, numpy and torch; no text, list or None."""
    return hasattr(value, "__float__")


class GyrostatLogger:
    """Tells what the driver logs, and hands it on to ``beside``, the logger that stood there, or None."""

    def __init__(self, beside: Any = None, checkpoints: str = "") -> None:
        # the driver is one process, whatever RANK says of the node that it is on
        self._telemetry = gyrostat.Telemetry(rank=0, world=1, checkpoint_root=checkpoints)
        self._beside = beside

    def log_train(self, global_step: int, logs_dict: Mapping[str, Any]) -> None:
        """Tell one global step; what is no number, such as a generated sample, is left out."""
        numbers = {name: value for name, value in logs_dict.items() if _is_number(value)}
        self._telemetry.record(global_step, **{NAMES.get(name, name): value for name, value in numbers.items()})
        if self._beside is not None:
            self._beside.log_train(global_step, logs_dict)

    def log_eval(self, global_step: int, logs_dict: Mapping[str, Any]) -> None:
        """Tell an evaluation; ``eval/`` before a name keeps it apart from what is trained on."""
        numbers = {name: value for name, value in logs_dict.items() if _is_number(value)}
        self._telemetry.record(global_step, **{f"eval/{name}": value for name, value in numbers.items()})
        if self._beside is not None:
            self._beside.log_eval(global_step, logs_dict)

    def close(self) -> None:
        """The driver has come to its end."""
        self._telemetry.close()
        if self._beside is not None:
            self._beside.close()
