"""Hello, Directive, Ack, Exit, Resume: what the two sides say in words, as JSON.

A number that is not finite is written as null beside ``"nonfinite": {"name": "nan"}``: JSON has no NaN, and
a reader that guesses would lose the thing we are here for. Every ``decode`` raises ``MessageError`` saying
what is wrong with a message; none trusts a length, a type or a depth.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

_T = TypeVar("_T")
MAX_MESSAGE = 1 << 20


class MessageError(ValueError):
    """A message that cannot be believed, with the reason."""


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
        return _dump({**self._asdict(), "knobs": knobs})

    @classmethod
    def decode(cls, body: bytes) -> "Hello":
        """Read a Hello frame's body; raises MessageError."""
        return _read("hello", body, cls._from)

    @classmethod
    def _from(cls, raw: dict[str, Any]) -> "Hello":
        knobs = tuple(_knob(k) for k in _list(raw, "knobs"))
        return cls(
            _text(raw, "run"), _text(raw, "role"), _whole(raw, "rank"), _whole(raw, "world"),
            _text(raw, "incarnation"), _whole(raw, "segment"), _whole(raw, "pid"), knobs,
            tuple(str(p) for p in _list(raw, "procedures")), _text(raw, "checkpoint_root"),
            _whole(raw, "last_directive"),
        )  # fmt: skip


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
        return _dump({**self._asdict(), "knobs": [k._asdict() for k in self.knobs]})

    @classmethod
    def decode(cls, body: bytes) -> "Directive":
        """Read a directive file; raises MessageError."""
        return _read("directive", body, cls._from)

    @classmethod
    def _from(cls, raw: dict[str, Any]) -> "Directive":
        knobs = tuple(
            KnobChange(_text(k, "name"), _number(k, "expect"), _number(k, "value"), _whole(k, "undo_of"))
            for k in _list(raw, "knobs")
        )
        arguments = raw.get("arguments") or {}
        if not isinstance(arguments, dict):
            raise MessageError("'arguments' must be a mapping")
        return cls(
            _whole(raw, "number"), _text(raw, "run"), _text(raw, "role"), _text(raw, "incarnation"),
            _whole(raw, "segment"), _text(raw, "action"), _number(raw, "expires_at"),
            _whole(raw, "expires_step"), knobs, _text(raw, "procedure"), arguments, _text(raw, "reason"),
        )  # fmt: skip


class Ack(NamedTuple):
    """One rank's answer to a directive. ``result`` is applied, refused or failed; ``values`` are read back."""

    number: int
    action: str
    result: str
    step: int
    reason: str = ""
    values: Mapping[str, float] = {}
    detail: Mapping[str, Any] = {}

    APPLIED = "applied"
    REFUSED = "refused"
    FAILED = "failed"

    def encode(self) -> bytes:
        """JSON body of an Ack frame."""
        return _dump({**self._asdict(), **numbers(self.values, "values")})

    @classmethod
    def decode(cls, body: bytes) -> "Ack":
        """Read an Ack frame's body; raises MessageError."""
        return _read("ack", body, cls._from)

    @classmethod
    def _from(cls, raw: dict[str, Any]) -> "Ack":
        result = _text(raw, "result")
        if result not in (cls.APPLIED, cls.REFUSED, cls.FAILED):
            raise MessageError(f"'result' is {result!r}, not applied, refused or failed")
        detail = raw.get("detail") or {}
        return cls(
            _whole(raw, "number"), _text(raw, "action"), result, _whole(raw, "step"), _text(raw, "reason"),
            read_numbers(raw, "values"), detail if isinstance(detail, dict) else {},
        )  # fmt: skip


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
        return _dump(self._asdict())

    @classmethod
    def decode(cls, body: bytes) -> "Exit":
        """Read an Exit frame's body; raises MessageError."""
        return _read("exit", body, cls._from)

    @classmethod
    def _from(cls, raw: dict[str, Any]) -> "Exit":
        return cls(
            _text(raw, "role"), _whole(raw, "rank"), _whole(raw, "pid"), _whole(raw, "status"),
            bool(raw.get("asked")),
        )  # fmt: skip


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
        return _dump({**self._asdict(), **numbers(self.knobs, "knobs")})

    @classmethod
    def decode(cls, body: bytes) -> "Resume":
        """Read ``resume.json``; raises MessageError."""
        return _read("resume", body, cls._from)

    @classmethod
    def _from(cls, raw: dict[str, Any]) -> "Resume":
        items = _list(raw, "pass_over")
        if not all(isinstance(i, int) and not isinstance(i, bool) for i in items):
            raise MessageError("'pass_over' must be whole numbers")
        return cls(
            _whole(raw, "number"), _text(raw, "run"), _text(raw, "checkpoint"), _text(raw, "digest"),
            _whole(raw, "step"), _number(raw, "expires_at"), read_numbers(raw, "knobs"), tuple(items),
            _text(raw, "reason"),
        )  # fmt: skip


def numbers(values: Mapping[str, float], key: str = "") -> dict[str, Any]:
    """``values`` for JSON: the finite ones as they are, the others null and named under ``nonfinite``.

    With ``key`` the values stand under it and ``nonfinite`` beside it; without, they stand at the top.
    """
    shown = {k: (float(v) if math.isfinite(v) else None) for k, v in values.items()}
    out: dict[str, Any] = {key: shown} if key else dict(shown)
    if odd := {k: spell(v) for k, v in values.items() if not math.isfinite(v)}:
        out["nonfinite"] = odd
    return out


def read_numbers(raw: Mapping[str, Any], key: str) -> dict[str, float]:
    """What ``numbers(values, key)`` wrote; raises MessageError."""
    shown, odd = raw.get(key) or {}, raw.get("nonfinite") or {}
    if not isinstance(shown, dict) or not isinstance(odd, dict):
        raise MessageError(f"'{key}' must be a mapping of numbers")
    return {str(k): _value(odd.get(k) if v is None else v, str(k)) for k, v in shown.items()}


def spell(value: float) -> str:
    """``nan``, ``inf`` or ``-inf``; a finite number by its shortest form."""
    return "nan" if value != value else repr(value)


def _value(value: Any, name: str) -> float:
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise MessageError(f"'{name}' is {str(value)[:40]!r}, not a number")


def _dump(raw: dict[str, Any]) -> bytes:
    return json.dumps(raw, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()


def _read(what: str, body: bytes, build: Callable[[dict[str, Any]], _T]) -> _T:
    if len(body) > MAX_MESSAGE:
        raise MessageError(f"this {what} has {len(body)} bytes; {MAX_MESSAGE} is the most")
    try:
        raw = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"this {what} is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise MessageError(f"this {what} must be a mapping")
    try:
        return build(raw)
    except MessageError as error:
        raise MessageError(f"this {what}: {error}") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _knob(raw: Any) -> KnobState:
    if not isinstance(raw, dict):
        raise MessageError("a knob must be a mapping")
    odd = raw.get("nonfinite")
    value = odd.get("value") if raw.get("value") is None and isinstance(odd, dict) else raw.get("value")
    return KnobState(
        _text(raw, "name"), _value(value, "value"), _number(raw, "low"), _number(raw, "high"),
        _optional(raw, "max_factor"), _optional(raw, "max_step"), _text(raw, "unit"), _text(raw, "doc"),
    )  # fmt: skip


def _optional(raw: dict[str, Any], key: str) -> float | None:
    return None if raw.get(key) is None else _number(raw, key)


def _number(raw: dict[str, Any], key: str) -> float:
    return _value(raw.get(key), key)


def _whole(raw: dict[str, Any], key: str) -> int:
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise MessageError(f"'{key}' is {str(value)[:40]!r}, not a whole number")
    return value


def _text(raw: dict[str, Any], key: str) -> str:
    value = raw.get(key, "")
    if not isinstance(value, str):
        raise MessageError(f"'{key}' is {str(value)[:40]!r}, not text")
    return value


def _list(raw: dict[str, Any], key: str) -> list[Any]:
    value = raw.get(key, [])
    if not isinstance(value, list):
        raise MessageError(f"'{key}' must be a list")
    return value
