"""The hash chain over turns, and the walk that finds where it was broken.

::

    hash(n) = blake2b-128(hash(n-1), n, kind, reference to the input, entry rows, offsets)    hash(0) = 16 zero bytes

Every part is length-prefixed, so that no byte can move from one part to the next. The reference is the input's digest
(the input itself in a turn of an older version): an input that was let go leaves it, and the chain holds without it.
Called by the journal. Not promised: against somebody who can write the file and computes every hash anew, only a head
that was noted elsewhere (the ledger, a metric) helps; give it to ``walk`` as ``pinned``.
"""

import json
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any, NamedTuple

from gyrostat_agent.journal.letgo import NOTE, ROWS, LetGo, faults, is_reference, meets, refer, stretches

GENESIS = bytes(16)
_PERSON = b"gyrostat-journal"
_HEAD = struct.Struct("<qIIII")
_ROW = struct.Struct("<qIIII")
_STEP = struct.Struct("<q")

_TURNS = (
    "SELECT t.seq, t.kind, t.given, t.offsets, t.hash, i.given"
    " FROM turns t LEFT JOIN inputs i ON i.seq = t.seq ORDER BY t.seq"
)
_STRAY = "SELECT seq FROM inputs WHERE seq NOT IN (SELECT seq FROM turns) ORDER BY seq LIMIT 1"
_SNAPSHOTS = "SELECT seq, hash, seal, state, step FROM snapshots ORDER BY seq"
_ENTRIES = "SELECT seq, place, id, kind, subject, body FROM entries ORDER BY seq, place"
_OFFSETS = "SELECT source, position, seq FROM offsets WHERE source <> x'FF'"

EntryRow = tuple[int, str, str, str, bytes]
"""An entry as it is stored: place in its turn, then id, kind and subject to look it up by, and its blob."""


class Verdict(NamedTuple):
    """Whether the chain holds; how many turns were found good; else the first bad turn and why."""

    ok: bool
    turns: int
    broken_at: int = 0
    why: str = ""


class _Broken(Exception):
    def __init__(self, seq: int, why: str) -> None:
        super().__init__(why)
        self.seq = seq


def link(before: bytes, seq: int, kind: str, given: bytes, entries: Sequence[EntryRow], offsets: bytes) -> bytes:
    """Hash of a turn, 16 bytes, from the one before it and everything that its rows say."""
    name = kind.encode()
    parts = [before, _HEAD.pack(seq, len(name), len(given), len(entries), len(offsets)), name, given, offsets]
    for place, *keys, body in entries:
        words = [key.encode() for key in keys]
        parts += [_ROW.pack(place, *map(len, words), len(body)), *words, body]
    return blake2b(b"".join(parts), digest_size=16, person=_PERSON).digest()


def seal(seq: int, chained: bytes, state: bytes, step: int = -1) -> bytes:
    """Hash of a snapshot's row: a snapshot that was changed, or moved to another turn, does not match its own."""
    digest = blake2b(_HEAD.pack(seq, len(chained), len(state), 0, 0), digest_size=16, person=_PERSON)
    if step != -1:  # an older version's row has none
        digest.update(_STEP.pack(step))
    digest.update(chained)
    digest.update(state)
    return digest.digest()


def walk(db: sqlite3.Connection, pinned: Sequence[str] = (), origin: tuple[int, bytes] = (0, GENESIS)) -> Verdict:
    """Check every turn from the first, then end, offsets, snapshots and what was let go.

    ``pinned`` are heads noted elsewhere that it must pass; ``origin`` is the turn before the first, and its hash, where
    only a part of a journal is there.
    """
    good = origin[0]
    try:
        pins = [_pin(pin) for pin in pinned]
        hashes, told = dict([origin]), dict[bytes, tuple[int, int]]()
        rows = [LetGo(*row) for row in db.execute(ROWS)]
        noted: list[tuple[int, str]] = []
        wanted = {seq for (seq,) in db.execute("SELECT seq FROM snapshots")} | {seq for seq, _ in pins}
        for seq, digest, offsets in _links(db, origin, stretches(rows)):
            good = seq
            if NOTE in offsets:
                noted.append((seq, str(offsets.pop(NOTE))))
            told.update({source.encode("utf-8", "surrogatepass"): (at, seq) for source, at in offsets.items()})
            if seq in wanted:
                hashes[seq] = digest
        _check_end(db, good)
        _check_let_go(db, rows, noted)
        _check_pins(pins, hashes, origin[0])
        _check_offsets(db, told)
        _check_snapshots(db, hashes)
    except _Broken as broken:
        return Verdict(False, good - origin[0], broken.seq, str(broken))
    except (sqlite3.Error, TypeError, ValueError) as error:
        return Verdict(False, good - origin[0], good + 1, f"the file is damaged behind turn {good}: {error}")
    return Verdict(True, good - origin[0])


def _links(
    db: sqlite3.Connection, origin: tuple[int, bytes], gone: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """Each good turn's number, hash and offsets; raises at the first that is not."""
    expected, before = origin[0] + 1, origin[1]
    groups = groupby(db.execute(_ENTRIES), key=lambda row: int(row[0]))
    group = next(groups, None)
    for seq, kind, given, offsets, stored, blob in db.execute(_TURNS):
        if seq != expected:
            missing = f"turn {expected} is missing"
            raise _Broken(min(seq, expected), missing if seq > expected else f"turn {seq} was put in")
        entries = []
        if group and group[0] <= seq:
            if group[0] < seq:
                break
            entries = [tuple(row[1:]) for row in group[1]]
            group = next(groups, None)
        if _relink(before, seq, kind, given, entries, offsets) != stored:
            raise _Broken(seq, f"turn {seq} or one of its {len(entries)} entries was changed, added or removed")
        if why := _misfit(seq, given, blob, gone):
            raise _Broken(seq, why)
        before, expected = stored, seq + 1
        yield seq, stored, json.loads(offsets)
    if group:
        raise _Broken(group[0], f"entries were put in for turn {group[0]}, which has none or does not exist")


def _misfit(seq: int, given: Any, blob: Any, gone: Sequence[tuple[int, int]]) -> str:
    """Why a turn's input is not what it should be, or ''."""
    if not is_reference(given):
        return "" if blob is None else f"a second input was put in for turn {seq}"
    if blob is None:
        said = meets(gone, seq, seq)
        return "" if said else f"the input of turn {seq} was removed, and nothing says that it was let go"
    whole = isinstance(blob, bytes) and refer(blob) == given
    return "" if whole else f"the input of turn {seq} was changed"


def _relink(before: bytes, seq: int, kind: Any, given: Any, entries: Any, offsets: Any) -> bytes | None:
    """The hash that the rows should have; None where a column is not even of its type."""
    try:
        return link(before, seq, kind, given, entries, offsets)
    except (AttributeError, TypeError, ValueError, struct.error):
        return None


def _check_end(db: sqlite3.Connection, seq: int) -> None:
    own = db.execute("SELECT position, seq FROM offsets WHERE source = x'FF'").fetchall()
    if own != [(seq, seq)]:
        raise _Broken(seq + 1, f"turn {seq} is not the last by the journal's own count: later turns were cut off")


def _check_let_go(db: sqlite3.Connection, rows: Sequence[LetGo], noted: Sequence[tuple[int, str]]) -> None:
    for seq, why in faults(rows, noted):
        raise _Broken(seq, why)
    for (seq,) in db.execute(_STRAY):
        raise _Broken(seq, f"an input was put in for turn {seq}, which does not exist")


def _check_pins(pins: Sequence[tuple[int, bytes]], hashes: dict[int, bytes], origin: int) -> None:
    for seq, digest in pins:
        if seq < origin:
            raise _Broken(seq, f"turn {seq} is not in this part, which begins behind turn {origin}: it proves nothing")
        if hashes.get(seq) != digest:
            noted = f"{seq}:{digest.hex()}"
            anew, short = "the journal was written anew", "it ends before, cut off, or another run's was noted"
            why = anew if seq in hashes else short
            raise _Broken(seq, f"turn {seq} is not the one that was noted as {noted}: {why}")


def _pin(pinned: str) -> tuple[int, bytes]:
    seq, _, digest = pinned.partition(":")
    try:
        return int(seq), bytes.fromhex(digest)
    except ValueError:
        raise _Broken(0, f"{pinned!r} is not a head: it must read number:hash") from None


def _check_offsets(db: sqlite3.Connection, told: dict[bytes, tuple[int, int]]) -> None:
    rows = {bytes(source): (at, seq) for source, at, seq in db.execute(_OFFSETS)}
    for source in sorted(told.keys() | rows.keys()):
        if rows.get(source) != told.get(source):
            seq = (told.get(source) or rows[source])[1]
            name = source.decode("utf-8", "replace")
            raise _Broken(seq, f"the offset of {name} was changed; turn {seq} is the last that tells it")


def _check_snapshots(db: sqlite3.Connection, hashes: dict[int, bytes]) -> None:
    for seq, chained, digest, state, step in db.execute(_SNAPSHOTS):
        if not believable(seq, chained, digest, state, step, hashes.get(seq)):
            raise _Broken(seq, f"the snapshot at turn {seq} was changed")


def believable(seq: int, chained: Any, digest: Any, state: Any, step: Any, turn: bytes | None) -> bool:
    """True where a snapshot's row is whole and belongs to the turn whose hash is ``turn``."""
    if not isinstance(chained, bytes) or not isinstance(state, bytes) or not isinstance(step, int):
        return False
    return turn == chained and digest == seal(seq, chained, state, step)
