"""Bonus: entropy's own control in TRL's GRPO, as the two knobs that the playbooks know.

``alpha_max`` is the largest entropy bonus, and 0 where there is none; ``min_entropy_floor`` the entropy under which
it grows. A trainer that adapts its bonus itself (``use_adaptive_entropy``) is set by its own arguments. One with a
fixed ``entropy_coef`` shows that as ``alpha_max`` and has no floor. One without either gets the bonus from here once
``alpha_max`` is set: all of it at once where the entropy is below the floor by then, else a step up below it and a
step down above it.
"""

import math
from collections.abc import Mapping
from typing import Any

_FLOOR = 0.3  # nats; of a run that began with less than twice that, half of what it began with
_STEPS = 20  # from no bonus to the largest
_SLOWER = 4  # times as many back to none: let go as fast as it was taken, entropy falls again, and swings


class Bonus:
    """The entropy bonus of one trainer."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._adapts = bool(getattr(trainer, "use_adaptive_entropy", False))
        self._fixed = not self._adapts and float(getattr(trainer, "entropy_coef", 0.0)) != 0.0
        self._largest, self._floor, self._first = 0.0, _FLOOR, math.nan
        self._entropy = math.nan

    @property
    def offered(self) -> bool:
        """True where this TRL has a bonus in its loss."""
        return hasattr(self._trainer, "entropy_coef") and hasattr(self._trainer, "_entropy_bonus_enabled")

    @property
    def has_floor(self) -> bool:
        """True where the bonus follows the entropy."""
        return not self._fixed

    def largest(self) -> float:
        """``alpha_max``."""
        if self._adapts:
            return float(self._trainer.args.entropy_coef_max)
        return float(self._trainer.entropy_coef) if self._fixed else self._largest

    def set_largest(self, value: float) -> None:
        """Set ``alpha_max``; 0 turns the bonus off."""
        trainer = self._trainer
        if self._adapts:
            trainer.args.entropy_coef_max = value
            trainer.entropy_coef = min(trainer.entropy_coef, value)
        elif self._fixed:
            trainer.entropy_coef = value
        else:
            begins = not self._largest and self._entropy < self._counted()
            self._largest = value  # a collapse that has been found falls by a quarter a step: it has no time for a ramp
            trainer.entropy_coef = value if begins else min(float(trainer.entropy_coef), value)
            trainer._entropy_bonus_enabled = value > 0.0

    def floor(self) -> float:
        """``min_entropy_floor``, nats."""
        return float(self._trainer.args.entropy_target) if self._adapts else self._floor

    def set_floor(self, value: float) -> None:
        """Set ``min_entropy_floor``."""
        if self._adapts:
            self._trainer.args.entropy_target = value
        else:
            self._floor = value

    def adapt(self) -> None:
        """After a step: move the bonus, where it is ours to move."""
        self._entropy = _newest(self._trainer)
        if not math.isfinite(self._first):
            self._first = self._entropy
        if self._adapts or self._fixed or not self._largest or not math.isfinite(self._entropy):
            return
        step = self._largest / _STEPS
        moved = self._trainer.entropy_coef + (step if self._entropy < self._counted() else -step / _SLOWER)
        self._trainer.entropy_coef = min(self._largest, max(0.0, moved))

    def values(self) -> dict[str, float]:
        """What to tell of it: the bonus that the next step has, and what it hangs on."""
        if not self.offered or not self._trainer._entropy_bonus_enabled:
            return {}
        values = {"entropy_bonus": float(self._trainer.entropy_coef)}
        if self.has_floor and math.isfinite(self._entropy):
            values |= {"entropy_floor": self._counted(), "entropy_average": self._entropy}
        return values

    def _counted(self) -> float:
        floor = self.floor()
        return floor if self._adapts or not math.isfinite(self._first) else min(floor, self._first / 2)


def _newest(trainer: Any) -> float:
    """The entropy that TRL has measured in this step, NaN where it has none."""
    metrics = getattr(trainer, "_metrics", None)
    told = metrics.get("train", {}).get("entropy") if isinstance(metrics, Mapping) else None
    return float(told[-1]) if told else math.nan
