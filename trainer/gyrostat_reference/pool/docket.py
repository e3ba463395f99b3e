"""Docket: the sessions of one roll-out, each as of its last finished round, and how often it was handed over."""

from collections import deque
from collections.abc import Sequence

from gyrostat_reference.pool.errors import SessionLost
from gyrostat_reference.pool.session import Round, Session


class Docket:
    """``retries`` counts hand-backs, ``moved`` sessions that another worker went on with, ``seconds`` those of rounds.

    A session is known by its number, its place in ``sessions``.
    """

    def __init__(self, sessions: Sequence[Session], handovers: int) -> None:
        self.sessions, self._handovers = list(sessions), handovers
        self._waiting = deque(range(len(self.sessions)))
        self._failed = [0] * len(self.sessions)
        self._last_worker: dict[int, int] = {}
        self._moved: set[int] = set()
        self.seconds: list[float] = []

    @property
    def done(self) -> bool:
        """True when every session has its rewards."""
        return all(session.rewards is not None for session in self.sessions)

    @property
    def retries(self) -> int:
        """How often a session came back unfinished."""
        return sum(self._failed)

    @property
    def moved(self) -> int:
        """How many sessions were gone on with by another worker."""
        return len(self._moved)

    def take(self, pid: int) -> int | None:
        """The number of a session for the worker ``pid``; None where none waits."""
        if not self._waiting:
            return None
        number = self._waiting.popleft()
        if self._last_worker.setdefault(number, pid) != pid:
            self._moved.add(number)
        self._last_worker[number] = pid
        return number

    def add(self, number: int, done: Round, seconds: float) -> None:
        """Write down a finished round: from now on the session is handed over with it."""
        self.sessions[number] = self.sessions[number].after(done)
        self.seconds.append(seconds)

    def give_back(self, number: int, why: str) -> None:
        """Let another worker go on, before those that wait; raises SessionLost where the budget is spent."""
        self._failed[number] += 1
        if self._failed[number] > self._handovers:
            raise SessionLost(number, self.sessions[number].item, why, self._failed[number])
        self._waiting.appendleft(number)
