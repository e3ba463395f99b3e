"""The codec: what is journaled comes back as it was, whatever numbers and names it holds."""

import math
import struct
import typing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gyrostat.wire import Ack, Exit, ExpertLoad, Hello, KnobState, Record
from gyrostat_agent.journal import CodecError, decode, decode_entry, encode, encode_entry
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import (
    AlertTold,
    Answer,
    Batch,
    CheckpointSeen,
    Command,
    Delivery,
    Died,
    Ended,
    FaultLine,
    Forwarded,
    Input,
    Item,
    Pack,
    SourceState,
    Tick,
)

# A busy machine is no fault of the codec: no deadline, no complaint that values come slowly.
MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXT = st.text(st.characters(), max_size=12)  # lone surrogates too: JSON from outside may hold them
KEYS = TEXT | st.sampled_from(["nonfinite", "type", "a/b", "~", "~1", "counts", "time", "0"])
NUMBERS = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, 0.1])
WHOLE = st.integers(-(2**63), 2**63 - 1)
VALUES = st.dictionaries(KEYS, NUMBERS, max_size=8)
PLAIN = st.recursive(
    st.none() | st.booleans() | WHOLE | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DATA = st.dictionaries(KEYS, PLAIN, max_size=4)


@st.composite
def loads(draw: st.DrawFn) -> ExpertLoad:
    """Counts of the shape that they claim."""
    shape = draw(st.tuples(*[st.integers(0, 3)] * 3))
    counts = st.lists(st.integers(0, 2**32 - 1), min_size=math.prod(shape), max_size=math.prod(shape))
    return ExpertLoad(shape[0], shape[1], shape[2], tuple(draw(counts)))


ACKS = st.builds(Ack, WHOLE, TEXT, TEXT, WHOLE, TEXT, VALUES, DATA)
KNOBS = st.builds(KnobState, TEXT, NUMBERS, NUMBERS, NUMBERS, st.none() | NUMBERS, st.none() | NUMBERS, TEXT, TEXT)
TUPLES = st.lists(TEXT, max_size=3).map(tuple)
ITEMS: dict[type, st.SearchStrategy[Any]] = {
    Record: st.builds(
        Record, TEXT, WHOLE, TEXT, WHOLE, WHOLE, WHOLE, NUMBERS, VALUES, st.none() | loads()
    ),
    Hello: st.builds(
        Hello, TEXT, TEXT, WHOLE, WHOLE, TEXT, WHOLE, WHOLE, st.lists(KNOBS, max_size=2).map(tuple), TUPLES, TEXT, WHOLE
    ),
    Answer: st.builds(Answer, TEXT, WHOLE, TEXT, ACKS),
    Ended: st.builds(Ended, TEXT, WHOLE, TEXT),
    Died: st.builds(Died, TEXT, st.builds(Exit, TEXT, WHOLE, WHOLE, WHOLE, st.booleans())),
    CheckpointSeen: st.builds(
        CheckpointSeen, TEXT, WHOLE, WHOLE, TEXT, TEXT, TEXT, NUMBERS, WHOLE, WHOLE, VALUES
    ),
    SourceState: st.builds(SourceState, TEXT, TEXT, TEXT),
    Delivery: st.builds(Delivery, TEXT, TEXT, TEXT),
    FaultLine: st.builds(FaultLine, TEXT, WHOLE, TEXT, TEXT),
    AlertTold: st.builds(
        AlertTold, TEXT, TEXT, st.dictionaries(KEYS, TEXT, max_size=3), TEXT, WHOLE, WHOLE, NUMBERS, TEXT, DATA
    ),
}  # fmt: skip
ITEMS[Forwarded] = st.builds(Forwarded, TEXT, st.lists(st.one_of(*ITEMS.values()), max_size=3).map(tuple))
INPUTS: dict[type, st.SearchStrategy[Any]] = {
    Batch: st.builds(Batch, NUMBERS, st.lists(st.one_of(*ITEMS.values()), max_size=4).map(tuple)),
    Tick: st.builds(Tick, NUMBERS),
    Command: st.builds(Command, NUMBERS, TEXT, DATA),
    Pack: st.builds(Pack, NUMBERS, TEXT, st.text(max_size=2000)),
}
ENTRIES = st.builds(Entry, TEXT, NUMBERS, WHOLE, TEXT, TEXT, TEXT, TEXT, DATA)


def bits(value: Any) -> Any:
    """A value that compares equal only to one of the same types and the same float bits, any NaN as one."""
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else struct.pack("<d", value))
    if isinstance(value, dict):
        return {key: bits(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [bits(v) for v in value])
    return (type(value).__name__, value)


def test_every_type_that_is_fed_is_covered_here() -> None:
    """A type that is added to the inputs must be added to the round trip below."""
    assert set(INPUTS) == set(typing.get_args(Input))
    assert set(ITEMS) == set(typing.get_args(Item))


@pytest.mark.parametrize("kind", INPUTS, ids=lambda kind: kind.__name__)
@MANY
@given(data=st.data())
def test_an_input_comes_back(kind: type, data: st.DataObject) -> None:
    """Replay sees the very input that the engine was fed: types, float bits, NaN, absent keys."""
    value = data.draw(INPUTS[kind])
    assert bits(decode(encode(value))) == bits(value)


@pytest.mark.parametrize("kind", ITEMS, ids=lambda kind: kind.__name__)
@MANY
@given(data=st.data())
def test_an_item_comes_back(kind: type, data: st.DataObject) -> None:
    """Whatever a source may give in a Batch comes back as it was."""
    value = Batch(1.5, (data.draw(ITEMS[kind]),))
    assert bits(decode(encode(value))) == bits(value)


@MANY
@given(ENTRIES)
def test_an_entry_comes_back(entry: Entry) -> None:
    """History shows what the engine said, with every number that it named."""
    assert bits(decode_entry(encode_entry(entry))) == bits(entry)


def test_the_stored_text_is_json_that_any_reader_takes() -> None:
    """Null beside ``nonfinite``: never a NaN literal, which jq, Go and JavaScript refuse."""
    record = Record("trainer", 0, "ab", 0, 1, 1, 2.0, {"loss": math.nan, "a/b": -math.inf, "entropy": 0.5})
    blob = encode(Batch(1.0, (record,)))
    assert blob[:1] == b"\0"
    assert b'"values":{"loss":null,"a/b":null,"entropy":0.5}' in blob
    assert b'"nonfinite":{"/items/0/values/loss":"nan","/items/0/values/a~1b":"-inf"}' in blob


def test_expert_counts_are_packed() -> None:
    """The counts of 61 layers of 256 experts take half of their raw 62 KB, and come back."""
    load = ExpertLoad(61, 1, 256, tuple(512 + i * 7919 % 97 for i in range(61 * 256)))
    value = Batch(1.0, (Record("trainer", 0, "ab", 0, 1, 1, 2.0, {"loss": 1.0}, load),))
    assert len(encode(value)) < 31_000
    assert decode(encode(value)) == value


def test_counts_that_are_no_u32_are_journaled_all_the_same() -> None:
    """A source that reads fractions out of a log must not stop the agent at that line for ever."""
    value = Batch(1.0, (Record("trainer", 0, "ab", 0, 1, 1, 2.0, {}, ExpertLoad(1, 1, 3, (-1, 2**40, 7))),))
    assert decode(encode(value)) == value


def test_many_lines_are_packed_and_short_ones_are_not() -> None:
    """A long pack of rules takes a fraction of its text; a Tick is stored as it reads."""
    text = "- alert: EntropyCollapse\n  expr: entropy < 0.3\n" * 200
    assert len(encode(Pack(1.0, "d", text))) < len(text) / 10
    assert encode(Tick(1.0)) == b'\0{"type":"Tick","at":1.0}'


GOLDEN = [
    (b'{"type":"Tick","at":1.5}', Tick(1.5)),
    (b'{"type":"Tick","at":null,"nonfinite":{"/at":"inf"}}', Tick(math.inf)),
    (b'{"type":"Command","at":1.0,"verb":"pause"}', Command(1.0, "pause")),
    (b'{"type":"Command","at":1.0,"verb":"pause","arguments":{"for":3},"who":"a later field"}',
     Command(1.0, "pause", {"for": 3})),
    (b'{"type":"Pack","at":1.0,"digest":"d","text":"t"}', Pack(1.0, "d", "t")),
    (b'{"type":"Batch","at":2.0,"items":[{"type":"Ended","role":"trainer","rank":1,"incarnation":"ab"},'
     b'{"type":"CheckpointSeen","path":"p","step":7,"segment":0,"digest":"d","fit":"verified","why":"","saved_at":1.0}]}',
     Batch(2.0, (Ended("trainer", 1, "ab"), CheckpointSeen("p", 7, 0, "d", "verified", "", 1.0)))),
    (b'{"type":"Batch","at":2.0,"items":[{"type":"Record","role":"trainer","rank":0,"incarnation":"ab","segment":0,'
     b'"sequence":1,"step":1,"time":2.0,"values":{"loss":0.1},"load":{"layers":1,"loops":1,"experts":2,'
     b'"counts":"eAFjZGBgYAJiAAAYAAQ="}}]}',
     Batch(2.0, (Record("trainer", 0, "ab", 0, 1, 1, 2.0, {"loss": 0.1}, ExpertLoad(1, 1, 2, (1, 2))),))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), GOLDEN, ids=[f"{i}-{type(v).__name__}" for i, (_, v) in enumerate(GOLDEN)])
def test_a_journal_of_version_1_stays_readable(text: bytes, value: Input) -> None:
    """What was written once is read for ever: fields that came later are defaulted, unknown ones ignored."""
    assert decode(b"\0" + text) == value


BAD = {
    "empty": b"",
    "another form": b"\7{}",
    "cut packed": b"\1x\x9c",
    "not JSON": b"\0{",
    "a list": b"\0[]",
    "a NaN literal": b'\0{"type":"Tick","at":NaN}',
    "an unknown type": b'\0{"type":"Later","at":1.0}',
    "no type": b'\0{"at":1.0}',
    "a field missing": b'\0{"type":"Pack","at":1.0}',
    "an unknown spelling": b'\0{"type":"Tick","at":null,"nonfinite":{"/at":"big"}}',
    "a pointer to nowhere": b'\0{"type":"Tick","at":1.0,"nonfinite":{"/x/y":"nan"}}',
    "counts cut short": b'\0{"type":"Batch","at":1.0,"items":[{"type":"Record","load":{"counts":"eAFj"}}]}',
    "too deep": b'\0{"type":"Tick","at":' + b"[" * 100_000,
}


@pytest.mark.parametrize("blob", BAD.values(), ids=BAD.keys())
def test_bytes_that_are_no_input_are_refused(blob: bytes) -> None:
    """Damaged bytes give one kind of error, never a half-read input and never a stack trace of their own."""
    with pytest.raises(CodecError):
        decode(blob)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes"], ids=["object", "set", "bytes"])
def test_what_json_cannot_say_is_refused_by_name(value: object) -> None:
    """An entry with a foreign object in it is a fault of its maker, and the error names the type."""
    with pytest.raises(CodecError, match=type(value).__name__):
        encode_entry(Entry("e1", 1.0, 1, "alert", "s", "firing", "t", {"x": value}))
