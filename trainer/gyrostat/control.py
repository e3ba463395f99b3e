"""Control: the knobs and procedures that a trainer lets the sidecar use, and the obeying of directives.

Called once at each step boundary. Without news it costs one ``pread`` of eight bytes. Everything a directive
claims is checked here, whatever the sidecar has checked already: who could have written it, which run,
incarnation and segment it is for, its expiry, the value it expects, the bounds, the largest change. A refusal
is an Ack with its reason. Nothing here raises into the training loop.
"""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gyrostat.telemetry import Telemetry
from gyrostat.wire.messages import MAX_MESSAGE, Ack, Directive, KnobChange, KnobState, MessageError, Resume
from gyrostat.wire.rights import RightsError, check_folder, open_trusted, read_trusted

Procedure = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
_REOPEN_EVERY = 64  # boundaries between looks whether the bell's file was replaced


class Knob(NamedTuple):
    """A number that may be set from outside: how to read and set it, its bounds, its largest change.

    ``max_factor`` bounds new/old (and old/new), ``max_step`` bounds |new - old|; None is no such bound.
    """

    name: str
    get: Callable[[], float]
    set: Callable[[float], None]
    low: float
    high: float
    max_factor: float | None = None
    max_step: float | None = None
    unit: str = ""
    doc: str = ""


class Collective(Protocol):
    """The trainer's own means to agree over ranks: a largest-of over ranks, begun now and read a step later."""

    def begin(self, values: Sequence[int]) -> Any:
        """Start reducing ``values`` to their largest over all ranks; must not wait."""

    def finish(self, pending: Any) -> Sequence[int]:
        """The largest values, all ranks alike."""


class Control:
    """One rank's side of the directive protocol. ``knobs`` and ``procedures`` are what Hello shows."""

    def __init__(
        self,
        telemetry: Telemetry,
        knobs: Sequence[Knob] = (),
        procedures: Mapping[str, Procedure] | None = None,
        *,
        collective: Collective | None = None,
        last_directive: int = 0,
        segment: int = 0,
    ) -> None:
        self._telemetry = telemetry
        self._knobs = {k.name: k for k in knobs}
        self._procedures = dict(procedures or {})
        self._collective = collective if telemetry.world > 1 else None
        self.last_directive = last_directive
        self.segment = segment
        self._bell_fd = -1
        self._boundaries = 0
        self._before: dict[int, dict[str, float]] = {}  # knobs as they were before each directive, for undo
        self._seen = self._read_bell()  # what was rung before this process began is not for it
        self._pending: Any = None
        self._vote: _Vote | None = None
        self.announce()

    def announce(self) -> None:
        """Say Hello again with the knobs as they are now. Never raises."""
        states = tuple(s for k in self._knobs.values() if (s := _state(k)) is not None)
        self._telemetry.introduce(states, tuple(self._procedures), self.last_directive, self.segment)
        self._telemetry.say()

    def apply(self, step: int) -> list[Ack]:
        """Obey what has been rung since the last boundary; returns the answers given. Never raises."""
        try:
            self._boundaries += 1
            if self._collective is not None:
                return self._apply_together(step, self._collective)
            return [a for n in self._rung() if (a := self._answer(n, step)) is not None]
        except Exception:  # a trainer must never die of its control
            return []

    def resume(self, last_applied: int = 0) -> Resume | None:
        """What a starting trainer should do, or None. Never raises.

        ``last_applied``: the directive number in the newest checkpoint's manifest; a resume that is not newer
        has been done already.
        """
        try:
            check_folder(self._telemetry.directory.directives)
            resume = Resume.decode(read_trusted(self._telemetry.directory.resume, MAX_MESSAGE))
        except (OSError, MessageError):
            return None
        fits = resume.run == self._telemetry.run and resume.number > last_applied
        return resume if fits and time.time() < resume.expires_at else None

    def resumed(self, resume: Resume, step: int, reason: str = "") -> None:
        """Answer a resume: applied, or failed with ``reason``. Call once the checkpoint is loaded."""
        self.last_directive = max(self.last_directive, resume.number)
        self.announce()
        result = Ack.FAILED if reason else Ack.APPLIED
        self._telemetry.say(Ack(resume.number, "", result, step, reason, self._read_knobs()), step)

    # -- one process ----------------------------------------------------------------------------------

    def _rung(self) -> range:
        bell = self._read_bell()
        news = range(self._seen + 1, min(bell, self._seen + 16) + 1)
        self._seen = max(self._seen, bell)
        return news

    def _answer(self, number: int, step: int) -> Ack | None:
        """Obey one directive and say what came of it; None where it is for another role."""
        directive, refusal = self._read(number, step)
        if directive is None and not refusal:
            return None
        ack = self._carry_out(directive, step) if directive is not None and not refusal else (
            Ack(number, directive.action if directive else "", Ack.REFUSED, step, refusal)
        )
        self._telemetry.say(ack, step)
        return ack

    def _read(self, number: int, step: int) -> tuple[Directive | None, str]:
        """The directive and why it is refused; ``(None, "")`` where it is not for this process."""
        path = self._telemetry.directory.directive(number)
        try:
            check_folder(self._telemetry.directory.directives)
            directive = Directive.decode(read_trusted(path, MAX_MESSAGE))
        except RightsError as error:
            return None, str(error)
        except OSError as error:
            return None, f"directive {number} cannot be read: {error.strerror}"
        except MessageError as error:
            return None, str(error)
        if directive.role != self._telemetry.role:
            return None, ""
        return directive, self._refusal(directive, number, step)

    def _refusal(self, d: Directive, number: int, step: int) -> str:
        """Why this directive must not be obeyed, or ''. The order is the order of telling."""
        me = self._telemetry
        if d.number != number:
            return f"the file of directive {number} holds number {d.number}"
        if d.run != me.run:
            return f"directive {number} is for run {d.run!r}, this is {me.run!r}"
        if me.rank == 0 and d.incarnation != me.incarnation:
            return f"directive {number} is for incarnation {d.incarnation}, this is {me.incarnation}"
        if d.segment != self.segment:
            return f"directive {number} is for segment {d.segment}, this is {self.segment}"
        if time.time() >= d.expires_at or 0 <= d.expires_step < step:
            return f"directive {number} has expired"
        if d.procedure and d.procedure not in self._procedures:
            return f"procedure {d.procedure!r} is not offered; offered: {', '.join(self._procedures) or 'none'}"
        for change in d.knobs:
            if reason := self._unfit(change):
                return reason
        return ""

    def _unfit(self, change: KnobChange) -> str:
        knob = self._knobs.get(change.name)
        if knob is None:
            return f"knob {change.name!r} is not offered; offered: {', '.join(self._knobs) or 'none'}"
        now = float(knob.get())
        if not math.isclose(now, change.expect, rel_tol=1e-6, abs_tol=1e-12):
            return f"{change.name} reads {now:g}, not {change.expect:g}: somebody else has turned it"
        if not (math.isfinite(change.value) and knob.low <= change.value <= knob.high):
            return f"{change.name}={change.value:g} is outside its bounds {knob.low:g} to {knob.high:g}"
        if self._before.get(change.undo_of, {}).get(change.name) == change.value:
            return ""  # going back to where a directive found it is allowed in one stride
        if knob.max_step is not None and abs(change.value - now) > knob.max_step * (1 + 1e-9):
            return f"{change.name} {now:g} to {change.value:g} is more than its largest step, {knob.max_step:g}"
        if knob.max_factor is not None and not _within(now, change.value, knob.max_factor):
            return f"{change.name} {now:g} to {change.value:g} is more than its largest factor, {knob.max_factor:g}"
        return ""

    def _carry_out(self, d: Directive, step: int) -> Ack:
        """Run the procedure, set the knobs, read them back. What fails is taken back as far as knobs go."""
        before = self._read_knobs()
        detail: Mapping[str, Any] = {}
        try:
            if d.procedure:
                detail = self._procedures[d.procedure](d.arguments) or {}
                if d.procedure == "rollback":
                    self.segment += 1
            for change in d.knobs:
                self._knobs[change.name].set(change.value)
        except Exception as error:  # the trainer's own code: its failure is an answer, not a crash
            self._put_back(d, before)
            return Ack(d.number, d.action, Ack.FAILED, step, _first_line(error), self._read_knobs())
        self._before[d.number] = before
        self.last_directive = d.number
        self.announce()
        return Ack(d.number, d.action, Ack.APPLIED, step, "", self._read_knobs(), detail)

    def _put_back(self, d: Directive, before: Mapping[str, float]) -> None:
        for change in d.knobs:
            try:
                self._knobs[change.name].set(before[change.name])
            except Exception:  # the read-back in the Ack says where it stands
                continue

    def _read_knobs(self) -> dict[str, float]:
        return {s.name: s.value for k in self._knobs.values() if (s := _state(k)) is not None}

    # -- several ranks --------------------------------------------------------------------------------

    def _apply_together(self, step: int, collective: Collective) -> list[Ack]:
        """All ranks learn a number at one boundary, vote at the next, and act on the same third one.

        Reduced are [newest number rung, number voted on, vote against]; rank 0 alone reads the bell. A
        collective is begun at every boundary, so that no rank ever waits for another that has no news.
        """
        acks: list[Ack] = []
        if self._pending is not None:
            newest, _, against = collective.finish(self._pending)
            if self._vote is not None:
                acks = self._settle(self._vote, bool(against), step)
                self._vote = None
            elif newest > self._seen:
                self._seen += 1
                self._vote = _Vote(self._seen, *self._read(self._seen, step))
        bell = self._read_bell() if self._telemetry.rank == 0 else 0
        vote = self._vote
        self._pending = collective.begin([bell, vote.number if vote else 0, int(bool(vote and vote.refusal))])
        return acks

    def _settle(self, vote: "_Vote", refused: bool, step: int) -> list[Ack]:
        if vote.directive is None and not vote.refusal:
            return []
        if refused:
            action = vote.directive.action if vote.directive else ""
            ack = Ack(vote.number, action, Ack.REFUSED, step, vote.refusal or "another rank refused it")
        else:
            assert vote.directive is not None
            ack = self._carry_out(vote.directive, step)
        self._telemetry.say(ack, step)
        return [ack]

    # -- the bell -------------------------------------------------------------------------------------

    def _read_bell(self) -> int:
        """Number of the newest directive; what cannot be read or trusted rings for nothing."""
        if self._bell_fd < 0 and not self._open_bell():
            return 0
        try:
            if self._boundaries % _REOPEN_EVERY == 0 and not os.fstat(self._bell_fd).st_nlink:
                os.close(self._bell_fd)
                self._bell_fd = -1
                return 0
            return int.from_bytes(os.pread(self._bell_fd, 8, 0), "little")
        except OSError:
            return 0

    def _open_bell(self) -> bool:
        if not self._telemetry.directory.path:
            return False
        try:
            self._bell_fd = open_trusted(self._telemetry.directory.bell)
        except OSError:
            return False
        return True


class _Vote(NamedTuple):
    number: int
    directive: Directive | None
    refusal: str


def _state(knob: Knob) -> KnobState | None:
    """The knob as it reads now; None where the trainer's getter fails."""
    try:
        return KnobState(
            knob.name, float(knob.get()), knob.low, knob.high, knob.max_factor, knob.max_step, knob.unit, knob.doc
        )
    except Exception:  # the trainer's own code
        return None


def _within(old: float, new: float, factor: float) -> bool:
    """True where the change keeps its sign and its ratio within ``factor``; from 0 any bounded value is."""
    if old == new or old == 0.0:
        return True
    return old * new > 0 and max(old / new, new / old) <= factor * (1 + 1e-9)


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300]}" if text else type(error).__name__
