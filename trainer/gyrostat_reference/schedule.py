"""Schedule: the learning rate of a step. ``lr_scale`` multiplies whatever it says, and never overwrites it."""

from typing import NamedTuple

_LOWEST = 0.1  # of the rate, at the foot of a warm-up and at the end of the decay


class Schedule(NamedTuple):
    """Linear warm-up over ``warm_up`` steps, level, then linear decay from ``decay_from`` to ``horizon``.

    ``rate`` is the level; the decay ends at a tenth of it and stays there.
    """

    rate: float
    warm_up: int
    decay_from: int
    horizon: int

    def at(self, step: int, warm_from: int) -> float:
        """The rate of ``step``, where a warm-up began behind step ``warm_from``: at 0, and with fresh moments.

        Bias correction makes the first updates after fresh moments as large as the rate allows, whatever the
        gradient: at the full rate, reward was seen to fall for thirty steps.
        """
        risen = min(1.0, _LOWEST + (1 - _LOWEST) * (step - warm_from) / self.warm_up)
        over = (step - self.decay_from) / max(1, self.horizon - self.decay_from)
        return self.rate * risen * (1 - (1 - _LOWEST) * min(1.0, max(0.0, over)))
