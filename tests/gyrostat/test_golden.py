"""Golden files: what a version once wrote is read alike for ever.

``golden/v1.0`` was written on 2026-11-30 by the wire's own encoders at version 1.0, and its expected readings
were compared by eye with what the encoders had been given. ``records.bin`` holds one frame of every kind, values
of every odd sort, both widths of expert counts, a grown schema and a kind that 1.0 does not know;
``damaged.bin`` holds junk, frames 1 and 2, frame 4 with one bit flipped, the first 100 bytes of frame 3, frame 5
whole, and 80 bytes of frame 8. They are never written again: a new version gets a folder of its own beside them.
"""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from gyrostat.wire import MAJOR, MINOR, Ack, Directive, Exit, Hello, Kind, Resume, Schema, encode, scan
from gyrostat.wire.messages import spell
from gyrostat.wire.records import decode_record

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = sorted(p.name for p in GOLDEN.iterdir())


def reading(data: bytes) -> dict[str, Any]:
    """A stretch of bytes as JSON shows it; values by their bits, so that no NaN passes for another."""
    read, schemas, shown = scan(data), {}, []
    for frame in read.frames:
        row: dict[str, Any] = {**frame._asdict(), "body": len(frame.body)}
        if frame.kind == Kind.SCHEMA:
            schemas[frame.schema] = Schema.decode(frame.schema, frame.body)
            row["said"] = [list(c) for c in schemas[frame.schema].columns]
        elif frame.kind == Kind.RECORD:
            schema = schemas[frame.schema]
            record = decode_record(frame, schema, schema.layout(), "i")
            row["said"] = {n: struct.pack(">d", v).hex() for n, v in record.values.items()}
            row["load"] = record.load
        elif frame.kind in (decoders := {Kind.HELLO: Hello, Kind.ACK: Ack, Kind.EXIT: Exit}):
            row["said"] = decoders[frame.kind].decode(frame.body)._asdict()  # type: ignore[attr-defined]
        shown.append(row)
    return {"consumed": read.consumed, "damaged": read.damaged, "foreign": read.foreign, "frames": shown}


def shown(value: Any) -> Any:
    """``value`` as it comes back from JSON, with numbers that JSON has not spelled out."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return spell(value)
    if isinstance(value, dict):
        return {key: shown(inner) for key, inner in value.items()}
    return [shown(inner) for inner in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["records", "damaged"])
def test_what_a_version_wrote_is_read_alike_for_ever(version: str, name: str) -> None:
    """Frames, records, messages and the bytes passed over are those that the expected file says."""
    expected = json.loads((GOLDEN / version / f"{name}.expected.json").read_text())
    assert shown(reading((GOLDEN / version / f"{name}.bin").read_bytes())) == expected


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "message"), [("directive", Directive), ("resume", Resume)])
def test_directives_of_a_version_are_read_alike_for_ever(version: str, name: str, message: Any) -> None:
    """A directive or a resume that an older sidecar left is understood, and written again as the same bytes."""
    body = (GOLDEN / version / f"{name}.json").read_bytes()
    read = message.decode(body)
    expected = json.loads((GOLDEN / version / f"{name}.expected.json").read_text())
    assert json.loads(json.dumps(shown(read._asdict()))) == expected
    assert read.encode() == body


def test_this_version_still_writes_what_it_wrote() -> None:
    """The bytes of this version do not change without a new version number."""
    data = (GOLDEN / f"v{MAJOR}.{MINOR}" / "records.bin").read_bytes()
    assert b"".join(encode(frame) for frame in scan(data).frames) == data
