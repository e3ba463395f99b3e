"""Excerpt: a journal, or a part of one, as lines of JSON that prove themselves wherever they are carried.

::

    {"gyrostat_excerpt": 1, "run": ..., "gyrostat": ..., "from": 1, "to": 512, "before": HASH, "head": "512:HASH"}
    {"let_go": 1, "first": 1, "last": 256, "at": ..., "by": ..., "why": ..., "hash": HASH}
    {"snapshot": 256, "step": 250, "turn": HASH, "seal": HASH, "state": "..."}
    {"turn": 257, "at": 1.5, "kind": "Batch", "input": {...}, "offsets": {...}, "entries": [{...}], "hash": HASH}
    {"end": 512, "digest": HASH}

Bytes that JSON says as they are stand as JSON; what the journal packed stands as ``{"base64": ...}``; an input that was
let go as ``{"gone": REFERENCE}``. Read back, a line gives the very bytes that its hash is over. Called by the writer
and the reader. Not promised: that the part before ``before`` is what it says; a head noted elsewhere tells.
"""

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

from gyrostat_agent.journal.chain import EntryRow
from gyrostat_agent.journal.codec import decode_entry, key
from gyrostat_agent.journal.errors import JournalError
from gyrostat_agent.journal.letgo import is_reference, refer

FORM = 1
HEADER, LET_GO, SNAPSHOT, TURN, END = "gyrostat_excerpt", "let_go", "snapshot", "turn", "end"
_PLAIN, _PACKED = b"\0", b"\1"
_AT = re.compile(rb'"at":(-?[0-9][0-9.eE+-]*)')
_PEEK = 256  # bytes of an input in which its time stands
dumps = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class TurnRow(NamedTuple):
    """A turn as the journal stores it; ``blob`` is its input, None where it was let go or stands in ``given``."""

    seq: int
    kind: str
    given: bytes
    offsets: bytes
    hash: bytes
    blob: bytes | None
    entries: tuple[EntryRow, ...]


def turn_line(row: TurnRow) -> str:
    """A turn in one line, without its end."""
    blob = row.blob if is_reference(row.given) else row.given
    at = _time(blob) if blob is not None else None
    said = _say(blob) if blob is not None else dumps({"gone": row.given.hex()})
    parts = [f'"turn":{row.seq}', *([f'"at":{at}'] if at else []), f'"kind":{dumps(row.kind)}', f'"input":{said}']
    parts += [] if is_reference(row.given) else ['"whole":true']
    entries = ",".join(_say(body) for *_, body in row.entries)
    parts += [f'"offsets":{_say(_PLAIN + row.offsets)}', f'"entries":[{entries}]', f'"hash":"{row.hash.hex()}"']
    return f"{{{','.join(parts)}}}"


def read_turn(raw: dict[str, Any]) -> TurnRow:
    """The row that ``turn_line`` wrote; raises KeyError, TypeError, ValueError or JournalError."""
    gone = raw["input"].get("gone") if len(raw["input"]) == 1 else None
    blob = None if gone else _hear(raw["input"])
    given = bytes.fromhex(gone) if gone else blob if raw.get("whole") else refer(blob or b"")
    if gone and not is_reference(given):
        raise ValueError("what stands for its input is no reference")
    if blob is not None and raw.get("at") != (json.loads(at) if (at := _time(blob)) else None):
        raise ValueError("its time is not its input's")
    entries = tuple(_row(place, _hear(each)) for place, each in enumerate(raw["entries"]))
    offsets = _hear(raw["offsets"])[1:]
    kept = None if raw.get("whole") else blob
    return TurnRow(int(raw["turn"]), str(raw["kind"]), given or b"", offsets, bytes.fromhex(raw["hash"]), kept, entries)


def _row(place: int, body: bytes) -> EntryRow:
    entry = decode_entry(body)
    return place, key(entry.id), key(entry.kind), key(entry.subject), body


def _say(blob: bytes) -> str:
    """A blob as JSON: as it is where that gives the same bytes again, else in base64."""
    if blob[:1] == _PLAIN:
        try:
            text = blob[1:].decode("ascii")
            said = json.loads(text)
            if isinstance(said, dict) and dumps(said) == text and set(said) not in ({"base64"}, {"gone"}):
                return text
        except (ValueError, RecursionError):
            pass
    return dumps({"base64": b64encode(blob).decode()})


def _hear(said: Any) -> bytes:
    if not isinstance(said, dict):
        raise ValueError("what should be an object is none")
    if set(said) == {"base64"}:
        return b64decode(said["base64"], validate=True)
    return _PLAIN + dumps(said).encode()


def _time(blob: bytes) -> str | None:
    """When an input came, as it is written there."""
    try:
        text = zlib.decompressobj().decompress(blob[1:], _PEEK) if blob[:1] == _PACKED else blob[1:_PEEK]
    except zlib.error:
        return None
    found = _AT.search(text)
    return found[1].decode() if found else None


def is_of(raw: Any, kind: str) -> bool:
    """True where a line is of that kind."""
    return isinstance(raw, dict) and next(iter(raw), "") == kind


def need(raw: Any, kind: str, names: Sequence[str]) -> dict[str, Any]:
    """A line that must be of that kind and have these fields; raises JournalError."""
    if not is_of(raw, kind) or any(name not in raw for name in names):
        raise JournalError(f"where a line {kind!r} with {', '.join(names)} should be, there is another")
    return dict(raw)
