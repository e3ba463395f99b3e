"""Metrics: what a LightningModule has logged through ``self.log``, as long as it is new."""

from typing import Any

_UNTOLD = {"step", "expert_load", "epoch"}  # words of Telemetry.record, and no measure of a step


class Metrics:
    """Remembers what has been told: Lightning shows a validation's values at every step until the next one."""

    def __init__(self) -> None:
        self._seen: dict[str, Any] = {}

    def new(self, trainer: Any) -> dict[str, Any]:
        """What ``trainer.callback_metrics`` holds that it did not hold before, by the names it was logged under.

        A metric logged for step and epoch both is there twice: ``entropy_step`` is told as ``entropy``.
        """
        now = dict(trainer.callback_metrics)
        fresh = {name: value for name, value in now.items() if self._seen.get(name) is not value}
        self._seen = now
        return {n: v for n, v in fresh.items() if n not in _UNTOLD and not (n.endswith("_step") and n[:-5] in now)}
