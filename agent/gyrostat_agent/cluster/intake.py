"""Intake: takes what other nodes' agents forward, while this one decides. Threads of its own; the loop only drains.

A parcel is answered once the loop has it in the journal, and its number with it: whoever sends it again, because the
answer was lost, is told that it is there. An agent that does not decide takes nothing. Bounded in bytes, in connections
and in what lies here; whoever finds it full is told so, and comes again.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.cluster.parcel import Parcel, ParcelError, unpacked
from gyrostat_agent.cluster.sender import PATH
from gyrostat_agent.exchange import Answer, line
from gyrostat_agent.sources.httpin import HttpIn, Limits

OPTION = "--cluster-address"
LIMITS = Limits(body=16 << 20, per_second=500.0, burst=2000, connections=512, seconds=10.0)
_MOST_PARCELS, _MOST_BYTES = 512, 64 << 20
_PATIENCE = 3.0  # seconds that a parcel waits to be committed
_GATHER = 0.2  # seconds: a hundred nodes a second are read in five passes, not in a hundred


class Arrived(NamedTuple):
    """A parcel in this agent's hands, and what its sender waits for."""

    parcel: Parcel
    committed: threading.Event
    size: int


class Intake:
    """Listens at ``listen``. ``term`` gives the term in which this agent decides, 0 where it does not."""

    def __init__(
        self, listen: str, token_file: str, run: str, term: Callable[[], int], wake: Callable[[], None],
        clock: Callable[[], float] = time.time, patience: float = _PATIENCE, gather: float = _GATHER,
    ) -> None:  # fmt: skip
        self._run, self._term, self._wake, self._clock = run, term, wake, clock
        self._patience, self._gather = patience, gather
        self._lock = threading.Lock()
        self._here: deque[Arrived] = deque()
        self._drained, self._hurry = -math.inf, False
        self.refused = 0
        self.full = 0
        self._server = HttpIn(listen, {PATH: self._take}, token_file=token_file, limits=LIMITS, option=OPTION)
        self.address = self._server.address

    def drain(self, taken: Mapping[str, int]) -> list[Arrived]:
        """The parcels since the last call, each number once; none too soon after it, so that more come together.

        ``taken``: the last number of each life, by ``name_of``.
        """
        with self._lock:
            if not self._hurry and self.seconds() > 0.0:
                return []
            arrived, self._here, self._hurry = list(self._here), deque(), False
        self._drained = time.monotonic()
        fresh: dict[tuple[str, int], Arrived] = {}
        for one in arrived:
            if one.parcel.number <= taken.get(name_of(one.parcel), 0):
                one.committed.set()
            elif one.parcel.term == self._term():
                fresh.setdefault((name_of(one.parcel), one.parcel.number), one)
        return list(fresh.values())

    def seconds(self) -> float:
        """How long the loop may sleep for what lies here, infinite where nothing does."""
        return max(0.0, self._gather - (time.monotonic() - self._drained)) if self._here else math.inf

    def close(self) -> None:
        """Listen no more."""
        self._server.close()

    def _take(self, body: bytes, kind: str) -> Answer:
        term = self._term()
        if not term:
            return self._refuse(409, "this agent does not decide for the run")
        try:
            parcel = unpacked(body, self._clock())
        except ParcelError as error:
            return self._refuse(400, f"this is no parcel: {clean(str(error))}")
        if parcel.run != self._run:
            return self._refuse(403, f"this is the agent of run {self._run}, not of {clean(parcel.run)}")
        if parcel.term != term:
            return self._refuse(409, f"this is for term {parcel.term}; this agent decides in term {term}")
        arrived = Arrived(parcel, threading.Event(), len(body))
        with self._lock:
            if len(self._here) >= _MOST_PARCELS or sum(one.size for one in self._here) > _MOST_BYTES:
                self.full += 1
                return Answer(503, line("error", "too much waits here; come again"))
            first = not self._here
            self._here.append(arrived)
            self._hurry = self._hurry or parcel.introduces
        if first or parcel.introduces:
            self._wake()
        if not arrived.committed.wait(self._patience):
            return Answer(503, line("error", "it is not written down yet; come again with the same number"))
        return Answer(200, line("said", "taken"))

    def _refuse(self, status: int, why: str) -> Answer:
        with self._lock:
            self.refused += 1
        return Answer(status, line("error", why))


def name_of(parcel: Parcel) -> str:
    """What a life's newest number is kept by in the journal, beside the offsets of files."""
    return f"node {parcel.node} {parcel.life}"
