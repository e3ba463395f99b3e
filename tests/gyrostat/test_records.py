"""Records: values keep their bits, what is absent is absent, and expert counts arrive by layer and loop."""

import json
import struct

import pytest

from gyrostat.columns import Columns
from gyrostat.wire import Column, ExpertLoad, Frame, Kind, Schema
from gyrostat.wire.records import MAX_COLUMNS, decode_record, load_payload

ODD = {
    "quiet nan": 0x7FF8000000000000,
    "signalling nan with payload": 0x7FF0000000000BAD,
    "negative nan": 0xFFF8000000000001,
    "inf": 0x7FF0000000000000,
    "-inf": 0xFFF0000000000000,
    "-0.0": 0x8000000000000000,
    "smallest denormal": 0x0000000000000001,
    "largest": 0x7FEFFFFFFFFFFFFF,
}


def read(schema: Schema, body: bytes, kind: int = Kind.RECORD) -> dict[str, float]:
    return decode_record(
        Frame(kind, 0, 3, 1, schema.number, 9, 7, 1_500_000_000, body), schema, schema.layout(), "i"
    ).values


@pytest.mark.parametrize("bits", ODD.values(), ids=ODD.keys())
def test_a_value_keeps_its_bits(bits: int) -> None:
    """Not a number, infinity, minus zero and denormals arrive as the trainer had them, bit by bit."""
    columns = Columns({})
    body = columns.body({"loss": struct.unpack("<d", struct.pack("<Q", bits))[0]})
    assert struct.pack("<d", read(columns.schema, body)["loss"]) == struct.pack("<Q", bits)


def test_absent_is_not_nan() -> None:
    """A value that was not said is not there; one that is NaN is."""
    columns = Columns({})
    columns.body({"a": 1.0, "b": 2.0, "c": 3.0})
    found = read(columns.schema, columns.body({"b": float("nan")}))
    assert list(found) == ["b"]
    assert found["b"] != found["b"]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 65, 300, MAX_COLUMNS])
def test_the_mask_is_as_wide_as_the_columns(count: int) -> None:
    """Any number of columns up to the limit is read back, each under its own name."""
    values = {f"v{i}": float(i) for i in range(count)}
    columns = Columns({})
    body = columns.body(values)
    assert read(columns.schema, body) == values


def test_the_order_in_which_values_are_said_does_not_matter() -> None:
    """A trainer that says the same names in another order is not misread."""
    columns = Columns({})
    columns.body({"a": 1.0, "b": 2.0, "c": 3.0})
    assert read(columns.schema, columns.body({"c": 30.0, "a": 10.0})) == {"a": 10.0, "c": 30.0}


def test_columns_beyond_the_limit_are_counted() -> None:
    """A trainer that invents names for ever loses the new ones, counted, and keeps the old."""
    columns = Columns({})
    body = columns.body({f"v{i}": float(i) for i in range(MAX_COLUMNS + 5)})
    assert len(read(columns.schema, body)) == MAX_COLUMNS
    assert columns.left_out == 5
    assert read(columns.schema, columns.body({"v3": 3.0, "another": 1.0})) == {"v3": 3.0}
    assert columns.left_out == 6


def test_many_sets_of_names_are_all_read() -> None:
    """More combinations of names than are remembered still come out right."""
    columns = Columns({})
    for i in range(200):
        said = {f"v{j}": float(i + j) for j in range(10) if i >> j & 1}
        body = columns.body(said)
        assert read(columns.schema, body) == said


def test_a_schema_reads_back_with_units() -> None:
    """Names and units travel, in any script."""
    schema = Schema(4, (Column("loss", "nats"), Column("actor/lr", ""), Column("Δt", "s")))
    assert Schema.decode(4, schema.encode()) == schema


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"columns": 3}',
        b'{"columns": [1]}',
        b"\xff",
        b"[" * 100_000,
        b'{"columns": [["a"]]}',
        json.dumps({"columns": [["n", ""]] * (MAX_COLUMNS + 1)}).encode(),
    ],
    ids=["empty", "list", "no columns", "number", "no pair", "no text", "deep", "half a pair", "too many"],
)
def test_what_is_no_schema_is_refused_in_words(body: bytes) -> None:
    """A damaged schema is a ValueError that names it, whatever its bytes are."""
    with pytest.raises(ValueError, match="schema 2"):
        Schema.decode(2, body)


def test_names_that_cannot_be_stored_are_made_so() -> None:
    """Half a surrogate in a name would stop a database later; it becomes a question mark."""
    assert Schema.decode(1, b'{"columns": [["a\\ud800", ""]]}').columns[0].name == "a?"


def test_a_record_that_does_not_fit_its_schema_is_refused() -> None:
    """A body shorter than its schema, or a frame of another kind, is an error and not a wrong number."""
    schema = Schema(1, (Column("a"), Column("b")))
    with pytest.raises(ValueError, match="does not fit schema 1"):
        read(schema, bytes(16))
    with pytest.raises(ValueError, match="does not fit"):
        read(schema, bytes(64), kind=Kind.ACK)


@pytest.mark.parametrize("width", [2, 4])
def test_expert_counts_arrive_by_layer_and_loop(width: int) -> None:
    """Counts of two layers, three loops and four experts come out under their own layer and loop."""
    counts = tuple(range(24))
    payload = load_payload(2, 3, 4, struct.pack(f"<24{'H' if width == 2 else 'I'}", *counts), width)
    schema = Schema(1, (Column("a"),))
    body = schema.layout().pack(b"\1", 1.0) + payload
    frame = Frame(Kind.RECORD, 1, 3, 2, 1, 9, 7, 1_500_000_000, body)
    record = decode_record(frame, schema, schema.layout(), "i")
    assert (record.role, record.rank, record.segment, record.sequence, record.step, record.time) == (
        "rollout",
        3,
        2,
        9,
        7,
        1.5,
    )
    assert record.load == ExpertLoad(2, 3, 4, counts)
    assert record.load.rows()[4] == (1, 1, (16, 17, 18, 19))


@pytest.mark.parametrize(
    "payload",
    [b"\1", load_payload(2, 2, 2, bytes(31)), load_payload(2**31, 2**31, 2**31, b""), load_payload(1, 1, 1, b"ab", 3)],
    ids=["cut", "short", "enormous shape", "odd width"],
)
def test_damaged_counts_do_not_cost_the_values(payload: bytes) -> None:
    """A payload that makes no sense is no load; the scalars beside it are read."""
    schema = Schema(1, (Column("a"),))
    frame = Frame(Kind.RECORD, 0, 0, 0, 1, 1, 1, 1, schema.layout().pack(b"\1", 5.0) + payload)
    record = decode_record(frame, schema, schema.layout(), "i")
    assert (record.values, record.load) == ({"a": 5.0}, None)
