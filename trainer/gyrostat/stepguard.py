"""StepGuard: skip the optimizer step when loss or gradient norm is not finite, on all ranks alike.

It reads no tensor of its own: hand it the numbers that the trainer reads anyway, and no device
synchronisation is added. It is bounded: after ``limit`` skips in ``per`` steps it steps aside, because a run
that skips for ever is a dead run that costs money, and says so in the records (``guard_exhausted``).
"""

import math
from collections import deque
from collections.abc import Callable, Iterable


class StepGuard:
    """Decides whether the optimizer step may be applied.

    ``agree`` is the trainer's collective over ranks: given 1.0 (this rank must skip) or 0.0, it returns the
    largest over all ranks. Without it each process decides alone, which is right for one process only.
    """

    def __init__(self, *, limit: int = 3, per: int = 100, agree: Callable[[float], float] | None = None) -> None:
        if limit < 0 or per < 1:
            raise ValueError(f"StepGuard(limit={limit}, per={per}): limit is at least 0 and per at least 1")
        self._limit, self._per, self._agree = limit, per, agree
        self._skips: deque[int] = deque()
        self.skipped = 0
        self.last_applied = True

    def allows(self, step: int, loss: float, grad_norm: float) -> bool:
        """True where the step may be applied. ``loss`` and ``grad_norm``: host floats, already read.

        Never raises: a collective that fails, or what is no number, counts as a skip on this rank.
        """
        wrong = 0.0 if _is_finite(loss) and _is_finite(grad_norm) else 1.0
        if self._agree is not None:
            try:
                wrong = float(self._agree(wrong))
            except Exception:  # a guard that raises would be the crash it is there to prevent
                wrong = 1.0
        while self._skips and self._skips[-1] > step:
            self._skips.pop()  # the run went back: those steps are undone
        while self._skips and self._skips[0] <= step - self._per:
            self._skips.popleft()
        self.last_applied = wrong == 0.0 or len(self._skips) >= self._limit
        if not self.last_applied:
            self._skips.append(step)
            self.skipped += 1
        return self.last_applied

    def skips(self) -> list[int]:
        """The steps skipped lately: what a checkpoint must keep, or a restart gives a spent guard new skips."""
        return list(self._skips)

    def restore(self, skips: Iterable[int]) -> None:
        """Take up what ``skips`` gave."""
        self._skips = deque(skips)

    def values(self) -> dict[str, float]:
        """What to put into the step's record: whether the step was applied, and whether the guard is spent."""
        return {
            "step_applied": float(self.last_applied),
            "guard_exhausted": float(len(self._skips) >= self._limit),
        }


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except Exception:  # no number at all: nothing that may be applied
        return False
