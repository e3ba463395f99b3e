"""Record and Schema: what one rank says about one step, and the columns it says it in.

A value that is absent is a bit in the mask, never NaN; NaN and infinity travel as the IEEE bits they are,
because they are what the sidecar is here for. Expert counts travel raw, as a payload behind the values:
reducing them costs the trainer five times what shipping them does.
"""

import json
import struct
from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat.wire.frames import Frame, Kind, Role

MAX_COLUMNS = 1024
_LOAD = struct.Struct("<BBHIII")
_COUNTS = 1
_WIDTHS = {2: "H", 4: "I"}


class Column(NamedTuple):
    """A series' name and unit, as the trainer says them."""

    name: str
    unit: str = ""


class Schema(NamedTuple):
    """The columns of the records that name its number, in order."""

    number: int
    columns: tuple[Column, ...]

    def encode(self) -> bytes:
        """Body of a schema frame (JSON)."""
        return json.dumps({"columns": [list(c) for c in self.columns]}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, number: int, body: bytes) -> "Schema":
        """Read a schema frame's body; raises ValueError on anything that is not one."""
        try:
            rows = json.loads(body)["columns"]
            columns = tuple(Column(clean(str(name))[:200], clean(str(unit))[:40]) for name, unit in rows)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"schema {number} cannot be read: {error}") from None
        if len(columns) > MAX_COLUMNS:
            raise ValueError(f"schema {number} has {len(columns)} columns, more than {MAX_COLUMNS}")
        return cls(number, columns)

    def layout(self) -> struct.Struct:
        """The record body's fixed part: presence mask, then one float64 a column."""
        return struct.Struct(f"<{(len(self.columns) + 7) // 8}s{len(self.columns)}d")


class ExpertLoad(NamedTuple):
    """Tokens routed to each expert, per layer and loop: ``layers * loops * experts`` counts, row-major."""

    layers: int
    loops: int
    experts: int
    counts: tuple[int, ...]

    def rows(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """``(layer, loop, counts of each expert)`` for every layer and loop."""
        e = self.experts
        return [
            (i // self.loops, i % self.loops, self.counts[i * e : (i + 1) * e]) for i in range(self.layers * self.loops)
        ]


class Record(NamedTuple):
    """One rank's step. ``values`` holds what was present; ``time`` is Unix seconds."""

    role: str
    rank: int
    incarnation: str
    segment: int
    sequence: int
    step: int
    time: float
    values: dict[str, float]
    load: ExpertLoad | None = None


def load_payload(layers: int, loops: int, experts: int, counts: bytes | memoryview, width: int = 4) -> bytes:
    """Payload of expert counts: shape, then little-endian unsigned integers of ``width`` bytes each."""
    return b"".join((_LOAD.pack(_COUNTS, width, 0, layers, loops, experts), counts))


def decode_record(frame: Frame, schema: Schema, layout: struct.Struct, incarnation: str) -> Record:
    """Read a record frame by its schema; raises ValueError where body and schema disagree."""
    if frame.kind != Kind.RECORD or len(frame.body) < layout.size:
        raise ValueError(f"a record of {len(frame.body)} bytes does not fit schema {schema.number}")
    mask_bytes, *row = layout.unpack_from(frame.body)
    mask = int.from_bytes(mask_bytes, "little")
    values = {c.name: v for i, (c, v) in enumerate(zip(schema.columns, row, strict=True)) if mask >> i & 1}
    load = _decode_load(frame.body[layout.size :])
    return Record(
        Role.name(frame.role), frame.rank, incarnation, frame.segment, frame.sequence, frame.step,
        frame.time / 1e9, values, load,
    )  # fmt: skip


def _decode_load(payload: bytes) -> ExpertLoad | None:
    if len(payload) < _LOAD.size:
        return None
    kind, width, _, layers, loops, experts = _LOAD.unpack_from(payload)
    size = layers * loops * experts
    if kind != _COUNTS or width not in _WIDTHS or not size or len(payload) != _LOAD.size + size * width:
        return None  # none at all, said of billions of layers, would keep whoever walks over the rows busy for ever
    counts = struct.unpack_from(f"<{size}{_WIDTHS[width]}", payload, _LOAD.size)
    return ExpertLoad(layers, loops, experts, counts)
