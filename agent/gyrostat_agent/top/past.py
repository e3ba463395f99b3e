"""Past: what the curves are drawn from: values of trainer rank 0 as they were shown, and before that as journaled.

Called by ``gyrostat top``. Not promised: every step; a fast trainer's are shown as often as the screen is drawn.
"""

import math
import os
from collections import deque
from collections.abc import Mapping

from gyrostat.wire import Record, RunDirectory
from gyrostat_agent.journal import GoneError, Journal, JournalError
from gyrostat_rules.inputs import Batch
from gyrostat_rules.series import measured

MOST = 240
_TURNS = 400  # of the journal, for the first screenful
_PACE = 30  # steps
# What people look at first, by what it measures; of each the first series that is told.
SHOWN = (
    "loss", "reward", "entropy", "grad_norm", "kl", "clip_fraction", "response_length", "mismatch_kl", "step_time",
    "throughput", "lr",
)  # fmt: skip


class Past:
    """``series``: by name, the newest values of trainer rank ``rank``, oldest first."""

    def __init__(self, rank: int = 0) -> None:
        self.rank = rank
        self.series: dict[str, deque[float]] = {}
        self._last = (-1, -1)
        self._steps: deque[tuple[int, float]] = deque(maxlen=_PACE)

    def read(self, run: RunDirectory) -> None:
        """Begin with what the journal has; with nothing, where it cannot be read."""
        try:
            journal = Journal(os.path.join(run.agent, "journal.db"), readonly=True)
        except JournalError:
            return
        try:
            last = int(journal.head().partition(":")[0])
            for turn in journal.turns(after=max(0, last - _TURNS)):
                if isinstance(turn.given, Batch):
                    for item in turn.given.items:
                        if isinstance(item, Record) and (item.role, item.rank) == ("trainer", self.rank):
                            self.add(item.segment, item.step, item.time, item.values)
        except (GoneError, JournalError, ValueError):
            return
        finally:
            journal.close()

    def add(self, segment: int, step: int, at: float, values: Mapping[str, float]) -> None:
        """Take in a step, once; where the run has gone back, its pace is counted anew."""
        if (segment, step) <= self._last:
            return
        if segment != self._last[0]:
            self._steps.clear()
        self._last = (segment, step)
        self._steps.append((step, at))
        for name, value in values.items():
            self.series.setdefault(name, deque(maxlen=MOST)).append(value)

    @property
    def pace(self) -> float:
        """Seconds a step, NaN where it is not known yet."""
        if len(self._steps) < 2:
            return math.nan
        (first, began), (last, ended) = self._steps[0], self._steps[-1]
        return (ended - began) / (last - first) if last > first and ended > began else math.nan

    def shown(self) -> list[tuple[str, deque[float]]]:
        """The series to draw, in the order people look at them."""
        found = []
        for what in SHOWN:
            name = what if what in self.series else next((n for n in self.series if measured(n) == what), "")
            if name:
                found.append((name, self.series[name]))
        return found
