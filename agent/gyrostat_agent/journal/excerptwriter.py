"""The writer of excerpts: turn by turn from a journal into a stream, in constant memory, checked on the way.

Called by ``gyrostat journal export``. What does not add up is not carried on: the hash of every turn is computed anew.
"""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import groupby
from typing import Any, BinaryIO, NamedTuple

from gyrostat_agent.journal.chain import GENESIS, link
from gyrostat_agent.journal.codec import decode_entry
from gyrostat_agent.journal.errors import JournalError
from gyrostat_agent.journal.excerpt import END, FORM, HEADER, LET_GO, SNAPSHOT, TurnRow, dumps, turn_line
from gyrostat_agent.journal.letgo import stretches
from gyrostat_agent.journal.store import Journal
from gyrostat_agent.journal.windows import Happening, tell, window

_PAGE = 64
_TURNS = (
    "SELECT t.seq, t.kind, t.given, t.offsets, t.hash, i.given FROM turns t LEFT JOIN inputs i ON i.seq = t.seq"
    " WHERE t.seq BETWEEN ? AND ? ORDER BY t.seq LIMIT ?"
)
_ENTRIES = "SELECT seq, place, id, kind, subject, body FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq, place"
_HASH = "SELECT hash FROM turns WHERE seq = ?"
_SNAPSHOTS = "SELECT seq FROM snapshots WHERE seq BETWEEN ? AND ? ORDER BY seq"
_SNAPSHOT = "SELECT seq, step, hash, seal, state FROM snapshots WHERE seq = ?"
_OF_ONE = "SELECT seq, body FROM entries WHERE kind = 'incident' AND subject = ? ORDER BY seq, place"


class Part(NamedTuple):
    """Turns ``first`` to ``last``, both included."""

    first: int
    last: int


def part_of(journal: Journal, incident: str) -> Part:
    """The turns that are kept for an incident, from the snapshot before it; raises JournalError where there is none."""
    known: dict[str, Happening] = {}
    for seq, body in journal.read(_OF_ONE, incident):
        tell(known, seq, [decode_entry(body)])
    if incident not in known:
        raise JournalError(f"journal {journal.path}: it tells of no incident {incident!r}")
    told, head = known[incident], int(journal.head().partition(":")[0])
    steps = dict(journal.read("SELECT seq, step FROM snapshots"))
    found = window(told, steps, stretches(journal.gone()))
    return Part(found.first if found else told.opened, min(found.core if found else told.last, head))


def write(journal: Journal, part: Part, header: dict[str, Any], out: BinaryIO) -> int:
    """Write a part of a journal; how many bytes. Raises JournalError where it does not add up, or cannot be read."""
    digest, size = blake2b(digest_size=16), 0
    with journal.standing():
        for line in _lines(journal, part, header):
            data = line.encode() + b"\n"
            digest.update(data)
            size += out.write(data)
    end = dumps({END: part.last, "digest": digest.hexdigest()}).encode() + b"\n"
    return size + out.write(end)


def _lines(journal: Journal, part: Part, header: dict[str, Any]) -> Iterator[str]:
    before = _hash(journal, part.first - 1)
    said = {HEADER: FORM, **header, "from": part.first, "to": part.last, "before": before.hex(), "head": journal.head()}
    yield dumps(said)
    for each in journal.gone():
        yield dumps({LET_GO: each.id, **each._asdict(), "hash": each.hash.hex()})
    waiting = [seq for (seq,) in journal.read(_SNAPSHOTS, part.first - 1, part.last)]
    for row in _rows(journal, part):
        while waiting and waiting[0] < row.seq:
            yield _snapshot_line(journal, waiting.pop(0))
        if link(before, row.seq, row.kind, row.given, row.entries, row.offsets) != row.hash:
            raise JournalError(f"journal {journal.path}: its chain is broken at turn {row.seq}; see: journal verify")
        before = row.hash
        yield turn_line(row)
    for seq in waiting:
        yield _snapshot_line(journal, seq)


def _rows(journal: Journal, part: Part) -> Iterator[TurnRow]:
    first = part.first
    while page := journal.read(_TURNS, first, part.last, _PAGE):
        entries = journal.read(_ENTRIES, page[0][0], page[-1][0])
        by_turn = {seq: tuple(tuple(row[1:]) for row in group) for seq, group in groupby(entries, lambda row: row[0])}
        for row in page:
            if row[0] != first:
                raise JournalError(f"journal {journal.path}: turn {first} is missing; see: journal verify")
            yield TurnRow._make((*row, by_turn.get(row[0], ())))
            first += 1
    if first <= part.last:
        raise JournalError(f"journal {journal.path}: turn {first} is missing; see: journal verify")


def _snapshot_line(journal: Journal, at: int) -> str:
    seq, step, turn, seal, state = journal.read(_SNAPSHOT, at)[0]
    said = {SNAPSHOT: seq, "step": step, "turn": turn.hex(), "seal": seal.hex()}
    return dumps({**said, "state": state.decode("utf-8", "surrogateescape")})


def _hash(journal: Journal, seq: int) -> bytes:
    if seq == 0:
        return GENESIS
    found = journal.read(_HASH, seq)
    if not found:
        raise JournalError(f"journal {journal.path}: there is no turn {seq + 1}")
    return bytes(found[0][0])
