import io
import struct
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_folders import model, optimizer, torch

from gyrostat_agent.checkpoints.torchzip import Limits, Saved, Unreadable, records, saved
from gyrostat_agent.checkpoints.verify import nonfinite, scan

FLOATS = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"]
WHOLE = ["int64", "int32", "int16", "int8", "uint8", "bool", "uint16", "uint32", "uint64"]


def written(value: Any, **how: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream, **how)
    return stream.getvalue()


def bad(data: bytes, found: Saved) -> list[str]:
    view = memoryview(data)
    return list(nonfinite(view, found.tensors, scan(view, found.tensors)[1]))


GOOD = written({"model": model(), "optimizer": optimizer()})


def test_the_same_tensors_as_torch_reads() -> None:
    """Name, sizes and bytes of every tensor are those that torch.load gives, and no byte of the file is left out."""
    found, data = saved(memoryview(GOOD)), memoryview(GOOD)
    theirs = torch.load(io.BytesIO(GOOD), weights_only=True)
    flat = {f"model.{name}": each for name, each in theirs["model"].items()}
    flat |= {
        f"optimizer.state.{index}.{name}": each
        for index, state in theirs["optimizer"]["state"].items()
        for name, each in state.items()
    }
    ours = {each.name: data[each.start : each.end] for each in found.tensors if each.name}
    assert {each.name: each.shape for each in found.rebuilt} == {name: tuple(each.shape) for name, each in flat.items()}
    assert ours.keys() == flat.keys()
    for name, each in flat.items():
        assert bytes(ours[name]) == each.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes(), name
    edges = [(each.start, each.end) for each in found.tensors]
    assert edges[0][0] == 0 and edges[-1][1] == len(GOOD)
    assert all(one[1] == other[0] for one, other in pairwise(edges))


@pytest.mark.parametrize("kind", FLOATS)
def test_one_bad_value_of_each_type(kind: str) -> None:
    """NaN is found in every floating-point type that torch saves, and its tensor named; without it all is finite."""
    dtype = getattr(torch, kind)
    for value, count in ((1.0, 0), (float("nan"), 1)):
        tensor = torch.ones(70_000, dtype=torch.float32).to(dtype)
        tensor[69_999] = torch.tensor(value).to(dtype)
        data = written({"w": tensor, "after": torch.ones(3)})
        found = saved(memoryview(data))
        assert found.unread == ""
        assert bad(data, found) == ["1 value of tensor w is not finite"] * count


def test_a_scale_that_is_no_number() -> None:
    """The type of block scales has one pattern that is no number, and it is found."""
    data = written({"s": torch.tensor([1, 255, 3], dtype=torch.uint8).view(torch.float8_e8m0fnu)})
    assert bad(data, saved(memoryview(data))) == ["1 value of tensor s is not finite"]


@pytest.mark.parametrize("kind", WHOLE)
def test_whole_numbers_are_finite(kind: str) -> None:
    """No pattern of bits of a whole number condemns a checkpoint."""
    data = written({"n": torch.full((64,), 255, dtype=torch.uint8).view(getattr(torch, kind)), "b": torch.ones(2)})
    found = saved(memoryview(data))
    assert (bad(data, found), found.unread) == ([], "")


def test_only_what_a_tensor_shows() -> None:
    """A storage's rest, that no tensor shows, need not be finite; what a view or a transpose shows must be."""
    base = torch.arange(12.0)
    base[0] = float("nan")
    data = written(
        {"view": base[2:8], "turned": torch.arange(6.0).reshape(2, 3).t(), "one": base[5], "none": base[3:3]}
    )
    found = saved(memoryview(data))
    assert (bad(data, found), found.unread) == ([], "")
    assert bad(written(base[0:1]), saved(memoryview(written(base[0:1])))) == ["1 value of tensor  is not finite"]


def test_tied_and_wrapped() -> None:
    """Tied weights, parameters and buffers of a module's state are one storage, checked once, under its first name."""
    tied = torch.nn.Parameter(torch.tensor([1.0, float("inf")]))
    data = written(OrderedDict(embed=tied, head=tied))
    assert bad(data, saved(memoryview(data))) == ["1 value of tensor embed is not finite"]


def test_a_stretch_of_a_file() -> None:
    """A stream at an odd place of a file is read as one that is alone."""
    around = memoryview(b"abc" + GOOD + b"behind")
    found = saved(around[3 : 3 + len(GOOD)])
    assert found.tensors == saved(memoryview(GOOD)).tensors
    assert list(nonfinite(around[3:-6], found.tensors, scan(around[3:-6], found.tensors)[1])) == []


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param({"a": torch.ones(2, device="meta")}, "a is a tensor without values", id="meta"),
        pytest.param({"a": np.ones(3)}, "is an array of numpy's", id="numpy"),
        pytest.param({"a": io.BytesIO(b"abc")}, "holds bytes that are not looked into", id="bytes"),
        pytest.param({"a": torch.ones(3).to(torch.float8_e4m3fnuz)}, "has a type whose numbers cannot be", id="dtype"),
        pytest.param(torch.ones(3).untyped_storage(), "belongs to no tensor", id="storage"),
    ],
)
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_what_cannot_be_looked_into(value: Any, why: str) -> None:
    """What holds numbers that this reader does not know is said to be unread, not called good or bad."""
    try:
        said = saved(memoryview(written(value))).unread
    except Unreadable as error:
        said = str(error)
    assert why in said


def test_the_old_format_may_be_good() -> None:
    """A file of before torch 1.6 cannot be read without unpickling, and is not called damaged."""
    with pytest.raises(Unreadable, match="old format"):
        saved(memoryview(written({"a": torch.ones(3)}, _use_new_zipfile_serialization=False)))


def test_without_sums() -> None:
    """A file whose sums torch was told not to compute is read."""
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        data = written({"a": torch.ones(3)})
    finally:
        torch.serialization.set_crc32_options(before)
    assert bad(data, saved(memoryview(data))) == []


def repacked(change: Callable[[dict[str, bytes]], None] = lambda _: None, method: int = zipfile.ZIP_STORED) -> bytes:
    """The good file's records, changed, in an archive of the standard library's."""
    source = zipfile.ZipFile(io.BytesIO(GOOD))
    parts = {name: source.read(name) for name in source.namelist()}
    change(parts)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return stream.getvalue()


def test_another_writer_of_archives() -> None:
    """An archive that is laid out in another way, with the same records, holds the same tensors."""
    assert saved(memoryview(repacked())).rebuilt == saved(memoryview(GOOD)).rebuilt


def twice() -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(stream, "w") as archive:
            for data in (b"1", b"2"):
                archive.writestr("a/data.pkl", data)
    return stream.getvalue()


def commented() -> bytes:
    stream = io.BytesIO(GOOD)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.comment = b"hello"
    return stream.getvalue()


def bent(mark: bytes, place: int, value: bytes, nth: int = 0) -> bytes:
    """The good file with ``value`` ``place`` bytes behind the ``nth`` occurrence of ``mark``."""
    at = -1
    for _ in range(nth + 1):
        at = GOOD.index(mark, at + 1)
    return GOOD[: at + place] + value + GOOD[at + place + len(value) :]


ENTRY, END, END64, LOCATOR, HERE = b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x03\x04"


def offset_of(nth: int) -> int:
    at = -1
    for _ in range(nth + 1):
        at = GOOD.index(ENTRY, at + 1)
    return int.from_bytes(GOOD[at + 42 : at + 46], "little")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"", "has no end", id="empty"),
        pytest.param(b"PK\x03\x04" + bytes(100), "has no end", id="no-end"),
        pytest.param(GOOD[:-1], "has no end", id="cut"),
        pytest.param(GOOD + b"x", "has no end", id="longer"),
        pytest.param(commented(), "has no end", id="comment"),
        pytest.param(twice(), "two records are called 'a/data.pkl'", id="twice"),
        pytest.param(repacked(method=zipfile.ZIP_DEFLATED), "compressed", id="compressed"),
        pytest.param(repacked(lambda parts: parts.pop("archive/data.pkl")), "without a data.pkl", id="no-pickle"),
        pytest.param(
            repacked(lambda parts: parts.pop("archive/data/0")), "storage 0, which is missing", id="no-storage"
        ),
        pytest.param(
            repacked(lambda parts: parts.update({"archive/data/0": b""})), "storage 0 has 0 bytes", id="short"
        ),
        pytest.param(repacked(lambda parts: parts.update({"b/x": b""})), "without a data.pkl", id="two-archives"),
        pytest.param(bent(ENTRY, 8, b"\x01"), "encrypted", id="encrypted"),
        pytest.param(bent(ENTRY, 20, b"\x01"), "two sizes", id="two-sizes"),
        pytest.param(bent(ENTRY, 42, b"\x01"), "not where the directory says", id="place"),
        pytest.param(bent(ENTRY, 42, b"\xff" * 4), "does not say its size", id="no-zip64-field"),
        pytest.param(bent(ENTRY, 42, struct.pack("<I", offset_of(5)), 4), "another one where it lies", id="other"),
        pytest.param(bent(ENTRY, 20, b"\xff\xff\xff\x7f" * 2), "behind the beginning of the directory", id="too-long"),
        pytest.param(bent(HERE, 26, b"\xff\xff"), "another one where it lies", id="local-name"),
        pytest.param(bent(END, 10, b"\x09"), "contradict|not as torch writes", id="count"),
        pytest.param(bent(END, 16, b"\x01"), "contradict", id="directory"),
        pytest.param(bent(END64, 48, b"\x01"), "contradict|is said to end", id="directory-64"),
        pytest.param(bent(END64, 40, b"\x01"), "contradict|is said to end", id="size-64"),
        pytest.param(bent(LOCATOR, 8, b"\x01"), "not where it is said to be", id="locator"),
        pytest.param(bent(b"_rebuild_tensor_v2", 0, b"_rebuild_tensor_vX"), "is damaged: CRC-32", id="sum"),
    ],
)
def test_archives_that_lie(data: bytes, why: str) -> None:
    """An archive that says two things, or what is not so, is refused in a sentence."""
    with pytest.raises(ValueError, match=why):
        saved(memoryview(data))


def test_records_that_overlap() -> None:
    """Two entries over the same bytes are refused, whatever they are called."""
    data = bytearray(GOOD)
    at = GOOD.index(ENTRY, GOOD.index(ENTRY) + 1)  # the second entry: made to reach over the third
    named, extra = struct.unpack_from("<2H", data, at + 28)
    assert named and not extra
    size = int.from_bytes(GOOD[at + 24 : at + 28], "little") + 500
    data[at + 20 : at + 28] = struct.pack("<2I", size, size)
    with pytest.raises(ValueError, match="lies over the one before"):
        saved(memoryview(bytes(data)))


def test_many_records() -> None:
    """More records than are read is said to be so."""
    with pytest.raises(Unreadable, match="at most 3 are read"):
        saved(memoryview(GOOD), Limits(records=3))
    assert len(records(memoryview(GOOD), 1000)) > 3


@settings(max_examples=200, deadline=None, database=None)
@given(at=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4))
def test_no_bytes_do_anything_else(at: list[tuple[float, int]]) -> None:
    """Whatever stands in a file, reading it ends with spans inside the file or a ValueError."""
    data = bytearray(GOOD)
    tail = len(GOOD) - 3000  # the directory and what describes it; what is before is storages
    for where, byte in at:
        data[tail + int(where * 3000)] = byte
    try:
        found = saved(memoryview(bytes(data)))
    except ValueError:
        return
    edges = [(each.start, each.end) for each in found.tensors]
    assert edges[0][0] == 0 and edges[-1][1] == len(data)
    assert all(one[1] == other[0] for one, other in pairwise(edges))
