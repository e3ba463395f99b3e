"""Hello, Directive, Ack, Exit, Resume: what the two sides say in words, as JSON.

A number that is not finite is written as null beside ``"nonfinite": {"name": "nan"}``: JSON has no NaN, and
a reader that guesses would lose the thing we are here for. Every ``decode`` raises ``MessageError`` saying
what is wrong with a message; none trusts a length, a type or a depth.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat.wire import fields
from gyrostat.wire.fields import MAX_MESSAGE, MessageError, numbers, read_numbers, spell

__all__ = [
    "MAX_MESSAGE", "Ack", "Directive", "Exit", "Hello", "KnobChange", "KnobState", "MessageError", "Resume",
    "numbers", "read_numbers", "spell",
]  # fmt: skip


class KnobState(NamedTuple):
    """A knob as Hello shows it: its value now, its bounds, and the largest change of one directive.

    ``max_factor`` bounds the ratio of a change, ``max_step`` its absolute size; None is no such bound.
    """

    name: str
    value: float
    low: float
    high: float
    max_factor: float | None = None
    max_step: float | None = None
    unit: str = ""
    doc: str = ""


class KnobChange(NamedTuple):
    """``value`` to set where the knob reads ``expect`` now. ``undo_of`` names the directive taken back."""

    name: str
    expect: float
    value: float
    undo_of: int = 0


class Hello(NamedTuple):
    """What a process says first: who it is, what it lets us set and ask, where its checkpoints lie."""

    run: str
    role: str
    rank: int
    world: int
    incarnation: str
    segment: int = 0
    pid: int = 0
    knobs: tuple[KnobState, ...] = ()
    procedures: tuple[str, ...] = ()
    checkpoint_root: str = ""
    last_directive: int = 0

    def encode(self) -> bytes:
        """JSON body of a Hello frame."""
        knobs = [{**k._asdict(), "value": None, **numbers({"value": k.value})} for k in self.knobs]
        return fields.dump({**self._asdict(), "knobs": knobs})

    @classmethod
    def decode(cls, body: bytes) -> "Hello":
        """Read a Hello frame's body; raises MessageError."""
        return fields.read("hello", body, cls._from)

    @classmethod
    def _from(cls, raw: dict[str, Any]) -> "Hello":
        return cls(
            run=fields.text(raw, "run"),
            role=fields.text(raw, "role"),
            rank=fields.whole(raw, "rank"),
            world=fields.whole(raw, "world"),
            incarnation=fields.text(raw, "incarnation"),
            segment=fields.whole(raw, "segment"),
            pid=fields.whole(raw, "pid"),
            knobs=tuple(_knob(k) for k in fields.tables(raw, "knobs")),
            procedures=tuple(fields.clean(str(p)) for p in fields.rows(raw, "procedures")),
            checkpoint_root=fields.text(raw, "checkpoint_root"),
            last_directive=_last(raw),
        )


class Directive(NamedTuple):
    """A message to one role of one run. The procedure, if any, goes first; then the knobs are set as one.

    It holds until ``expires_at`` (Unix seconds) and, where ``expires_step`` is not -1, up to that step.
    ``action`` is the id of the action that it carries out.
    """

    number: int
    run: str
    role: str
    incarnation: str
    segment: int
    action: str
    expires_at: float
    expires_step: int = -1
    knobs: tuple[KnobChange, ...] = ()
    procedure: str = ""
    arguments: Mapping[str, Any] = {}
    reason: str = ""

    def encode(self) -> bytes:
        """JSON text of a directive file. The same directive gives the same bytes."""
        return fields.dump({**self._asdict(), "knobs": [k._asdict() for k in self.knobs]})

    @classmethod
    def decode(cls, body: bytes) -> "Directive":
        """Read a directive file; raises MessageError."""
        return fields.read("directive", body, cls._from)

    @classmethod
    def _from(cls, raw: dict[str, Any]) -> "Directive":
        return cls(
            number=fields.whole(raw, "number"),
            run=fields.text(raw, "run"),
            role=fields.text(raw, "role"),
            incarnation=fields.text(raw, "incarnation"),
            segment=fields.whole(raw, "segment"),
            action=fields.text(raw, "action"),
            expires_at=fields.finite(raw, "expires_at"),
            expires_step=fields.whole(raw, "expires_step"),
            knobs=tuple(_change(k) for k in fields.tables(raw, "knobs")),
            procedure=fields.text(raw, "procedure"),
            arguments=fields.mapping(raw, "arguments"),
            reason=fields.text(raw, "reason"),
        )


class _Answer(NamedTuple):
    number: int
    action: str
    result: str
    step: int
    reason: str = ""
    values: Mapping[str, float] = {}
    detail: Mapping[str, Any] = {}


class Ack(_Answer):
    """One rank's answer to a directive. ``result`` is applied, refused or failed; ``values`` are read back."""

    __slots__ = ()
    APPLIED = "applied"
    REFUSED = "refused"
    FAILED = "failed"

    def encode(self) -> bytes:
        """JSON body of an Ack frame."""
        return fields.dump({**self._asdict(), **numbers(self.values, "values")})

    @classmethod
    def decode(cls, body: bytes) -> "Ack":
        """Read an Ack frame's body; raises MessageError."""
        return fields.read("ack", body, cls._from)

    @classmethod
    def _from(cls, raw: dict[str, Any]) -> "Ack":
        result = fields.text(raw, "result")
        if result not in (cls.APPLIED, cls.REFUSED, cls.FAILED):
            raise MessageError(f"'result' is {result!r}, not applied, refused or failed")
        return cls(
            number=fields.whole(raw, "number"),
            action=fields.text(raw, "action"),
            result=result,
            step=fields.whole(raw, "step"),
            reason=fields.text(raw, "reason"),
            values=read_numbers(raw, "values"),
            detail=fields.mapping(raw, "detail"),
        )


class Exit(NamedTuple):
    """A process ended, as its supervisor saw it: exit code, or minus the signal's number.

    ``asked`` is true where a signal was passed on to it, or a directive ended it: not a death to be mended.
    """

    role: str
    rank: int
    pid: int
    status: int
    asked: bool

    def encode(self) -> bytes:
        """JSON body of an Exit frame."""
        return fields.dump(self._asdict())

    @classmethod
    def decode(cls, body: bytes) -> "Exit":
        """Read an Exit frame's body; raises MessageError."""
        return fields.read("exit", body, cls._from)

    @classmethod
    def _from(cls, raw: dict[str, Any]) -> "Exit":
        return cls(
            role=fields.text(raw, "role"),
            rank=fields.whole(raw, "rank"),
            pid=fields.whole(raw, "pid"),
            status=fields.whole(raw, "status"),
            asked=bool(raw.get("asked")),
        )


class Resume(NamedTuple):
    """What a starting trainer should do: load this checkpoint, set these knobs, pass these items over.

    ``number`` is the directive's: a trainer whose newest checkpoint was written under that number or a later
    one has done it already.
    """

    number: int
    run: str
    checkpoint: str
    digest: str
    step: int
    expires_at: float
    knobs: Mapping[str, float] = {}
    pass_over: tuple[int, ...] = ()
    reason: str = ""

    def encode(self) -> bytes:
        """JSON text of ``resume.json``."""
        return fields.dump({**self._asdict(), **numbers(self.knobs, "knobs")})

    @classmethod
    def decode(cls, body: bytes) -> "Resume":
        """Read ``resume.json``; raises MessageError."""
        return fields.read("resume", body, cls._from)

    @classmethod
    def _from(cls, raw: dict[str, Any]) -> "Resume":
        items = fields.rows(raw, "pass_over")
        if not all(isinstance(i, int) and not isinstance(i, bool) for i in items):
            raise MessageError("'pass_over' must be whole numbers")
        return cls(
            number=fields.whole(raw, "number"),
            run=fields.text(raw, "run"),
            checkpoint=fields.text(raw, "checkpoint"),
            digest=fields.text(raw, "digest"),
            step=fields.whole(raw, "step"),
            expires_at=fields.finite(raw, "expires_at"),
            knobs=read_numbers(raw, "knobs"),
            pass_over=tuple(items),
            reason=fields.text(raw, "reason"),
        )


def _last(raw: dict[str, Any]) -> int:
    """A directive's number. The next one follows it, so one beyond all counting is damage."""
    number = fields.whole(raw, "last_directive")
    if not 0 <= number < 1 << 52:
        raise MessageError(f"'last_directive' is {number}, which no directive was ever numbered")
    return number


def _knob(raw: dict[str, Any]) -> KnobState:
    odd = raw.get("nonfinite")
    value = odd.get("value") if raw.get("value") is None and isinstance(odd, dict) else raw.get("value")
    return KnobState(
        name=fields.text(raw, "name"),
        value=fields.value(value, "value"),
        low=fields.number(raw, "low"),
        high=fields.number(raw, "high"),
        max_factor=fields.optional(raw, "max_factor"),
        max_step=fields.optional(raw, "max_step"),
        unit=fields.text(raw, "unit"),
        doc=fields.text(raw, "doc"),
    )


def _change(raw: dict[str, Any]) -> KnobChange:
    return KnobChange(
        name=fields.text(raw, "name"),
        expect=fields.number(raw, "expect"),
        value=fields.number(raw, "value"),
        undo_of=fields.whole(raw, "undo_of"),
    )
