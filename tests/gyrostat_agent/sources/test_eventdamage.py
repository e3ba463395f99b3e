"""Damaged event files: what is torn, flipped, missing or made up costs what it lies in, and never an error."""

import math
import random
import struct
import time
from pathlib import Path

import pytest
from eventbytes import BEGINNING, event, field, framed, header, run, scalar, simple, tensor, varint

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


@pytest.mark.parametrize("size", [300_000, 3_000_000, 17_000_000], ids=["0.3 MB", "3 MB", "17 MB"])
def test_a_large_record_is_passed_over(path: Path, size: int) -> None:
    """Images and graphs: not of numbers, and no hindrance. Above 16 MiB it is called damage and cost no memory."""
    image = b"\x09" + bytes(8) + field(4, b"\x01" * size)
    record = header(len(image)) + image + b"\0\0\0\0"  # its own checksum is nobody's concern
    file = written(path, run(range(1, 3)) + record + run(range(3, 5)))
    assert [one.step for one in all_told(file)] == [1, 2, 3, 4] and file.damaged == (size > 16 << 20)


@pytest.mark.parametrize("shape", ["length", "its checksum", "step", "tag", "data cut", "junk", "hole"])
def test_damage_costs_the_record_it_lies_in(path: Path, shape: str) -> None:
    """It is counted once, and every other record is read as it was written."""
    records = [scalar(step, f"train/metric_{i}", step + i / 4) for step in range(1, 40) for i in range(3)]
    hit = 60  # step 21, tag 0
    at = {"length": 1, "its checksum": 9, "step": 12 + 10, "tag": 12 + 20}
    if shape in at:
        touched = bytearray(records[hit])
        touched[at[shape]] ^= 0x40
        records[hit] = bytes(touched)
    elif shape == "data cut":
        records[hit] = records[hit][:30]
    else:
        records.insert(hit, (b"\x17junk" if shape == "junk" else b"\0") * 777)
    file = written(path, BEGINNING + b"".join(records))
    rows = [row[1:] for row in all_rows(file)]
    expected = [(step, f"train/metric_{i}", step + i / 4) for step in range(1, 40) for i in range(3)]
    if shape not in ("junk", "hole"):
        del expected[hit]
    assert rows == expected and file.damaged == 1


def test_a_nan_that_nobody_wrote_is_none(path: Path) -> None:
    """A flipped bit that makes one in a record of known layout: its checksum is looked at before anybody is alarmed."""
    data = bytearray(run(range(1, 30)))
    at = len(data) - 4 * len(scalar(20, "train/metric_0", 1.0)) - 8
    assert struct.unpack_from("<f", data, at)[0] == pytest.approx(28.25)
    data[at : at + 4] = struct.pack("<f", math.nan)
    file = written(path, bytes(data))
    rows = all_rows(file)
    assert len(rows) == 29 * 3 - 1 and all(math.isfinite(row[3]) for row in rows) and file.damaged == 1


def test_a_torn_end_followed_by_a_new_life_loses_no_more(path: Path) -> None:
    """Killed in the middle of a record, and another process went on in the same file."""
    old, new = run(range(1, 30)), run(range(30, 60))
    file = written(path, old[:-25] + new)
    assert len(all_rows(file)) == 59 * 3 - 1 and file.damaged == 1


@pytest.mark.parametrize("hole", [*range(1, 120), 700])
def test_a_hole_at_the_end_is_waited_for(path: Path, hole: int) -> None:
    """A network file system shows a file's new length before its bytes: neither damage nor zeros that nobody wrote."""
    data = run(range(1, 9))
    file = written(path, data[:-hole] + bytes(hole))
    before = all_rows(file)
    assert file.damaged == 0 and file.pending
    path.write_bytes(data + run(range(9, 11)))
    rows = [row[1:] for row in before + all_rows(file)]
    assert rows == [(step, f"train/metric_{i}", step + i / 4) for step in range(1, 11) for i in range(3)]
    assert (file.damaged, file.restarts) == (0, 0)


@pytest.mark.parametrize("seed", range(40))
def test_bits_that_flip_never_raise_and_never_lie(path: Path, seed: int) -> None:
    """Anywhere, many or few: what is read was written, but for finite numbers in a stretch without other damage."""
    rng = random.Random(seed)
    data = bytearray(SAMPLE.read_bytes() if seed % 2 else run(range(1, 60), tags=5))
    whole = set(all_rows(written(path, bytes(data))))
    for _ in range(rng.choice((1, 2, 30, 1000))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file = written(path, bytes(data))
    rows = set(all_rows(file))
    assert {row[1:3] for row in rows} <= {row[1:3] for row in whole}
    assert rows <= whole or not file.damaged
    assert all_told(EventFile(str(path))) is not None


@pytest.mark.parametrize("seed", range(30))
def test_junk_never_raises_and_ends(path: Path, seed: int) -> None:
    """Bytes at random, pieces of records at random, records of random bytes, given bit by bit."""
    rng = random.Random(1000 + seed)
    pieces = [rng.randbytes(rng.randrange(200)) for _ in range(40)]
    pieces += [framed(rng.randbytes(rng.randrange(80))) for _ in range(40)]
    pieces += [framed(event(1, rng.randbytes(30), tensor("t", rng.randbytes(20)))) for _ in range(40)]
    pieces += [run(range(1, 3))[rng.randrange(80) :] for _ in range(10)] + [bytes(rng.randrange(50)), varint(2**64)]
    rng.shuffle(pieces)
    path.touch()
    file = EventFile(str(path))
    for piece in pieces:
        with open(path, "ab") as more:
            more.write(piece)
        all_told(file)
    assert file.at_end and file.offset <= path.stat().st_size


def test_records_made_up_inside_each_other_cost_no_more_than_their_bytes(path: Path) -> None:
    """Each says that all the rest is its own, and fails its checksum: not each of them is read to the end."""
    inner = b""
    for _ in range(3000):
        data = event(1, simple("a", 1.0)) + field(4, inner)
        inner = header(len(data)) + data + b"\1\1\1\1"
    file = written(path, run(range(1, 3)) + inner + run(range(3, 5)))
    began = time.process_time()
    told = [one.step for one in all_told(file)]
    assert time.process_time() - began < 10
    assert told[:2] == [1, 2] and told[-2:] == [3, 4] and file.damaged
