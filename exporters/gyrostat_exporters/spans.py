"""Spans: the parts of an incident's trace as plain values, and the ids by which whoever comes after a crash goes on.

An id is made of what the journal and the ledger both have: the run's name, the incident's id, and when it fired. So a
restart, and a new pod that knows the incident by its ledger alone, give the same.
"""

from hashlib import blake2b
from typing import NamedTuple, TypeAlias

Said: TypeAlias = tuple[tuple[str, "str | int | float | bool"], ...]

_LONGEST = 1000  # characters of a text: a trainer's or a checkpoint's word may be of any length


class Event(NamedTuple):
    """What happened within a span. ``at`` is Unix seconds."""

    name: str
    at: float
    said: Said


class Span(NamedTuple):
    """One part of a trace; ``parent`` 0 for the incident itself. Times are Unix seconds.

    ``fault``: None where it is neither well nor ill, '' where it went well, else what was wrong, in words.
    """

    trace: int
    id: int
    parent: int
    name: str
    since: float
    until: float
    said: Said
    events: tuple[Event, ...] = ()
    fault: str | None = None


def trace_id(run: str, incident: str, fired_at: float) -> int:
    """The trace of an incident: 128 bits, never 0."""
    return _hashed(16, run, incident, repr(float(fired_at)))


def span_id(trace: int, *what: str) -> int:
    """A part of it, by what it is: 64 bits, never 0."""
    return _hashed(8, f"{trace:032x}", *what)


def short(text: str) -> str:
    """As much of a text as is sent."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def number(value: int) -> int | str:
    """A whole number as it can be sent; one that 64 bits do not hold is text."""
    return value if abs(value) < 2**63 else str(value)


def _hashed(size: int, *parts: str) -> int:
    """The parts' lengths are in it: no two lists of parts are one text."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return int.from_bytes(blake2b(text.encode("utf-8", "backslashreplace"), digest_size=size).digest(), "big") or 1
