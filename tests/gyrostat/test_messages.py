"""Messages: they say the same on both sides, and what cannot be believed is refused in words."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gyrostat.wire import Ack, Directive, Exit, Hello, KnobChange, KnobState, MessageError, Resume
from gyrostat.wire.messages import MAX_MESSAGE

KNOB = KnobState("lr_scale", 0.5, 0.01, 1.0, 2.0, None, "x", "scales the learning rate")
MESSAGES: dict[str, Any] = {
    "hello": Hello("run", "trainer", 3, 8, "0123abcd", 2, 4711, (KNOB,), ("rollback",), "/ckpt", 12),
    "directive": Directive(
        12, "run", "trainer", "0123abcd", 2, "act-1", 1.7e9, 300, (KnobChange("lr_scale", 1.0, 0.5, 11),), "rollback",
        {"checkpoint": "/ckpt/9"}, "loss is NaN",
    ),
    "ack": Ack(12, "act-1", Ack.APPLIED, 41, "", {"lr_scale": 0.5}, {"step": 30}),
    "exit": Exit("trainer", 0, 4711, -9, False),
    "resume": Resume(13, "run", "/ckpt/9", "xxh3_128:ab", 9, 1.7e9, {"lr_scale": 0.5}, (7, 8), "rolled back"),
}  # fmt: skip
DECODERS: dict[str, Callable[[bytes], Any]] = {
    "hello": Hello.decode,
    "directive": Directive.decode,
    "ack": Ack.decode,
    "exit": Exit.decode,
    "resume": Resume.decode,
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_reads_back_as_it_was_said(name: str) -> None:
    """Both sides read the same message from the same bytes."""
    assert DECODERS[name](MESSAGES[name].encode()) == MESSAGES[name]


def test_the_same_directive_gives_the_same_bytes() -> None:
    """A directive written again after a crash is byte for byte the file that may be there already."""
    directive = MESSAGES["directive"]
    assert directive.encode() == Directive.decode(directive.encode()).encode()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=["nan", "inf", "-inf"])
def test_numbers_that_are_not_finite_survive_json(value: float) -> None:
    """A knob that reads NaN says NaN, in JSON that any reader takes."""
    ack = Ack(1, "a", Ack.APPLIED, 2, "", {"clip": 0.5, "lr": value})
    hello = Hello("r", "trainer", 0, 1, "ab", knobs=(KNOB._replace(value=value),))
    for body in (ack.encode(), hello.encode()):
        json.loads(body, parse_constant=pytest.fail)
    assert repr(Ack.decode(ack.encode()).values) == repr(ack.values)
    assert repr(Hello.decode(hello.encode()).knobs[0].value) == repr(value)


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b'{"number": NaN}', "NaN is not JSON"),
        (b'{"number": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[1]", "must be a mapping"),
        (b" " * (MAX_MESSAGE + 1), f"{MAX_MESSAGE} is the most"),
        (b"{}", "not a whole number|'' , not applied|not applied"),
    ],
    ids=["empty", "no text", "deep", "NaN literal", "endless number", "list", "too big", "nothing said"],
)
def test_what_cannot_be_believed_is_refused_in_words(name: str, body: bytes, says: str) -> None:
    """No bytes in a message's place do more than raise MessageError, which names the message."""
    with pytest.raises(MessageError, match=says) as caught:
        DECODERS[name](body)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("number", True, "'number' is 'True', not a whole number"),
        ("number", 2**63, "not a whole number"),
        ("number", 1.5, "not a whole number"),
        ("run", 3, "'run' is '3', not text"),
        ("expires_at", "nan", "'expires_at' is nan, not a finite number"),
        ("expires_at", None, "'expires_at' is 'None', not a number"),
        ("knobs", {}, "'knobs' must be a list"),
        ("knobs", ["lr"], "'knobs' must be a list of mappings"),
        ("knobs", [{"name": "lr", "expect": 1, "value": 10**400, "undo_of": 0}], "'value' is '1000"),
        ("arguments", [], "'arguments' must be a mapping"),
    ],
)
def test_a_wrong_field_is_named(key: str, value: object, says: str) -> None:
    """The reason says which field is wrong and what stood there."""
    raw = {**json.loads(MESSAGES["directive"].encode()), key: value}
    with pytest.raises(MessageError, match=says):
        Directive.decode(json.dumps(raw).encode())


def test_an_answer_is_one_of_three() -> None:
    """An Ack that is neither applied, refused nor failed is not read as success."""
    raw = {**json.loads(MESSAGES["ack"].encode()), "result": "done"}
    with pytest.raises(MessageError, match="'result' is 'done', not applied, refused or failed"):
        Ack.decode(json.dumps(raw).encode())


def test_text_that_cannot_be_stored_is_made_so() -> None:
    """Half a surrogate in a reason would stop a database; it becomes a question mark."""
    body = MESSAGES["ack"]._replace(reason="a\ud800b").encode()
    assert Ack.decode(body).reason == "a?b"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("name", MESSAGES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_field_of_any_shape_does_more_than_raise_message_error(name: str, data: st.DataObject) -> None:
    """Whatever stands in whichever field, the reader gets the message or a MessageError."""
    raw = json.loads(MESSAGES[name].encode())
    for key in data.draw(st.lists(st.sampled_from(sorted(raw)), max_size=3)):
        raw[key] = data.draw(JSON)
    try:
        DECODERS[name](json.dumps(raw).encode())
    except MessageError as error:
        assert name in str(error)
