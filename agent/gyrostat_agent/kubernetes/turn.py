"""One turn of an action: read the job, see what comes next, send it. The one place that carries a plan out.

Called again and again by ``process`` beside the trainer and by ``finisher`` elsewhere, also by both at once: the
server takes the change of one, and the other reads again. Nothing is remembered between two turns that must not be
lost.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from gyrostat_agent import failpoints
from gyrostat_agent.kubernetes import course
from gyrostat_agent.kubernetes import progress as steps
from gyrostat_agent.kubernetes.course import Move, Over, Send, Wait
from gyrostat_agent.kubernetes.jobs.kind import JobKind
from gyrostat_agent.kubernetes.progress import Order, Progress
from gyrostat_agent.kubernetes.refusals import ConflictError, ForbiddenError, MissingError, RejectedError
from gyrostat_agent.kubernetes.request import Object, Ref, Request, Server, every, get

SETTLE_SECONDS = 15.0  # in which the effect of a command that another life may have given must show on the job
_GONE = ("Succeeded", "Failed")
_FIELDS = (400, 422)  # the server takes a field at no time, or not now


class Turns:
    """Takes turns at one job. ``clock`` gives Unix seconds, ``ticking`` seconds of this process alone.

    ``sees_pods`` False: they may not be listed, and only the job's own status says whether it stands still.
    """

    def __init__(
        self, server: Server, kind: JobKind, ref: Ref, clock: Callable[[], float], ticking: Callable[[], float]
    ):
        self._server, self._kind, self._ref = server, kind, ref
        self._clock, self._ticking = clock, ticking
        self._first_look: dict[int, float] = {}  # by directive, of a command that somebody may have given
        self._own: set[int] = set()  # directives that this life has begun: no other can have given their command
        self.sees_pods = True

    def take(self, order: Order | None = None, words: Mapping[str, str] | None = None) -> Move:
        """One turn, of this order or of what has been begun; raises KubernetesError where the server cannot say."""
        job: Object = self._server.ask(get(self._ref))
        move = self._next(job, order, words or {})
        if not isinstance(move, Send):
            return move
        if move.once and not self._may_tell(job):
            return Wait("a command may be on its way: its effect is waited for")
        return self._send(job, move, order)

    def _next(self, job: Object, order: Order | None, words: Mapping[str, str]) -> Move:
        now = self._clock()
        try:
            stands = steps.read(job)
        except steps.ProgressError as error:
            return Over(False, str(error))
        if order is not None:
            move = course.next_move(self._kind, job, order, now, words)
        elif stands is None:
            return Over(True, "nothing has been begun")
        else:
            move = course.proceed(self._kind, job, stands, now)
        begins = isinstance(move, Send) and course.keeps_pods_apart(stands) and self._kind.is_still(job)
        left = self._pods_left() if begins else 0
        return Wait(f"{left} of its pods have not ended") if left else move

    def _send(self, job: Object, move: Send, order: Order | None) -> Move:
        begins = steps.read(job)
        if move.once and begins is not None:  # it may be made and its answer lost: from now on its effect is waited for
            self._first_look[begins.number] = self._ticking()
        failpoints.reach("kubernetes.asking")
        try:
            self._ask(move)
        except ConflictError as error:
            if not (move.once and error.exists):
                return Wait("somebody was faster: it is read again")
        failpoints.reach("kubernetes.answered")
        if move.once:
            assert begins is not None
            self._note_asked(job, begins)
        elif order is not None and (begins is None or begins.number < order.number):
            self._own.add(order.number)
        return Wait(move.why)

    def _note_asked(self, job: Object, stands: Progress) -> None:
        """That the command was given; where the job has changed meanwhile, the next turn sees what of."""
        with contextlib.suppress(ConflictError):
            self._server.ask(course.asked(self._kind, job, stands).request)
        failpoints.reach("kubernetes.noted")

    def _ask(self, move: Send) -> Any:
        try:
            return self._server.ask(move.request)
        except RejectedError as error:
            if move.without is None or error.status not in _FIELDS:
                raise
            return self._server.ask(move.without)

    def _may_tell(self, job: Object) -> bool:
        """Whether a command may be given: at once by who wrote that it will be, by others once none shows effect."""
        stands = steps.read(job)
        assert stands is not None
        if stands.number in self._own:
            self._own.discard(stands.number)
            return True
        now = self._ticking()
        return now - self._first_look.setdefault(stands.number, now) >= SETTLE_SECONDS

    def _pods_left(self) -> int:
        """How many pods of the job have not ended; those that are being ended have not."""
        if not self.sees_pods:
            return 0
        chosen = f"{self._kind.pods}={self._ref.name}"
        try:
            found = every(self._server, Ref("v1", "pods", "", self._ref.namespace), chosen)
        except (ForbiddenError, MissingError):
            self.sees_pods = False
            return 0
        return sum((p.get("status") or {}).get("phase") not in _GONE for p in found)


def dry_run(kind: JobKind, job: Object, order: Order, now: float) -> list[Request]:
    """What would be sent first; the rest depends on what the cluster makes of it."""
    move = course.next_move(kind, job, order, now)
    return [move.request] if isinstance(move, Send) else []
