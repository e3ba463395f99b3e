"""EventFile: every number of a file is read once and as it was written, while the file grows."""

import math
import os
import struct
from pathlib import Path

import pytest
from eventbytes import BEGINNING, event, field, framed, run, scalar, simple, tensor

from gyrostat_agent.sources.eventfile import EventFile, Scalar
from gyrostat_agent.sources.logs.said import Told

DATA = Path(__file__).parent / "data"
SAMPLE = DATA / "trl-grpo-qwen3_moe.tfevents"
FLOAT, SCALAR = b"\x08\x01", field(2, b"")  # a tensor's type; a shape of rank 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the tests write."""
    return tmp_path / "events.out.tfevents.1800000000.host.1.0"


def all_rows(file: EventFile) -> list[Scalar]:
    rows = file.rows()
    while not file.at_end:
        rows += file.rows()
    return rows


def all_told(file: EventFile) -> list[Told]:
    told = file.told()
    while not file.at_end:
        told += file.told()
    return told


def written(path: Path, data: bytes) -> EventFile:
    path.write_bytes(data)
    return EventFile(str(path))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-45, 3.4028234663852886e38])
def test_a_number_comes_as_it_was_written(path: Path, number: float) -> None:
    """NaN and infinity above all, at the first step and at later ones."""
    rows = all_rows(written(path, BEGINNING + b"".join(scalar(step, "loss", number) for step in range(4))))
    assert [row[1:3] for row in rows] == [(step, "loss") for step in range(4)]
    assert all(struct.pack("<f", value) == struct.pack("<f", number) for *_, value in rows)


@pytest.mark.parametrize("step", [0, 1, 127, 128, 16383, 16384, 2**31, 2**53 + 1, 2**63 - 1, -1, -(2**63)])
def test_a_step_comes_as_it_was_written(path: Path, step: int) -> None:
    """Left out, short, long, negative: an int64."""
    rows = all_rows(written(path, scalar(step, "a", 1.0) + scalar(step, "b", 2.0) + scalar(7, "a", 3.0)))
    assert [row[1:] for row in rows] == [(step, "a", 1.0), (step, "b", 2.0), (7, "a", 3.0)]


@pytest.mark.parametrize(
    ("inner", "number"),
    [
        (FLOAT + SCALAR + field(5, struct.pack("<f", 0.5)), 0.5),
        (FLOAT + field(5, struct.pack("<f", math.nan)), math.nan),
        (FLOAT + SCALAR + b"\x2d" + struct.pack("<f", 0.25), 0.25),
        (b"\x08\x02" + SCALAR + field(6, struct.pack("<d", 0.1)), 0.1),
        (b"\x08\x02" + SCALAR + b"\x31" + struct.pack("<d", 0.1), 0.1),
        (FLOAT + SCALAR + field(4, struct.pack("<f", 1.5)), 1.5),
        (b"\x08\x02" + SCALAR + field(4, struct.pack("<d", 1.1)), 1.1),
        (b"\x08\x07" + SCALAR + field(8, b"words"), None),
        (FLOAT + field(2, field(2, b"\x08\x02")) + field(5, struct.pack("<2f", 1, 2)), None),
        (FLOAT + field(2, field(2, b"\x08\x01")) + field(5, struct.pack("<f", 1)), None),
        (FLOAT + SCALAR + field(5, b"abc"), None),
        (b"\x08\x03" + SCALAR + field(4, struct.pack("<i", 7)), None),
    ],
    ids=["packed float", "NaN, no shape", "float", "packed double", "double", "content", "content of double", "text",
         "two numbers", "rank 1", "half a float", "int"],
)  # fmt: skip
def test_a_tensor_is_a_number_where_it_is_one(path: Path, inner: bytes, number: float | None) -> None:
    """TF2 and torch's new style write scalars so; text, histograms and curves are passed over, and are no damage."""
    file = written(path, BEGINNING + framed(event(3, tensor("loss", inner))) + scalar(3, "kl", 1.0))
    first, *rest = [row[2:] for row in all_rows(file)]
    assert (first == pytest.approx(("loss", number), nan_ok=True)) if rest else number is None
    assert file.damaged == 0 and (rest or [first]) == [("kl", 1.0)]


def test_several_numbers_of_one_record_are_all_read(path: Path) -> None:
    """TF1's merged summaries, and what stands between them: a histogram, an image, a value without a name."""
    values = (simple("a", 1.0), field(1, b"h") + field(5, b"\x09" + bytes(8)), b"\x15" + bytes(4), simple("b", 2.0))
    assert [row[2:] for row in all_rows(written(path, framed(event(1, *values))))] == [("a", 1.0), ("b", 2.0)]


def test_a_tag_may_be_anything_but_a_text(path: Path) -> None:
    """Long, empty, not of UTF-8: it is named as well as can be, and never without end."""
    odd = framed(event(1, field(1, b"\xff/loss") + b"\x15" + struct.pack("<f", 1)))
    data = odd * 2 + scalar(1, "x" * 300, 2.0) * 2 + scalar(1, "y" * 5000, 3.0) + scalar(1, "", 4.0)
    assert [row[2:] for row in all_rows(written(path, data))] == [("�/loss", 1.0)] * 2 + [("x" * 300, 2.0)] * 2


def test_what_is_drawn_over_samples_is_no_step(path: Path) -> None:
    """Megatron's second set of curves, each beside the first: steps are iterations alone."""
    data = BEGINNING
    for step in range(1, 5):
        data += scalar(step, "lm loss", step / 2) + scalar(16000 * step, "lm loss vs samples", step / 2)
        data += scalar(step, "grad-norm", 1.0) + scalar(16000 * step, "grad-norm vs samples", 1.0)
    told = all_told(written(path, data))
    assert [(one.step, dict(one.values)) for one in told] == [
        (step, {"lm loss": step / 2, "grad-norm": 1.0}) for step in range(1, 5)
    ]
    assert len(all_rows(EventFile(str(path)))) == 16


def test_of_a_tag_told_twice_what_is_not_finite_stays(path: Path) -> None:
    """A later number takes the place of an earlier one, but none that of a NaN."""
    data = b"".join(scalar(1, "loss", value) for value in (1.0, 2.0)) + scalar(1, "kl", math.nan) + scalar(1, "kl", 0.0)
    (told,) = all_told(written(path, data))
    assert told.values == pytest.approx({"loss": 2.0, "kl": math.nan}, nan_ok=True)


@pytest.mark.parametrize("cut", range(1, 60, 4))
def test_half_a_record_is_read_once_the_rest_is_there(path: Path, cut: int) -> None:
    """A look may come at any time: what was half written is told later, once, and is no damage."""
    data = run(range(1, 4))
    file = written(path, data[:-cut])
    before = all_rows(file)
    assert file.pending or cut in (55, 57)
    with open(path, "ab") as more:
        more.write(data[-cut:] + scalar(4, "train/metric_0", 4.0))
    rows = before + all_rows(file)
    assert [row[1:] for row in rows] == [
        *((step, f"train/metric_{i}", step + i / 4) for step in range(1, 4) for i in range(3)),
        (4, "train/metric_0", 4.0),
    ]
    assert (file.damaged, file.pending) == (0, 0) and file.rows() == []


def test_another_reader_goes_on_where_the_first_left_off(path: Path) -> None:
    """By offset: nothing twice, nothing left out."""
    first = written(path, run(range(1, 4)))
    all_told(first)
    with open(path, "ab") as more:
        more.write(run(range(4, 6))[len(BEGINNING) :])
    assert [one.step for one in all_told(EventFile(str(path), first.offset))] == [4, 5]


@pytest.mark.parametrize("how", ["cut short", "replaced", "written over, longer"])
def test_a_file_that_begins_anew_is_read_from_its_start(path: Path, how: str) -> None:
    """Cut short in place, another in its place, or longer than before at the next look already."""
    file = written(path, run(range(1, 9)))
    all_told(file)
    if how == "replaced":
        path.rename(path.with_suffix(".old"))
    steps = range(1, 20) if "longer" in how else range(1, 4)
    path.write_bytes(scalar(0, "begin", 1.0, wall_time=1.9e9) + run(steps)[len(BEGINNING) :])
    assert [one.step for one in all_told(file)] == [0, *steps]
    assert (file.restarts, file.damaged) == (1, 0)


def test_a_copy_that_is_brought_up_to_date_is_the_same_file(path: Path) -> None:
    """rsync puts another file in its place each time: what was told of it is not told again."""
    data = run(range(1, 9))
    file = written(path, data)
    all_told(file)
    copied = path.with_suffix(".copying")
    copied.write_bytes(data + run(range(9, 12))[len(BEGINNING) :])
    copied.replace(path)
    assert [one.step for one in all_told(file)] == [9, 10, 11] and file.restarts == 0


def test_a_step_is_told_once_wherever_a_look_ends(path: Path) -> None:
    """Files of several looks: each step with all its tags, at any length of step."""
    file = written(path, run(range(1, 1200), tags=11))
    looks = 0
    told: list[Told] = []
    while not file.at_end:
        told += file.told()
        looks += 1
    assert looks > 2 and [one.step for one in told] == list(range(1, 1200))
    assert {len(one.values) for one in told} == {11}


@pytest.mark.parametrize("trouble", ["absent", "folder", "pipe", "forbidden", "empty"])
def test_what_cannot_be_read_is_said_and_tried_again(path: Path, trouble: str) -> None:
    """Why, in a few words, without waiting and without an error; once it can be read, it is."""
    if trouble == "folder":
        path.mkdir()
    elif trouble == "pipe":
        os.mkfifo(path)
    elif trouble == "empty":
        path.touch()
    elif trouble == "forbidden":
        path.symlink_to(path)  # root reads whatever its mode is; nobody follows a link to itself
    file = EventFile(str(path))
    assert file.rows() == [] and file.at_end and bool(file.trouble) == (trouble != "empty")
    (path.rmdir if trouble == "folder" else lambda: path.unlink(missing_ok=True))()
    path.write_bytes(run(range(1, 3)))
    assert [one.step for one in all_told(file)] == [1, 2] and file.trouble == ""
