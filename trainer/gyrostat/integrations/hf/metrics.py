"""Metrics: what TRL's trainers measured in this very step, before their log averages it and drops its NaNs.

They gather it in ``trainer._metrics["train"]``, a list for each name, and clear that when they log. A trainer
without it (Transformers' own) is read from what it logs.
"""

from collections.abc import Mapping
from typing import Any

from gyrostat.integrations.hf.names import told_as


class Metrics:
    """Reads what a step has added to a TRL trainer's lists. Several micro-batches of a step are averaged, a NaN
    among them is kept: that is what we are here for."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._marks: dict[str, tuple[Any, int]] = {}

    @property
    def offered(self) -> bool:
        """True where this trainer keeps such lists."""
        return isinstance(self._lists(), Mapping)

    def mark(self) -> None:
        """Begin a step: what stands in the lists now belongs to those before it."""
        self._marks = {name: (values, len(values)) for name, values in (self._lists() or {}).items()}

    def added(self) -> dict[str, Any]:
        """The step's metrics, by the names they are told under."""
        found: dict[str, Any] = {}
        for name, values in (self._lists() or {}).items():
            series = told_as(name)
            same, before = self._marks.get(name, (None, 0))
            new = values[before if same is values else 0 :]
            if series and new:
                found[series] = new[0] if len(new) == 1 else sum(new) / len(new)
        return found

    def _lists(self) -> Any:
        metrics = getattr(self._trainer, "_metrics", None)
        return metrics.get("train") if isinstance(metrics, Mapping) else None


def logged(logs: Mapping[str, Any]) -> dict[str, Any]:
    """What a log line says, by the names it is told under; the summary at the end of training says nothing new."""
    if "train_runtime" in logs:
        return {}
    named = {told_as(str(name)): value for name, value in logs.items()}
    return {name: v for name, v in named.items() if name and isinstance(v, (int, float)) and not isinstance(v, bool)}
