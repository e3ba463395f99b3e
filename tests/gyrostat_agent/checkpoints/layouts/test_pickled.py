import io
import os
import pickle
import struct
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_folders import model, optimizer, torch

from gyrostat_agent.checkpoints.pickled import Made, Named, Pairs, PickleLimits, Unreadable, field_of, read
from gyrostat_agent.checkpoints.rebuilt import rebuilt

LIMITS = PickleLimits()
PLAIN: dict[str, Any] = {
    "none": None, "yes": True, "small": 7, "two": 700, "four": -70_000, "big": 2**70, "minus": -(2**90), "float": 0.1,
    "text": "höhe\u2028", "raw": b"\x00\xff", "list": [1, [2, []]], "tuple": (1, (2,), (3, 4), (5, 6, 7), (1, 2, 3, 4)),
    "nested": {"a": {"b": 1}},
}  # fmt: skip


def plain(value: Any) -> Any:
    """Pairs as the dict that they are."""
    if isinstance(value, Pairs):
        return {key: plain(each) for key, each in value}
    return [plain(each) for each in value] if type(value) is list else value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values(protocol: int) -> None:
    """What a trainer keeps beside tensors reads as it was written, in every protocol."""
    value = {**PLAIN, "raw": 0} if protocol == 2 else PLAIN  # protocol 2 writes bytes as a call
    assert plain(read(pickle.dumps(value, protocol), LIMITS)) == value


class Hostile:
    def __init__(self, maker: Any, *args: Any) -> None:
        self.said = maker, args

    def __reduce__(self) -> Any:
        return self.said


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    ("maker", "args"),
    [
        pytest.param(os.system, ("touch {}",), id="os.system"),
        pytest.param(eval, ("open('{}', 'w')",), id="eval"),
        pytest.param(exec, ("open('{}', 'w')",), id="exec"),
        pytest.param(io.open, ("{}", "w"), id="open"),
        pytest.param(__import__, ("{}",), id="import"),
    ],
)
def test_nothing_is_called(tmp_path: Path, maker: Any, args: tuple[str, ...], protocol: int) -> None:
    """A pickle made to run something is refused by the name of that, and nothing runs."""
    mark = tmp_path / "ran"
    body = pickle.dumps({"a": Hostile(maker, *(each.format(mark) for each in args))}, protocol)
    with pytest.raises(ValueError, match=r"^opcode (STACK_)?GLOBAL at byte \d+ of the pickle: it names \w+\.\w+"):
        read(body, LIMITS)
    assert not mark.exists()


def test_an_unknown_class_may_be_good() -> None:
    """A class that is not on the list is not called hostile: what holds it is attested, not unfit."""
    with pytest.raises(Unreadable, match=r"it names mylib\.State, which is not on the list"):
        read(b"\x80\x02cmylib\nState\n.", LIMITS)


def test_a_class_is_never_imported() -> None:
    """A global stays a pair of names, whether there is such a thing or not."""
    found = read(b"\x80\x02cmegatron.nowhere\nGone\n)R.", LIMITS)
    assert isinstance(found, Made)
    assert found.maker == Named("megatron.nowhere", "Gone")


def doubled(times: int) -> bytes:
    """A tuple of two of the tuple before, ``times`` over: 2**times leaves in a few bytes."""
    return b"\x80\x04)\x94" + b"".join(b"h" + bytes([n]) + b"h" + bytes([n]) + b"\x86\x94" for n in range(times))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(doubled(200) + b".", id="value"),
        pytest.param(b"\x80\x04}" + doubled(90)[2:] + b"Ns.", id="key"),
        pytest.param(b"\x80\x04\x8f(" + doubled(90)[2:] + b"\x90.", id="in-a-set"),
    ],
)
def test_laughs_cost_nothing(body: bytes) -> None:
    """A value that doubles itself, as a key or in a set too, takes neither time nor room."""
    begin = time.process_time()
    with suppress(ValueError):
        rebuilt(read(body, LIMITS))
    assert time.process_time() - begin < 2


def test_a_list_that_holds_itself() -> None:
    """A circle ends."""
    assert rebuilt(read(b"\x80\x04]\x94h\x00a.", LIMITS)).tensors == []


DEEP_LIST = b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b"."


def test_deep_values_are_refused() -> None:
    """Nesting without end is a sentence, not a crash of the stack."""
    with pytest.raises(Unreadable, match="nested more than 100 deep"):
        rebuilt(read(DEEP_LIST, LIMITS))


def tensor(
    offset: bytes = b"K\x00", size: bytes = b"K\x04\x85", stride: bytes = b"K\x01\x85", numel: bytes = b"K\x04"
) -> bytes:
    """A pickled tensor of four, with a part of it replaced."""
    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + numel + b"tQ"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + offset + size + stride + b"\x89)tR."


def test_the_tensor_that_is_bent_below_is_good() -> None:
    """The pickle that the hostile cases change is read as it stands."""
    (found,) = rebuilt(read(tensor(), LIMITS)).tensors
    assert (found.dtype, found.shape, found.start, found.end, found.bytes) == ("F32", (4,), 0, 16, 16)


MINUS = b"\x8a\x01\xff"
BENT = [
    pytest.param(b"", "ends there", id="empty"),
    pytest.param(b"\x80\x02", "ends there", id="no-stop"),
    pytest.param(b"\x80\x02N", "ends there", id="no-stop-2"),
    pytest.param(b"\x80\x02NN.", "does not end there with one value", id="two-values"),
    pytest.param(b"\x80\x02N.N", "does not end there", id="more-behind"),
    pytest.param(b"\x80\x02(N.", "does not end there", id="open-mark"),
    pytest.param(b"\x80\x02\xffN.", "opcode 0xff at byte 2 of the pickle: not an opcode", id="no-opcode"),
    pytest.param(b"\x80\x02I5\n.", "opcode 0x49 at byte 2", id="protocol-0-number"),
    pytest.param(b"\x80\x02Psomething\n.", "opcode 0x50 at byte 2", id="text-id"),
    pytest.param(b"\x80\x09N.", "protocol 9", id="protocol-9"),
    pytest.param(b"\x80\x02h\x05.", "nothing is remembered", id="get-unknown"),
    pytest.param(b"\x80\x02q\x05.", "takes what was not put", id="put-nothing"),
    pytest.param(b"\x80\x02N\x86.", "takes what was not put", id="tuple-of-too-few"),
    pytest.param(b"\x80\x02}Ns.", "takes what was not put", id="value-without-key"),
    pytest.param(b"\x80\x02}(Nu.", "a key without a value", id="odd-items"),
    pytest.param(b"\x80\x02]N(NNu.", "into what is no dict", id="items-of-a-list"),
    pytest.param(b"\x80\x02}Na.", "into what is no list", id="element-of-a-dict"),
    pytest.param(b"\x80\x02]}b.", "a state is given to what has none", id="state-of-a-list"),
    pytest.param(b"\x80\x02]}R.", "is no global", id="call-of-a-list"),
    pytest.param(b"\x80\x02NQ.", "no storage of torch's", id="id"),
    pytest.param(b"\x80\x02NN\x93.", "not named by two strings", id="global-of-none"),
    pytest.param(b"\x80\x02c" + b"a" * 5000 + b"\nb\n.", "opcode GLOBAL", id="long-global"),
    pytest.param(b"\x80\x02\x8b" + struct.pack("<i", -1) + b".", "-1 bytes are said to follow", id="negative-long"),
    pytest.param(b"\x80\x02T" + struct.pack("<i", -5) + b".", "-5 bytes are said to follow", id="negative-string"),
    pytest.param(b"\x80\x02X" + struct.pack("<I", 999) + b"ab.", "999 bytes are said to follow", id="beyond-the-end"),
    pytest.param(b"\x80\x02\x8e" + b"\xff" * 8 + b"ab.", "at most", id="endless-bytes"),
    pytest.param(b"\x80\x02\x8a\xff" + b"\x01" * 9 + b".", "255 bytes are said to follow", id="short-number"),
    pytest.param(b"\x80\x02X\x01\x00\x00\x00\xff.", "opcode BINUNICODE", id="no-text"),
    pytest.param(b"\x80\x02" + b"(" * 1000 + b".", "nested more than 500 deep", id="marks"),
    pytest.param(tensor(numel=MINUS), "not a whole number of at least 0", id="negative-storage"),
    pytest.param(tensor(numel=b"\x88"), "not a whole number", id="true-storage"),
    pytest.param(tensor(offset=MINUS), "not a whole number of at least 0", id="negative-offset"),
    pytest.param(tensor(size=MINUS + b"\x85"), "not a whole number of at least 0", id="negative-size"),
    pytest.param(tensor(stride=MINUS + b"\x85"), "not a whole number of at least 0", id="negative-stride"),
    pytest.param(tensor(stride=b")"), "1 sizes and 0 strides", id="no-stride"),
    pytest.param(tensor(size=b"K\x05\x85"), "ends at byte 20 of a storage of 16", id="too-large"),
    pytest.param(tensor(offset=b"K\x01"), "ends at byte 20 of a storage of 16", id="offset-too-large"),
    pytest.param(tensor(size=b"N"), "a tensor whose size is not a tuple", id="no-size"),
]


@pytest.mark.parametrize(("body", "why"), BENT)
def test_bent_pickles(body: bytes, why: str) -> None:
    """What no pickler writes is refused in a sentence."""
    with pytest.raises(ValueError, match=why):
        rebuilt(read(body, LIMITS))


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        pytest.param(PickleLimits(bytes=50), "at most 50 are read", id="bytes"),
        pytest.param(PickleLimits(opcodes=20), "more than 20 opcodes", id="opcodes"),
        pytest.param(PickleLimits(memo=3), "more than 3 values", id="memo"),
        pytest.param(PickleLimits(text=4), "at most 4 are read", id="text"),
        pytest.param(PickleLimits(number=2), "at most 2 are read", id="number"),
    ],
)
def test_bounds(limits: PickleLimits, why: str) -> None:
    """What is larger than is read is said to be so, and is not called damaged."""
    with pytest.raises(Unreadable, match=why):
        read(pickle.dumps(PLAIN, 4), limits)


@settings(max_examples=200, deadline=None, database=None)
@given(
    at=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6),
    cut=st.floats(0, 1),
)
def test_no_bytes_do_anything_else(at: list[tuple[float, int]], cut: float) -> None:
    """Whatever stands in a pickle, reading it ends with a value or a ValueError."""
    body = bytearray(BODY)
    for where, byte in at:
        body[int(where * len(body))] = byte
    try:
        rebuilt(read(bytes(body[: int(len(body) * min(1.0, cut + 0.5))]), LIMITS))
    except ValueError as error:
        assert len(str(error)) < 500


def body_of(value: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return zipfile.ZipFile(stream).read("archive/data.pkl")


BODY = body_of({"model": model(), "optimizer": optimizer()})


def test_fields() -> None:
    """A field is found by its name in a dict, and in the state of an object; the last of two counts, as in a dict."""
    assert field_of(read(b"\x80\x02}(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00aK\x02u.", LIMITS), "a") == 2
    assert field_of(read(BODY, LIMITS), "nothing") is None
    assert field_of(7, "a") is None
