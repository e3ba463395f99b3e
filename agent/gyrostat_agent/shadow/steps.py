"""Steps: how far a run has come, by its trainer's rank 0, and how many of its steps were healthy.

Counted by the number of the step, so that a trainer that tells every tenth one is not ten times as quick. What a run
that went back says again counts again: it was trained again. Where an input is no longer in the journal, the entries'
own steps say how far it had come.
"""

from gyrostat.wire import Hello, Record
from gyrostat_rules.inputs import Batch, Input


class Steps:
    """``told`` steps so far, of which ``healthy``; ``step`` is the newest one's number, -1 before the first."""

    def __init__(self) -> None:
        self.told = self.healthy = 0
        self.step = -1
        self.life = ""
        self._segment = -1

    def places(self, given: Input) -> dict[int, int]:
        """How many steps are told when each step of this input is; the count itself moves with ``go``."""
        found: dict[int, int] = {}
        told = self.told
        for item in given.items if isinstance(given, Batch) else ():
            if isinstance(item, Hello) and item.role == "trainer" and not item.rank:
                self.begin(item.incarnation)
            elif isinstance(item, Record) and item.role == "trainer" and not item.rank and self._is_ours(item):
                told += self._stride(item)
                found[item.step] = told
        return found

    def reached(self, step: int, places: dict[int, int]) -> int:
        """How many steps are told at an entry of this step."""
        if step in places:
            return max(self.told, places[step])
        if not places and step > self.step >= 0:
            stride, self.step = step - self.step, step
            return self.told + stride
        return self.told

    def go(self, told: int, *, healthy: bool) -> None:
        """Move on to so many."""
        if told > self.told:
            self.healthy += told - self.told if healthy else 0
            self.told = told

    def _is_ours(self, record: Record) -> bool:
        """False for a log that tells of the same steps as the trainer's own records."""
        return not self.life or record.incarnation == self.life

    def _stride(self, record: Record) -> int:
        """Steps from the newest one to this record's; none for what is late or told twice."""
        if record.segment < self._segment or (record.segment == self._segment and record.step <= self.step):
            return 0
        goes_on = record.segment == self._segment and self.step >= 0
        stride = record.step - self.step if goes_on else 1
        self._segment, self.step = record.segment, record.step
        return stride

    def begin(self, life: str) -> None:
        """Another life of the trainer: it may begin anywhere."""
        if life != self.life:
            self.life, self._segment = life, -1
