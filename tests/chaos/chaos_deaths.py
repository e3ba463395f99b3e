"""Deaths: when which process dies. Every point that a process passes asks here first."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

# A trainer's moments, as an agent's are failpoints.POINTS.
TRAINER_POINTS = (
    "trainer.hello", "trainer.resumed", "apply.before", "procedure.done", "ack.before", "ack.after", "record.torn",
    "record.written", "checkpoint.files", "checkpoint.complete",
)  # fmt: skip


class Crash(BaseException):
    """The agent's process ends here, as by SIGKILL."""


class Death(BaseException):
    """The trainer's process ends here, as by SIGKILL."""


class Blow(NamedTuple):
    """Kill at the ``nth`` passing of ``point``; the process is started again ``rounds`` later, or never (-1).

    ``both``: the other process dies of the same blow (a node is lost). ``pod``: the run directory goes as well.
    """

    point: str
    nth: int
    rounds: int = 0
    both: bool = False
    pod: bool = False


class Deaths:
    """Counts what is passed and strikes where a blow is due. ``seen`` tells the world of each blow struck."""

    def __init__(self, blows: tuple[Blow, ...], seen: Callable[[Blow], None]) -> None:
        self._due = {(b.point, b.nth): b for b in blows}
        self._seen = seen
        self.passed: Counter[str] = Counter()
        self.armed = True

    def strikes(self, point: str) -> bool:
        """Pass a point; True where its process is to die on it."""
        if not self.armed:
            return False
        self.passed[point] += 1
        blow = self._due.pop((point, self.passed[point]), None)
        if blow is None:
            return False
        self._seen(blow)
        return True
