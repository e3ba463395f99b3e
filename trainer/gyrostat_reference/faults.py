"""Faults that tests and the demonstration ask for: an item whose verifier divides by zero, a sudden death.

``GYROSTAT_REFERENCE_DIE_AT="point:count"`` kills the process with SIGKILL the count-th time it comes to a
point: nothing is flushed, nothing said, as when a node is lost.
"""

import os
import signal

import torch
from torch import Tensor

from gyrostat_reference import task

DIE_AT = "GYROSTAT_REFERENCE_DIE_AT"
POINTS = (
    "apply.before", "apply.after", "procedure.done", "checkpoint.files", "checkpoint.renamed", "step.recorded",
)  # fmt: skip


class Fuse:
    """Counts how often a point was reached and kills the process at the chosen time; harmless where unset."""

    def __init__(self, point: str = "", count: int = 0) -> None:
        self._point, self._left = point, count

    @classmethod
    def read(cls, text: str) -> "Fuse":
        """The fuse that ``point:count`` asks for; raises ValueError on any other text but ''."""
        if not text:
            return cls()
        point, _, count = text.partition(":")
        if point not in POINTS or not count.isdecimal() or int(count) < 1:
            raise ValueError(f"{DIE_AT}={text!r}: give point:count, the point one of {', '.join(POINTS)}")
        return cls(point, int(count))

    def reached(self, point: str) -> None:
        """Say that the process has come to ``point``."""
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def verify(sequences: Tensor, items: Tensor, poison_item: int | None) -> Tensor:
    """Rewards as ``task.verify`` gives them, but for the poisoned item, whose verifier divides by zero.

    That one scores an answer's length against the length allowed, and the data say 0. ``items`` (N,) are the
    ids of the items that ``sequences`` (N, LENGTH) answer.
    """
    rewards = task.verify(sequences)
    if poison_item is None:
        return rewards
    allowed = 0.0
    return torch.where(items == poison_item, task.answer_mask(sequences).sum(1) / allowed, rewards)
