"""What was let go: which turns' inputs are no longer there, since when, by whom and why, in a chain of its own.

A statement is made before the first of its inputs goes, and the next turn notes the newest statement's hash: from then
on it can be neither changed nor taken back without breaking the chain of turns. Called by the journal, its walk and
its retention. Not promised: that a statement behind the last turn was made by the agent; whoever can write the file
can make one, and can let go as much as it says.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

NOTE = "\0let go"
"""Stands among a turn's offsets; no path has a NUL."""
ROWS = "SELECT id, first, last, at, by, why, hash FROM letgo ORDER BY id"
_PERSON = b"gyrostat-let-go"
_HEAD = struct.Struct("<qqqdII")
_GENESIS = bytes(16)
_REFERENCE = b"\2"  # the codec's own forms are 0 and 1


class LetGo(NamedTuple):
    """A statement: the inputs of turns ``first`` to ``last`` may be gone. ``at`` is Unix seconds."""

    id: int
    first: int
    last: int
    at: float
    by: str
    why: str
    hash: bytes


def refer(blob: bytes) -> bytes:
    """What stands in a turn for its input: enough to know it again, 33 bytes."""
    return _REFERENCE + blake2b(blob, digest_size=32, person=_PERSON).digest()


def is_reference(given: Any) -> bool:
    """True where a turn's input stands elsewhere, or stood."""
    return isinstance(given, bytes) and given[:1] == _REFERENCE


def stated(before: LetGo | None, first: int, last: int, at: float, by: str, why: str) -> LetGo:
    """The statement that follows ``before``."""
    number = before.id + 1 if before else 1
    unsealed = LetGo(number, first, last, at, by, why, b"")
    return unsealed._replace(hash=_seal(before.hash if before else _GENESIS, unsealed))


def note(said: LetGo) -> str:
    """How a turn notes it."""
    return f"{said.id}:{said.hash.hex()}"


def faults(rows: Sequence[LetGo], noted: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """What does not hold, each with the turn it is about: in the statements' own chain, then by what turns noted."""
    before = _GENESIS
    for number, said in enumerate(rows, 1):
        if said.id != number or _sealed(before, said) != said.hash:
            first = said.first if isinstance(said.first, int) else 0
            yield first, f"statement {number} of what was let go was changed, added or removed"
            return
        before = said.hash
    notes = {note(said) for said in rows}
    for seq, word in noted:
        if word not in notes:
            yield seq, f"turn {seq} notes that inputs were let go, and what was said of it is gone: {word!r}"
            return


def stretches(rows: Iterable[LetGo]) -> list[tuple[int, int]]:
    """First and last turn of each stretch that they speak of, in order, none touching the next."""
    return merged((said.first, said.last) for said in rows)


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same turns in as few stretches as there can be."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def meets(stretches: Iterable[tuple[int, int]], first: int, last: int) -> bool:
    """True where one of the stretches has a turn of first to last."""
    return any(a <= last and first <= b for a, b in stretches)


def _sealed(before: bytes, said: LetGo) -> bytes | None:
    try:
        return _seal(before, said)
    except (AttributeError, TypeError, struct.error, UnicodeError):
        return None


def _seal(before: bytes, said: LetGo) -> bytes:
    by, why = said.by.encode(), said.why.encode()
    head = _HEAD.pack(said.id, said.first, said.last, said.at, len(by), len(why))
    return blake2b(before + head + by + why, digest_size=16, person=_PERSON).digest()
