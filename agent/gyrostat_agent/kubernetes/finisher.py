"""The finisher: one process outside all jobs that finishes what a pod has begun which its own action has ended.

An agent in a pod that suspends its job ends itself; somebody must see the pods go and begin the job again. It begins
nothing of its own: only what stands unfinished on a job is gone on with, from where it stands. Two of them do no
harm, for each step is conditional. That it lives shows in a Lease; agents offer no restart of a job that nobody would
begin again.
"""

import time
from collections.abc import Callable

from gyrostat_agent.cluster.lease import Holding, LeaseError
from gyrostat_agent.kubernetes import progress as steps
from gyrostat_agent.kubernetes.course import Over
from gyrostat_agent.kubernetes.jobs import ALL
from gyrostat_agent.kubernetes.jobs.kind import JobKind
from gyrostat_agent.kubernetes.lease import KubernetesLease
from gyrostat_agent.kubernetes.patience import pause_after
from gyrostat_agent.kubernetes.refusals import AwayError, ForbiddenError, KubernetesError, MissingError
from gyrostat_agent.kubernetes.request import Ref, Server, every
from gyrostat_agent.kubernetes.turn import Turns

LEASE = "gyrostat-finisher"
LOOK_SECONDS = 5.0
ALIVE_SECONDS = 45.0  # in which the lease must have been seen to change
_WATCH_SECONDS = 10.0


class Finisher:
    """Looks at all jobs of a namespace. ``say`` gets one line for what an operator should know."""

    def __init__(
        self, server: Server, namespace: str, name: str, say: Callable[[str], None],
        clock: Callable[[], float] = time.time, ticking: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._server, self._namespace, self._name, self._say = server, namespace, name, say
        self._clock, self._ticking = clock, ticking
        self._lease = KubernetesLease(server, LEASE, namespace, clock)
        self._held: Holding | None = None
        self._turns: dict[Ref, Turns] = {}
        self._said: dict[str, str] = {}

    def run(self, wait: Callable[[float], bool]) -> None:
        """Look again and again until ``wait`` says that it is enough."""
        failures, pause = 0, 0.0
        while not wait(pause):
            try:
                self.look()
                failures, pause = 0, LOOK_SECONDS
            except (AwayError, LeaseError) as error:
                pause = pause_after(failures, getattr(error, "after", 0.0))
                failures += 1
                self._tell("api", f"nothing can be finished until it answers: {error}")

    def look(self) -> list[str]:
        """Show life, and take a turn at each job with something unfinished; which those are. Raises AwayError."""
        self._show_life()
        found = [ref for kind in ALL for ref in self._of_kind(kind)]
        self._turns = {ref: turns for ref, turns in self._turns.items() if ref in found}  # the others are over, or gone
        return [ref.name for ref in found]

    def _show_life(self) -> None:
        held = self._lease.renew(self._held) if self._held is not None else None
        self._held = held or self._lease.try_take(self._lease.who(), self._name, "")

    def _of_kind(self, kind: JobKind) -> list[Ref]:
        found: list[Ref] = []
        try:
            jobs = every(self._server, kind.ref("", self._namespace))
        except MissingError:  # this cluster knows no such kind
            return found
        except ForbiddenError as error:
            self._tell(kind.plural + kind.api, str(error))
            return found
        for job in jobs:
            ref = kind.ref(job["metadata"]["name"], self._namespace)
            try:
                stands = steps.read(job)
            except steps.ProgressError as error:
                self._tell(ref.path, f"{kind.kind} {ref.name}: {error}")
                continue
            if stands is not None and not stands.over:
                found.append(ref)
                self._go_on(kind, ref, stands.number)
        return found

    def _go_on(self, kind: JobKind, ref: Ref, number: int) -> None:
        """One turn; what keeps one job does not keep the others."""
        if ref not in self._turns:
            self._turns[ref] = Turns(self._server, kind, ref, self._clock, self._ticking)
        turns = self._turns[ref]
        try:
            move = turns.take()
            said = move.said if isinstance(move, Over) else getattr(move, "why", "")
        except AwayError:
            raise
        except KubernetesError as error:
            said = str(error)
        self._tell(ref.path, f"{kind.kind} {ref.name}, directive {number}: {said}")

    def _tell(self, about: str, said: str) -> None:
        """Once a change."""
        if self._said.get(about) != said:
            self._said[about] = said
            self._say(said)


class Watch:
    """Whether a finisher lives, as one agent sees it: by its lease having changed before this agent's eyes."""

    def __init__(self, server: Server, namespace: str, ticking: Callable[[], float]) -> None:
        self._lease = KubernetesLease(server, LEASE, namespace, time.time)
        self._ticking = ticking
        self._seen: Holding | None = None
        self._changed = self._looked = -float("inf")

    def lives(self) -> bool:
        """Look where it is time to; raises LeaseError where that cannot be told."""
        now = self._ticking()
        if now - self._looked >= _WATCH_SECONDS:
            self._looked = now
            seen = self._lease.who()
            if self._seen is not None and seen != self._seen and seen.holder:
                self._changed = now
            self._seen = seen
        return now - self._changed < ALIVE_SECONDS
