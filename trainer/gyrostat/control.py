"""Control: the knobs and procedures that a trainer lets the sidecar use, and the obeying of directives.

Called once at each step boundary. Without news it costs one ``pread`` of eight bytes. Everything a directive
claims is checked here, whatever the sidecar has checked already: who could have written it, which run,
incarnation and segment it is for, its expiry, the value it expects, the bounds, the largest change. A refusal
is an Ack with its reason. Nothing here raises into the training loop.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gyrostat.bell import Bell
from gyrostat.knob import Knob, check, state, unfit
from gyrostat.telemetry import Telemetry
from gyrostat.wire.fields import dump
from gyrostat.wire.layout import shared_resume
from gyrostat.wire.messages import MAX_MESSAGE, Ack, Directive, KnobChange, MessageError, Resume
from gyrostat.wire.rights import RightsError, check_folder, read_trusted

__all__ = ["Collective", "Control", "Knob"]

Procedure = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
_MOST_AT_ONCE = 16  # of directives rung between two boundaries the newest are read
_NAP = 0.002  # seconds between two looks of ``apply_within``
_LONGEST = 86400.0  # seconds that ``apply_within`` may be asked to wait
_UNDOABLE = 64  # directives whose knobs are remembered for an undo in one stride
_MAX_DETAIL = MAX_MESSAGE // 4


class Collective(Protocol):
    """The trainer's own means to agree over ranks: a largest-of over ranks, begun now and read a step later."""

    def begin(self, values: Sequence[int]) -> Any:
        """Start reducing ``values`` to their largest over all ranks; must not wait."""

    def finish(self, pending: Any) -> Sequence[int]:
        """The largest values, all ranks alike."""


class Control:
    """One rank's side of the directive protocol. ``knobs`` and ``procedures`` are what Hello shows.

    Raises ValueError on a knob whose bounds make no sense, and nothing ever after. ``collective`` is needed
    where the role has several ranks: without it they could not act on the same step, and all is refused. A
    procedure that is to end the process sets a flag for the loop; a SystemExit would leave it unanswered.
    """

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
        for knob in knobs:
            check(knob)
        self._telemetry = telemetry
        self._knobs = {k.name: k for k in knobs}
        self._procedures = dict(procedures or {})
        self._collective = collective if telemetry.world > 1 else None
        self.last_directive = last_directive
        self.segment = segment
        self._pid = os.getpid()
        self._before: dict[int, dict[str, float]] = {}  # knobs as they were before each directive, for undo
        self._bell = Bell(telemetry.directory.bell if telemetry.directory.path else "")
        self._seen = self._bell.read()  # what was rung before this process began is not for it
        self._pending: Any = None
        self._vote: _Vote | None = None
        self.announce()

    def announce(self) -> None:
        """Say Hello again with the knobs as they are now. Never raises."""
        states = tuple(s for k in self._knobs.values() if (s := state(k)) is not None)
        self._telemetry.introduce(states, tuple(self._procedures), self.last_directive, self.segment)
        self._telemetry.say()

    def apply(self, step: int) -> list[Ack]:
        """Obey what has been rung since the last boundary; returns the answers given. Never raises."""
        try:
            if self._collective is not None:
                return self._apply_together(step, self._collective)
            rung = self._bell.read()
            if rung <= self._seen or os.getpid() != self._pid:
                return []
            first = max(self._seen, rung - _MOST_AT_ONCE) + 1
            self._seen = rung
            return [a for n in range(first, rung + 1) if (a := self._answer(self._read(n, step), step)) is not None]
        except Exception:  # a trainer must never die of its control
            return []

    def apply_within(self, step: int, seconds: float) -> list[Ack]:
        """Like ``apply``, and where nothing has been rung yet, look again for at most ``seconds``. Never raises.

        For the one boundary that a trainer wants to wait at: the next step would build on numbers that it has
        seen are not finite. The sidecar answers within milliseconds; the trainer's next step may not survive.
        All ranks look equally often, so that a collective never waits for a rank that has stopped looking.
        """
        if not self._telemetry.directory.path:
            return []
        for _ in range(max(1, round(seconds / _NAP)) if 0 < seconds < _LONGEST else 1):  # false for NaN
            if acks := self.apply(step):
                return acks
            time.sleep(_NAP)
        return []

    def resume(self, last_applied: int = 0) -> Resume | None:
        """What a starting trainer should do, or None. Never raises.

        ``last_applied``: the directive number in the newest checkpoint's manifest; a resume that is not newer
        has been done already.
        """
        root = self._telemetry.checkpoint_root
        places = [self._telemetry.directory.resume, *([shared_resume(root)] if root else [])]
        found = [r for place in places if (r := _read_resume(place)) is not None and r.run == self._telemetry.run]
        newest = max(found, key=lambda r: r.number, default=None)  # a pod that was replaced has only what is shared
        fits = newest is not None and newest.number > last_applied and time.time() < newest.expires_at
        return newest if fits else None

    def resumed(self, resume: Resume, step: int, reason: str = "") -> None:
        """Answer a resume: applied, or failed with ``reason``. Call once the checkpoint is loaded."""
        self.last_directive = max(self.last_directive, resume.number)
        self.announce()
        result = Ack.FAILED if reason else Ack.APPLIED
        self._telemetry.say(Ack(resume.number, "", result, step, reason, self._read_knobs()), step)

    # -- one directive --------------------------------------------------------------------------------

    def _read(self, number: int, step: int) -> "_Vote":
        """The directive and why it is refused, or ''; neither where it is not for this process. Never raises."""
        path = self._telemetry.directory.directive(number)
        try:
            check_folder(self._telemetry.directory.directives)
            directive = Directive.decode(read_trusted(path, MAX_MESSAGE))
            if directive.role != self._telemetry.role:
                return _Vote(number, None, "")
            return _Vote(number, directive, self._refusal(directive, number, step))
        except (RightsError, MessageError) as error:
            return _Vote(number, None, str(error))
        except OSError as error:
            return _Vote(number, None, f"directive {number} cannot be read: {error.strerror}")
        except Exception as error:  # a vote that is not cast would split the ranks
            return _Vote(number, None, f"directive {number} cannot be judged: {_first_line(error)}")

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
        if me.world > 1 and self._collective is None:
            return f"{me.role} has {me.world} ranks and gave Control no collective: they could not act as one"
        if d.procedure and d.procedure not in self._procedures:
            return f"procedure {d.procedure!r} is not offered; offered: {', '.join(self._procedures) or 'none'}"
        return next((reason for change in d.knobs if (reason := self._unfit(change))), "")

    def _unfit(self, change: KnobChange) -> str:
        knob = self._knobs.get(change.name)
        if knob is None:
            return f"knob {change.name!r} is not offered; offered: {', '.join(self._knobs) or 'none'}"
        return unfit(knob, change, self._before.get(change.undo_of, {}).get(change.name))

    def _answer(self, vote: "_Vote", step: int) -> Ack | None:
        """Obey or refuse, and say which; None where the directive is for another role."""
        directive = vote.directive
        if directive is not None and not vote.refusal:
            ack = self._carry_out(directive, step)
        elif vote.refusal:
            ack = Ack(vote.number, directive.action if directive else "", Ack.REFUSED, step, vote.refusal)
        else:
            return None
        self._telemetry.say(ack, step)
        return ack

    def _carry_out(self, d: Directive, step: int) -> Ack:
        """Run the procedure, set the knobs, read them back. What fails is taken back as far as knobs go."""
        before = self._read_knobs()
        result, reason, detail = Ack.APPLIED, "", {}
        try:
            if d.procedure:
                detail = _telling(self._procedures[d.procedure](d.arguments))
                self.segment += d.procedure == "rollback"
            for change in d.knobs:
                self._knobs[change.name].set(change.value)
            self._remember(d.number, before)
        except Exception as error:  # the trainer's own code: its failure is an answer, not a crash
            result, reason = Ack.FAILED, _first_line(error)
            self._put_back(d, before)
        self.announce()
        return Ack(d.number, d.action, result, step, reason, self._read_knobs(), detail)

    def _remember(self, number: int, before: dict[str, float]) -> None:
        self.last_directive = number
        self._before[number] = before
        if len(self._before) > _UNDOABLE:
            del self._before[next(iter(self._before))]

    def _put_back(self, d: Directive, before: Mapping[str, float]) -> None:
        for change in d.knobs:
            try:
                self._knobs[change.name].set(before[change.name])
            except Exception:  # the read-back in the Ack says where it stands
                continue

    def _read_knobs(self) -> dict[str, float]:
        return {s.name: s.value for k in self._knobs.values() if (s := state(k)) is not None}

    # -- several ranks --------------------------------------------------------------------------------

    def _apply_together(self, step: int, collective: Collective) -> list[Ack]:
        """All ranks learn a number at one boundary, vote at the next, and act on the same third one.

        Reduced are [number to vote on, number voted on, vote against]. The first comes from rank 0 alone, who
        alone reads the bell: so all vote on the same one, whenever each of them was started. A collective is
        begun at every boundary, whatever happens here, so that no rank ever waits for another.
        """
        pending, self._pending = self._pending, None
        vote, self._vote = self._vote, None
        try:
            if pending is None:
                return []
            asked, number, against = collective.finish(pending)
            if vote is not None:
                return self._settle(vote, number, bool(against), step)
            if asked:
                self._seen = asked
                self._vote = self._read(asked, step)
            return []
        finally:
            self._pending = collective.begin(self._ballot())

    def _ballot(self) -> list[int]:
        if self._vote is not None:
            return [0, self._vote.number, int(bool(self._vote.refusal))]
        rung = self._bell.read() if self._telemetry.rank == 0 else 0
        if rung <= self._seen:
            return [0, 0, 0]
        return [max(self._seen, rung - _MOST_AT_ONCE) + 1, 0, 0]

    def _settle(self, vote: "_Vote", number: int, against: bool, step: int) -> list[Ack]:
        if not vote.refusal and vote.directive is not None and (against or number != vote.number):
            vote = vote._replace(refusal="another rank refused it")
        ack = self._answer(vote, step)
        return [] if ack is None else [ack]


class _Vote(NamedTuple):
    number: int
    directive: Directive | None
    refusal: str


def _read_resume(path: str) -> Resume | None:
    """What lies there, where only we can have written it. Never raises."""
    try:
        check_folder(os.path.dirname(path))
        return Resume.decode(read_trusted(path, MAX_MESSAGE))
    except (OSError, ValueError):
        return None


def _telling(detail: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a procedure returned, or why it cannot be told: an Ack must not be lost over it."""
    try:
        told = dict(detail or {})
        if len(dump(told)) > _MAX_DETAIL:
            raise ValueError(f"more than {_MAX_DETAIL} bytes")
        return told
    except Exception as error:  # the trainer's own types
        return {"untold": f"what the procedure returned is no JSON mapping: {_first_line(error)}"}


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300]}" if text else type(error).__name__
