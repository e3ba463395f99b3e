import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from checkpoint_folders import contents, digest_of, floats, packed, written
from hypothesis import given, settings
from hypothesis import strategies as st

from gyrostat_agent.checkpoints.verify import verify

NAN = {
    "F64": struct.pack("<d", float("nan")), "F32": struct.pack("<f", float("nan")),
    "C64": struct.pack("<ff", 0.0, float("nan")), "F16": b"\x01\x7c", "BF16": b"\x81\x7f",
    "F8_E4M3": b"\x7f", "F8_E5M2": b"\x7d", "F8_E8M0": b"\xff",
}  # fmt: skip
NEGATIVE_NAN = {"F16": b"\x01\xfc", "BF16": b"\x81\xff", "F8_E4M3": b"\xff", "F8_E5M2": b"\xfd"}
INF = {
    "F64": struct.pack("<d", float("inf")), "F32": struct.pack("<f", float("-inf")),
    "F16": b"\x00\x7c", "BF16": b"\x80\x7f", "F8_E5M2": b"\x7c",
}  # fmt: skip
NEGATIVE_INF = {"F64": struct.pack("<d", float("-inf")), "F16": b"\x00\xfc", "BF16": b"\x80\xff", "F8_E5M2": b"\xfc"}
LARGEST = {
    "F64": struct.pack("<d", 1.7e308), "F32": struct.pack("<f", -3.4e38), "F16": b"\xff\x7b", "BF16": b"\x7f\xff",
    "F8_E4M3": b"\xfe", "F8_E5M2": b"\xfb", "F8_E8M0": b"\xfe", "I64": b"\xff" * 8,
}  # fmt: skip
CASES = [
    pytest.param(dtype, value, id=f"{dtype}-{kind}")
    for kind, values in {"nan": NAN, "-nan": NEGATIVE_NAN, "inf": INF, "-inf": NEGATIVE_INF}.items()
    for dtype, value in values.items()
]


def spoilt(root: Path, dtype: str, value: bytes, places: list[int]) -> Path:
    """A checkpoint with ``value`` at ``places`` of tensor w, which is 700 KiB long and between two others."""
    data = bytearray(700 << 10)
    for place in places:
        data[place * len(value) : (place + 1) * len(value)] = value
    model = {"before": ("F32", floats(5)), "w": (dtype, bytes(data)), "after": ("F32", floats(5))}
    return written(root, files={**contents(), "model.safetensors": packed(model)})


def test_good_checkpoint(tmp_path: Path) -> None:
    """A whole checkpoint is verified, and its manifest's word is handed on."""
    folder = written(tmp_path)
    found = verify(str(folder))
    assert (found.fit, found.why, found.path) == ("verified", "", str(folder))
    assert (found.step, found.segment, found.last_directive, found.data_cursor) == (20, 1, 7, 320)
    assert (found.saved_at, found.knobs) == (1.75e9, {"lr": 0.001})
    assert found.digest == digest_of((folder / "manifest.json").read_bytes())


def test_reference_trainer_writes_what_is_read_here(tmp_path: Path) -> None:
    """What the real trainer's writer leaves is verified, with the digest that its directives are to name."""
    torch = pytest.importorskip("torch", reason="the reference trainer needs torch")
    from gyrostat_reference.checkpoint import Checkpoint
    from gyrostat_reference.data import Place
    from gyrostat_reference.estimates import Estimates
    from gyrostat_reference.faults import Fuse
    from gyrostat_reference.manifest import Manifest
    from gyrostat_reference.manifest import digest_of as theirs
    from gyrostat_reference.running import Running
    from gyrostat_reference.state import TrainingState
    from gyrostat_reference.writer import CheckpointWriter

    weights = {"a": torch.ones(3, 2), "b": torch.zeros(())}
    manifest = Manifest(4, 0, 1, 2.5, Place(5, 6, frozenset()), {"lr": 0.1}, {})
    writer = CheckpointWriter(tmp_path, 3, Fuse())
    folder = writer.begin(Checkpoint(manifest, TrainingState(weights, {}), (Running(b"\1", Estimates()),)))
    writer.wait()
    found = verify(str(folder))
    assert (found.fit, found.why, found.step) == ("verified", "", 4)
    assert folder is not None and found.digest == theirs((folder / "manifest.json").read_bytes())


@pytest.mark.parametrize(("dtype", "value"), CASES)
def test_one_value_that_is_not_finite(tmp_path: Path, dtype: str, value: bytes) -> None:
    """One bad value, in the last place of the last block, is found and its tensor named."""
    found = verify(str(spoilt(tmp_path, dtype, value, [(700 << 10) // len(value) - 1])))
    assert (found.fit, found.why) == ("unfit", "model.safetensors: 1 value of tensor w is not finite")
    assert found.step == 20


@pytest.mark.parametrize("dtype", LARGEST)
def test_largest_finite_values_are_finite(tmp_path: Path, dtype: str) -> None:
    """Values whose squares overflow, and integers of any pattern, condemn no checkpoint."""
    found = verify(str(spoilt(tmp_path, dtype, LARGEST[dtype], [0, 1, 2, 80_000])))
    assert (found.fit, found.why) == ("verified", "")


def test_all_bad_values_are_counted(tmp_path: Path) -> None:
    """The count goes over blocks and over tensors that share a block."""
    folder = spoilt(tmp_path, "F32", NAN["F32"], [0, 65_536, 179_199])
    assert verify(str(folder)).why == "model.safetensors: 3 values of tensor w are not finite"
    both = {"a": ("F32", NAN["F32"]), "empty": ("F32", b""), "b": ("F32", floats(3) + INF["F32"] * 2)}
    folder = written(tmp_path, 21, {**contents(), "model.safetensors": packed(both)})
    assert verify(str(folder)).why == (
        "model.safetensors: 1 value of tensor a is not finite; "
        "model.safetensors: 2 values of tensor b are not finite"
    )  # fmt: skip


@settings(max_examples=150, deadline=None, database=None)
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), name=st.sampled_from(sorted(contents())))
def test_flipped_bit(tmp_path_factory: pytest.TempPathFactory, where: float, bit: int, name: str) -> None:
    """One flipped bit anywhere in a file is found, whatever number it makes."""
    root = tmp_path_factory.mktemp("flip")
    folder = written(root)
    data = bytearray((folder / name).read_bytes())
    data[int(where * len(data))] ^= 1 << bit
    (folder / name).write_bytes(data)
    found = verify(str(folder))
    shutil.rmtree(root)
    assert found.fit == "unfit"
    assert f"{name}: digest differs: written xxh3_128:" in found.why


@settings(max_examples=150, deadline=None, database=None)
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_flipped_bit_of_the_manifest(tmp_path_factory: pytest.TempPathFactory, where: float, bit: int) -> None:
    """A manifest with a flipped bit is unfit, or at least has another digest than the one that was certified."""
    root = tmp_path_factory.mktemp("flip")
    folder = written(root)
    body = bytearray((folder / "manifest.json").read_bytes())
    before = digest_of(bytes(body))
    body[int(where * len(body))] ^= 1 << bit
    (folder / "manifest.json").write_bytes(body)
    found = verify(str(folder))
    shutil.rmtree(root)
    assert found.fit == "unfit" or found.digest != before


def lose(folder: Path) -> None:
    (folder / "state.json").unlink()


def cut(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 1000)


def lengthen(folder: Path) -> None:
    with open(folder / "model.safetensors", "ab") as file:
        file.write(b"more")


def link(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "elsewhere")
    (folder / "model.safetensors").symlink_to(folder.parent / "elsewhere")


def pipe(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")


def directory(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()


def empty(folder: Path) -> None:
    shutil.rmtree(folder)


def link_folder(folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(folder.parent / "elsewhere")


SIZE = len(contents()["model.safetensors"])


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        pytest.param(lose, "state.json is missing", id="missing"),
        pytest.param(cut, f"model.safetensors is truncated: 1000 of {SIZE} bytes", id="truncated"),
        pytest.param(lengthen, f"is longer than it was written: {SIZE + 4} bytes, not {SIZE}", id="longer"),
        pytest.param(link, "model.safetensors is a link; a link is not followed", id="link"),
        pytest.param(pipe, "model.safetensors is not a regular file", id="fifo"),
        pytest.param(directory, "model.safetensors is not a regular file", id="directory"),
        pytest.param(empty, "gone", id="gone"),
        pytest.param(link_folder, "not a folder; a link is not followed", id="folder-link"),
    ],
)  # fmt: skip
def test_spoilt_folder(tmp_path: Path, spoil: Callable[[Path], None], why: str) -> None:
    """What is missing, cut or no plain file makes it unfit, in words, and nothing waits for a pipe."""
    folder = written(tmp_path)
    spoil(folder)
    found = verify(str(folder))
    assert (found.fit, found.step) == ("unfit", 20)
    assert found.why.endswith(why)


def test_missing_shards_are_told_together(tmp_path: Path) -> None:
    """Of many problems the first three are told, and how many more there are."""
    shards = {f"model-{n:05d}-of-00006.safetensors": packed({"w": ("F32", floats(4, n))}) for n in range(1, 7)}
    folder = written(tmp_path, files=shards)
    for name in list(shards)[1:]:
        (folder / name).unlink()
    why = verify(str(folder)).why
    assert why.startswith("model-00002-of-00006.safetensors is missing; ") and why.endswith("; and 2 more")


def header(**entry: object) -> bytes:
    """A file of one tensor w, 8 bytes, whose header says ``entry`` instead."""
    said = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **entry}
    body = json.dumps({"w": said}).encode()
    return struct.pack("<Q", len(body)) + body + bytes(8)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        pytest.param(b"", "the header is said to have 0 bytes", id="empty"),
        pytest.param(b"\xff" * 64, "the header is said to have 18446744073709551615 bytes", id="endless-header"),
        pytest.param(struct.pack("<Q", 5000) + b"[" * 5000, "recursion", id="nested"),
        pytest.param(struct.pack("<Q", 2) + b"[]", "the header is not a JSON object", id="list"),
        pytest.param(header(dtype="F4"), "tensor w has the type F4, whose numbers cannot be checked", id="dtype"),
        pytest.param(header(shape=[3]), "tensor w has 8 bytes, which does not fit F32 [3]", id="shape"),
        pytest.param(header(shape=[-2]), "the header's entry for tensor w is malformed", id="negative"),
        pytest.param(header(data_offsets=[4, 12]), "tensor w begins at byte", id="hole"),
        pytest.param(header(data_offsets=[0, 4], shape=[1]), "the tensors end at byte", id="unclaimed"),
        pytest.param(header(data_offsets=[0, 16], shape=[4]), "the tensors end at byte", id="beyond"),
        pytest.param(header(data_offsets=[0, True]), "the header's entry for tensor w is malformed", id="bool"),
        pytest.param(header(dtype=["F32"]), "tensor w has the type ['F32']", id="dtype-list"),
    ],
)
def test_malformed_tensors(tmp_path: Path, model: bytes, why: str) -> None:
    """A file that is as it was written, but whose tensors cannot be told apart, is unfit."""
    found = verify(str(written(tmp_path, files={**contents(), "model.safetensors": model})))
    assert found.fit == "unfit"
    assert why in found.why


@pytest.mark.parametrize("body", [b'{"a": NaN}', b'{"a": 1e999}', b"{", b"[" * 100_000], ids=str)
def test_state_that_is_not_finite(tmp_path: Path, body: bytes) -> None:
    """A running average that is not finite is found too."""
    found = verify(str(written(tmp_path, files={**contents(), "state.json": body})))
    assert found.fit == "unfit"
    assert found.why.startswith("state.json: ")


def test_pickles_are_attested(tmp_path: Path) -> None:
    """A file that could only be read by unpickling is compared with its digest and said to be unread."""
    found = verify(str(written(tmp_path, files={**contents(), "rng.pt": b"\x80\x04N."})))
    assert (found.fit, found.why) == ("attested", "rng.pt: as it was written, but its numbers cannot be checked")


def test_thousands_of_small_tensors(tmp_path: Path) -> None:
    """Neighbours are checked together, and the right one of them is named."""
    tensors = {f"expert.{n}": ("F32", floats(7, n)) for n in range(3000)}
    tensors["expert.1234"] = ("F32", floats(6) + NAN["F32"])
    found = verify(str(written(tmp_path, files={**contents(), "model.safetensors": packed(tensors)})))
    assert found.why == "model.safetensors: 1 value of tensor expert.1234 is not finite"


@settings(max_examples=60, deadline=None, database=None)
@given(
    sizes=st.lists(st.tuples(st.sampled_from(["F32", "BF16", "I64"]), st.integers(0, 3)), max_size=6),
    bad=st.sets(st.integers(0, 5)),
)
def test_scan_agrees_with_looking_at_every_value(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[tuple[str, int]], bad: set[int]
) -> None:
    """Whatever lies beside whatever, exactly the tensors with a bad value are named."""
    tensors, expected = {}, []
    for index, (dtype, size) in enumerate(sizes):
        data = np.ones(size * 40_000 + 1, {"F32": "<f4", "BF16": "<u2", "I64": "<i8"}[dtype])
        if index in bad and dtype != "I64":
            data[-1] = {"F32": np.nan, "BF16": 0xFF80}[dtype]
            expected.append(f"1 value of tensor t{index} is not finite")
        tensors[f"t{index}"] = (dtype, data.tobytes())
    root = tmp_path_factory.mktemp("scan")
    found = verify(str(written(root, files={"model.safetensors": packed(tensors)})))
    shutil.rmtree(root)
    assert found.fit == ("unfit" if expected else "verified")
    assert found.why.count("not finite") == min(3, len(expected))
    assert all(sentence in found.why for sentence in expected[:3])
