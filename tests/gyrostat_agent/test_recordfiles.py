"""Record files: every whole frame is read once, whatever is damaged, torn, foreign or taken away."""

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest

from gyrostat import Telemetry
from gyrostat.recordfile import PART_BYTES
from gyrostat.wire import Hello, Record, RunDirectory
from gyrostat.wire.frames import HEADER
from gyrostat_agent.rundir import prepare
from gyrostat_agent.sources.recordfiles import RecordFiles
from gyrostat_rules.inputs import Ended, Item, SourceState, SourceWord

Reader = Callable[..., RecordFiles]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """An empty run directory."""
    return prepare(str(tmp_path / "run"))


@pytest.fixture
def reader(run: RunDirectory) -> Iterator[Reader]:
    """Makes readers of the run."""
    made: list[RecordFiles] = []

    def make(committed: dict[str, int] | None = None, **more: bool) -> RecordFiles:
        made.append(RecordFiles(run, committed or {}, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def told(run: RunDirectory, steps: int, rank: int = 0, load: int = 0) -> Path:
    """A life of some steps that ended well; its last file."""
    telemetry = Telemetry(run.path, run="run", rank=rank, world=1)
    for step in range(1, steps + 1):
        telemetry.record(step, loss=step / 2, expert_load=[1] * load if load else None)
    telemetry.close()
    return sorted(Path(run.records).glob(f"trainer-{rank:05d}-{telemetry.incarnation}.*"))[-1]


def steps(items: list[Item]) -> list[int]:
    return [i.step for i in items if isinstance(i, Record)]


def faults(items: list[Item]) -> list[SourceState]:
    return [i for i in items if isinstance(i, SourceState)]


def test_all_is_read_in_order_and_once(run: RunDirectory, reader: Reader) -> None:
    """Hello first, goodbye last, and nothing at the second look."""
    told(run, 5)
    files = reader()
    items = files.drain()
    assert isinstance(items[0], Hello) and isinstance(items[-1], Ended) and steps(items) == [1, 2, 3, 4, 5]
    assert files.drain() == [] and (files.missing, files.damaged) == (0, 0)


def test_a_new_reader_goes_on_where_the_last_one_committed(run: RunDirectory, reader: Reader) -> None:
    """Its schema lies in front of that, and is known all the same."""
    telemetry = Telemetry(run.path, run="run", rank=0)
    telemetry.record(1, loss=0.5)
    first = reader()
    first.drain()
    telemetry.record(2, loss=0.25)
    items = reader(first.offsets()).drain()
    assert [(i.step, i.values) for i in items if isinstance(i, Record)] == [(2, {"loss": 0.25})] and len(items) == 1


def test_one_that_lost_its_memory_is_told_who_speaks(run: RunDirectory, reader: Reader) -> None:
    """The newest Hello again, and no record twice."""
    telemetry = Telemetry(run.path, run="run", rank=0)
    telemetry.record(1, loss=0.5)
    telemetry.introduce((), ("stop",), 3, 0)
    telemetry.record(2, loss=0.5)
    first = reader()
    first.drain()
    items = reader(first.offsets(), introduce=True).drain()
    assert [(i.procedures, i.last_directive) for i in items if isinstance(i, Hello)] == [(("stop",), 3)]
    assert len(items) == 1


@pytest.mark.parametrize("cut", [1, 20, HEADER.size + 5], ids=lambda n: f"{n} bytes short")
def test_a_frame_that_is_still_being_written_is_waited_for(run: RunDirectory, reader: Reader, cut: int) -> None:
    """Half of it is neither read nor damage; the rest completes it."""
    file = told(run, 3)
    data = file.read_bytes()
    file.write_bytes(data[:-cut])
    files = reader()
    before = files.drain()
    assert not [i for i in before if isinstance(i, Ended)] and files.damaged == 0
    with open(file, "ab") as out:
        out.write(data[len(data) - cut :])
    assert [type(i) for i in files.drain()][-1] is Ended and files.missing == 0


def test_every_flipped_byte_costs_its_own_frame_alone(run: RunDirectory, reader: Reader) -> None:
    """Wherever it falls: nothing is raised, the frames before and behind it are read, and it is said once."""
    file = told(run, 4)
    data = file.read_bytes()
    for at in range(0, len(data), 7):
        spoilt = bytearray(data)
        spoilt[at] ^= 0x10
        file.write_bytes(spoilt)
        files = reader()
        items = files.drain()
        assert len(set(steps(items))) >= 3 or at < HEADER.size + 400, at  # the schema, without which none is read
        assert len(faults(items)) == len({(f.source, f.state, f.detail) for f in faults(items)})
        assert files.damaged + files.missing >= 1 or len(steps(items)) == 4


def test_another_major_version_is_observed_only(run: RunDirectory, reader: Reader) -> None:
    """Foreign, with its version; the other files are read."""
    file = told(run, 2)
    head = b"GYRO\x07" + file.read_bytes()[5 : HEADER.size - 4]
    other = file.with_name(file.name.replace("trainer-00000", "trainer-00001"))
    other.write_bytes(head + struct.pack("<I", crc32(head)) + bytes(1000))
    other.chmod(0o600)
    items = reader().drain()
    assert [(f.state, f.source) for f in faults(items)] == [(SourceWord.FOREIGN, other.name)]
    assert "wire version 7" in faults(items)[0].detail and steps(items) == [1, 2]


@pytest.mark.parametrize("kind", ["open to all", "a link", "a pipe"])
def test_what_others_could_have_written_is_not_read(run: RunDirectory, reader: Reader, kind: str) -> None:
    """Said once, with why; the reader neither follows it nor waits on it."""
    file = told(run, 2)
    odd = file.with_name(file.name.replace("trainer-00000", "trainer-00001"))
    if kind == "open to all":
        odd.write_bytes(file.read_bytes())
        odd.chmod(0o666)
    elif kind == "a link":
        odd.symlink_to(file)
    else:
        os.mkfifo(odd, 0o600)
    files = reader()
    items = files.drain()
    assert steps(items) == [1, 2] and [f.source for f in faults(items)] == [odd.name]
    (Path(run.records) / "note.txt").touch()
    assert files.drain() == []


def test_the_file_of_another_rank_under_this_name(run: RunDirectory, reader: Reader) -> None:
    """A copy must not speak for somebody else."""
    file = told(run, 2)
    copy = file.with_name(file.name.replace("trainer-00000", "trainer-00001"))
    copy.write_bytes(file.read_bytes())
    copy.chmod(0o600)
    items = reader().drain()
    assert {i.rank for i in items if isinstance(i, Record)} == {0} and len(faults(items)) == 1


def test_what_was_taken_away_is_counted(run: RunDirectory, reader: Reader) -> None:
    """A gap in the sequence is told with its size."""
    file = told(run, 6)
    first = Telemetry(run.path, run="run", rank=1, world=1)
    first.record(1, loss=0.5)
    for _ in range(4):
        first._stream.drop("as if the disk had been full")
    first.record(2, loss=0.5)
    first.close()
    files = reader()
    items = files.drain()
    assert files.missing == 4 and file.exists()
    assert [f.detail for f in faults(items)] == ["4 frames are missing before step 2"]


def test_parts_that_are_read_are_swept_and_the_newest_is_kept(run: RunDirectory, reader: Reader) -> None:
    """Only what has been read to its end and is followed by a newer part goes."""
    load = 4096
    told(run, PART_BYTES // (4 * load) + 10, load=load)
    files = reader()
    found: list[int] = []
    while items := files.drain():
        found += steps(items)
    assert found == list(range(1, len(found) + 1)) and len(found) > 200
    assert len(os.listdir(run.records)) == 3
    files.sweep()
    assert [n.rpartition(".")[2] for n in sorted(os.listdir(run.records)) if not n.startswith(".")] == ["001"]
    assert files.missing == 0 and list(files.offsets()) == [n for n in os.listdir(run.records) if not n.startswith(".")]


def test_a_part_with_a_torn_end_is_kept_while_its_writer_lives(run: RunDirectory, reader: Reader) -> None:
    """What lies behind the last whole frame has not been read, so it is not thrown away."""
    load = 4096
    told(run, PART_BYTES // (4 * load) + 10, load=load)
    first, _ = sorted(p for p in Path(run.records).iterdir() if not p.name.startswith("."))
    os.truncate(first, first.stat().st_size - 5)
    files = reader()
    while files.drain():
        files.sweep()
    assert first.exists()


def test_a_file_that_was_copied_over_is_not_read_twice(run: RunDirectory, reader: Reader) -> None:
    """Cut short by somebody and put back: said, and what was read stays read once."""
    file = told(run, 5)
    data = file.read_bytes()
    files = reader()
    assert steps(files.drain()) == [1, 2, 3, 4, 5]
    os.truncate(file, len(data) // 2)
    items = files.drain()
    assert steps(items) == [] and [f.state for f in faults(items)] == [SourceWord.DAMAGED]
    file.write_bytes(data)
    assert steps(files.drain()) == []


def test_a_folder_that_goes_is_told_and_told_again_when_it_is_back(run: RunDirectory, reader: Reader) -> None:
    """Gone is a state of a source; so is being there again."""
    files = reader()
    files.drain()
    os.rename(run.records, f"{run.records}.away")
    assert [f.state for f in faults(files.drain())] == [SourceWord.GONE]
    assert files.drain() == []
    os.rename(f"{run.records}.away", run.records)
    assert [f.state for f in faults(files.drain())] == [SourceWord.FRESH]
