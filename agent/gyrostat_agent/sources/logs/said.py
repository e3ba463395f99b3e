"""What a line of a log says: numbers of a step, a step announced, a fault, something worth a note."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from gyrostat.wire import ExpertLoad

TRAIN, EVAL = "train", "eval"


class Told(NamedTuple):
    """Numbers, under the trainer's own names. ``step`` None: the line does not say it.

    ``rank`` is the process's that wrote it; ``at`` Unix seconds, None where the line bears no time; ``load``: counts of
    experts, where it tells them.
    """

    values: Mapping[str, float]
    step: int | None = None
    phase: str = TRAIN
    rank: int = 0
    at: float | None = None
    load: ExpertLoad | None = None


class Step(NamedTuple):
    """A step announced without numbers: of those that follow, or where it ``ends``, of those just told without one."""

    step: int
    ends: bool = False


class Fault(NamedTuple):
    """An error line that is well known. ``kind`` is one of ``faultlines.KINDS``; ``why`` is for people."""

    kind: str
    why: str
    rank: int = 0


class Note(NamedTuple):
    """What happened and is no fault: ``saved``, ``resumed``, ``skipped``, ``restarted``; ``step`` -1: unknown."""

    kind: str
    step: int = -1
    text: str = ""


Said: TypeAlias = Told | Step | Fault | Note
SAVED, RESUMED, SKIPPED, RESTARTED = "saved", "resumed", "skipped", "restarted"
