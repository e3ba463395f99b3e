"""Remembered: what is kept of what is over, for those who count it: deeds, trials, jumps, faults, and what it cost.

Plain values of the state; the stages that write them say what follows from them.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Deed:
    """An action that was sent, remembered for budgets: they must outlive the incident and the pod."""

    kind: str
    remedy: str
    step: int
    at: float
    rung: int = -1  # of its playbook; of what an older agent wrote nobody knows it


@dataclass(slots=True)
class Trial:
    """An incident that has ended and was acted on, with known effect: where it was, by its onset's step."""

    incident: str
    kind: str
    onset: int


@dataclass(slots=True)
class Jump:
    """The run went back: ``segment`` was left for the next one, which begins after ``step``."""

    segment: int
    step: int


@dataclass(slots=True)
class FaultSeen:
    """Error lines of one kind of one process: the newest of them, by step and time, and how many they were.

    ``segment`` is the one that the line was said in: a run that has gone back since has begun anew.
    """

    role: str
    rank: int
    kind: str
    why: str
    segment: int
    step: int
    at: float
    count: int = 1


@dataclass(slots=True)
class Broken:
    """A rule that throws: the newest step at which it did, and what."""

    step: int
    why: str


@dataclass(slots=True)
class Meter:
    """What an incident costs while it lasts, for its bill. Times are Unix seconds; a step of -1 there was none.

    ``told``: steps told since it fired, -1 before it runs. ``usual``: seconds a step took before it, 0 where unknown.
    ``late``: seconds of silence when it fired. ``at``, ``step`` and ``segment`` are the newest record's. ``acted_*``:
    when its first directive was sent; ``waited``: of the time until then, the seconds that it was held. ``undone``:
    steps that the run went back over; ``dead``: seconds in which it told none.
    """

    told: int = -1
    usual: float = 0.0
    late: float = 0.0
    at: float = 0.0
    step: int = -1
    segment: int = 0
    acted_at: float = 0.0
    acted_step: int = -1
    acted_told: int = -1
    waited: float = 0.0
    held_at: float = 0.0
    held: float = 0.0
    undone: int = 0
    dead: float = 0.0
    billed: bool = False
