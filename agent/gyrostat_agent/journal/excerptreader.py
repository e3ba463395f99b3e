"""The reader of excerpts: a file of lines made a journal again, in a folder of its own, for those who only look.

Nothing is believed here: whether the chain holds is for ``verify`` to say of what came out. Memory is constant; the
disk holds the journal once more while it is open.
"""

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from gyrostat_agent.journal.errors import JournalError
from gyrostat_agent.journal.excerpt import END, FORM, HEADER, LET_GO, SNAPSHOT, TURN, TurnRow, is_of, need, read_turn
from gyrostat_agent.journal.letgo import NOTE
from gyrostat_agent.journal.store import Journal

_LONGEST = 1 << 28  # bytes of a line; a turn of a thousand ranks has some millions
_BATCH = 256
_ADD_TURN = "INSERT INTO turns VALUES (?, ?, ?, ?, ?)"
_ADD_INPUT = "INSERT INTO inputs VALUES (?, ?)"
_ADD_ENTRY = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)"
_ADD_OFFSET = "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)"
_ADD_LET_GO = "INSERT INTO letgo VALUES (?, ?, ?, ?, ?, ?, ?)"
_ADD_SNAPSHOT = "INSERT INTO snapshots (seq, hash, seal, state, step) VALUES (?, ?, ?, ?, ?)"


@contextmanager
def opened(path: str) -> Iterator[Journal]:
    """The excerpt at ``path`` as a journal, for as long as this is entered; raises JournalError where it is none."""
    with TemporaryDirectory(prefix="gyrostat-excerpt-") as folder:
        place = os.path.join(folder, "journal.db")
        try:
            with open(path, "rb") as file, closing(Journal(place)) as journal:
                header = _fill(journal, file)
            origin = (int(header["from"]) - 1, bytes.fromhex(header["before"]))
        except (AttributeError, KeyError, OSError, OverflowError, RecursionError, TypeError, ValueError) as error:
            raise JournalError(f"{path}: it is no excerpt of a journal that this version reads: {error}") from None
        except JournalError as error:
            raise JournalError(f"{path}: {error}") from None
        with closing(Journal(place, readonly=True, origin=origin)) as journal:
            yield journal


def header_of(path: str) -> dict[str, Any]:
    """What an excerpt says of itself; raises JournalError where it is none."""
    try:
        with open(path, "rb") as file:
            return _header(json.loads(file.readline(_LONGEST)))
    except (OSError, RecursionError, ValueError) as error:
        raise JournalError(f"{path}: it is no excerpt of a journal: {error}") from None
    except JournalError as error:
        raise JournalError(f"{path}: {error}") from None


def _header(raw: Any) -> dict[str, Any]:
    header = need(raw, HEADER, ("run", "from", "to", "before", "head"))
    if header[HEADER] != FORM:
        raise JournalError(f"it is of form {header[HEADER]!r}, and this Gyrostat reads form {FORM}")
    return header


def _fill(journal: Journal, file: BinaryIO) -> dict[str, Any]:
    journal.read("PRAGMA synchronous = OFF")  # it is gone when it is closed
    lines = _lines(file)
    header = _header(next(lines, None))
    rows: list[TurnRow] = []
    expected = header["from"]
    for raw in lines:
        if is_of(raw, TURN):
            rows.append(read_turn(raw))
            if rows[-1].seq != expected:
                raise JournalError(f"turn {rows[-1].seq} stands where turn {expected} should")
            expected += 1
        elif is_of(raw, LET_GO):
            said = tuple(raw[n] for n in ("id", "first", "last", "at", "by", "why"))
            journal.write([(_ADD_LET_GO, [(*said, bytes.fromhex(raw["hash"]))])])
        elif is_of(raw, SNAPSHOT):
            state = raw["state"].encode("utf-8", "surrogateescape")
            sealed = bytes.fromhex(raw["turn"]), bytes.fromhex(raw["seal"])
            journal.write([(_ADD_SNAPSHOT, [(raw[SNAPSHOT], *sealed, state, raw["step"])])])
        else:
            raise JournalError("a line is neither a turn, a snapshot, what was let go, nor the end")
        if len(rows) == _BATCH:
            _add(journal, rows)
            rows = []
    _add(journal, rows)
    journal.write([(_ADD_OFFSET, [(b"\xff", header["to"], header["to"])])])
    return header


def _lines(file: BinaryIO) -> Iterator[Any]:
    """Each line but the last, which must say that it is, and be right about the bytes before it."""
    digest = blake2b(digest_size=16)
    for number in range(1, 1 << 62):
        line = file.readline(_LONGEST)
        try:
            raw = json.loads(line) if line.endswith(b"\n") else None
        except ValueError as error:
            raise JournalError(f"line {number} is no JSON: {error}") from None
        if raw is None:
            raise JournalError(f"it is cut off at line {number}")
        if is_of(raw, END):
            if raw.get("digest") != digest.hexdigest():
                raise JournalError("it is not as it was written: its bytes do not give the digest in its last line")
            if file.read(1):
                raise JournalError("something was put in behind its end")
            return
        digest.update(line)
        yield raw


def _add(journal: Journal, rows: list[TurnRow]) -> None:
    told = {}
    for row in rows:
        told.update({name: (at, row.seq) for name, at in json.loads(row.offsets).items() if name != NOTE})
    marks = [(name.encode("utf-8", "surrogatepass"), *mark) for name, mark in told.items()]
    journal.write(
        [
            (_ADD_TURN, [row[:5] for row in rows]),
            (_ADD_INPUT, [(row.seq, row.blob) for row in rows if row.blob is not None]),
            (_ADD_ENTRY, [(row.seq, *entry) for row in rows for entry in row.entries]),
            (_ADD_OFFSET, marks),
        ]
    )
