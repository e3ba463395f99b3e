"""LogFile: a log as it grows, shrinks, is replaced, vanishes, or never was one."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from gyrostat.wire import Record
from gyrostat_agent.sources.logs import faultlines
from gyrostat_agent.sources.logs.formats.generic import GENERIC
from gyrostat_agent.sources.logs.formats.verl import VERL
from gyrostat_agent.sources.logs.gathered import Found
from gyrostat_agent.sources.logs.logfile import LogError, LogFile
from gyrostat_agent.sources.logs.said import Fault


def line(step: int) -> bytes:
    """A line of verl's console."""
    return f"step:{step} - actor/pg_loss:0.{step} - actor/grad_norm:np.float64(1.5)\n".encode()


def opened(path: Path, offset: int = 0) -> LogFile:
    """Followed from an offset on, its format to be recognised."""
    return LogFile(str(path), {"verl": VERL}, VERL, offset=offset)


def all_of(file: LogFile) -> Iterator[Found]:
    """What one pass gives: all that is there, and the row that is open."""
    before = -1
    while file.offset != before:
        before = file.offset
        yield from file.read()
    if file.log:
        yield from file.log.flush()


def steps(file: LogFile) -> list[int]:
    """The steps of the records of one pass."""
    return [one.step for one in all_of(file) if isinstance(one, Record)]


def test_what_is_appended_is_read_once(tmp_path: Path) -> None:
    """In three passes, each line in one of them, half lines too."""
    path = tmp_path / "verl.log"
    path.write_bytes(line(1) + line(2))
    file = opened(path)
    assert steps(file) == [1, 2]
    with path.open("ab") as more:
        more.write(line(3) + line(4)[:20])
    assert steps(file) == [3]
    with path.open("ab") as more:
        more.write(line(4)[20:])
    assert steps(file) == [4]
    assert steps(file) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_reader_that_begins_anew_goes_on_where_the_first_was(seed: int, tmp_path: Path) -> None:
    """Settled offsets are begins of lines: nothing is read twice, nothing left out, wherever the file was cut."""
    path, rng, seen = tmp_path / "verl.log", random.Random(seed), []
    text, offset = b"".join(map(line, range(1, 30))), 0
    for cut in [*sorted(rng.sample(range(len(text)), 6)), len(text)]:
        path.write_bytes(text[:cut])
        file = opened(path, offset)
        seen += steps(file)
        offset = file.settled
        file.close()
    assert seen == list(range(1, 30))


@pytest.mark.parametrize("how", ["truncated", "replaced", "truncated and longer"])
def test_a_restarted_trainer_s_log_is_read_from_its_begin(how: str, tmp_path: Path) -> None:
    """Truncated at start, as verl does, or another file of that name: a new life, all of it read."""
    path = tmp_path / "verl.log"
    path.write_bytes(line(10) + line(11) + line(12))
    file = opened(path)
    first = [one for one in all_of(file) if isinstance(one, Record)]
    if how == "replaced":
        (tmp_path / "other").write_bytes(line(1) + line(2) + line(3) + line(4))
        os.replace(tmp_path / "other", path)
    else:
        path.write_bytes(line(1) if how == "truncated" else b"".join(map(line, range(1, 9))))
    second = [one for one in all_of(file) if isinstance(one, Record)]
    assert [one.step for one in first] == [10, 11, 12]
    assert [one.step for one in second] == list(range(1, {"replaced": 5, "truncated": 2}.get(how, 9)))
    assert first[0].incarnation != second[0].incarnation


def test_a_file_that_vanishes_and_comes_back(tmp_path: Path) -> None:
    """Said in words while it is gone, and read from its beginning when it is there again."""
    path = tmp_path / "verl.log"
    path.write_bytes(line(1))
    file = opened(path)
    assert steps(file) == [1]
    path.unlink()
    with pytest.raises(LogError, match="No such file"):
        steps(file)
    path.write_bytes(line(2))
    assert steps(file) == [2]


@pytest.mark.parametrize("what", ["fifo", "folder", "nothing", "denied"])
def test_what_is_no_log_is_told_and_never_waited_for(what: str, tmp_path: Path) -> None:
    """A FIFO has no end; a folder no lines: one clear line, at once."""
    path = tmp_path / "log"
    if what == "fifo":
        os.mkfifo(path)
    if what == "folder":
        path.mkdir()
    if what == "denied":
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        path.write_bytes(line(1))
        path.chmod(0)
    with pytest.raises(LogError, match=str(path)):
        steps(opened(path))


def test_a_growing_file_is_waited_for_until_it_shows_its_format(tmp_path: Path) -> None:
    """Boilerplate at first: nothing is decided, nothing lost; the first line that tells begins it."""
    path = tmp_path / "run.log"
    path.write_bytes(b"loading checkpoint shards\n" * 5)
    file = opened(path)
    assert steps(file) == [] and file.log is None and file.offset == 0
    with path.open("ab") as more:
        more.write(line(1) + line(2))
    assert steps(file) == [1, 2]
    assert file.log is not None and (file.log.lines, file.log.understood) == (7, 2)


def test_what_a_run_died_of_in_its_start_is_told(tmp_path: Path) -> None:
    """Before any format shows itself: the error line at once, once, to who begins anew too; then the rows behind it."""
    path = tmp_path / "run.log"
    path.write_bytes(b"loading\n[rank2]: RuntimeError: CUDA error: out of memory\n[rank2]: RuntimeError: CUDA er")
    file = LogFile(str(path), {"verl": VERL}, VERL, faults=faultlines.find)
    assert [(one.kind, one.rank) for one in all_of(file) if isinstance(one, Fault)] == [("oom", 2)]
    assert file.log is None and not list(all_of(file))
    again = LogFile(str(path), {"verl": VERL}, VERL, offset=file.settled, faults=faultlines.find)
    assert not list(all_of(again))
    with path.open("ab") as more:
        more.write(b"ror: out of memory\n" + line(1) + line(2))
    for one in (file, again):
        found = list(all_of(one))
        assert [fault.kind for fault in found if isinstance(fault, Fault)] == ["oom"]
        assert [record.step for record in found if isinstance(record, Record)] == [1, 2]


def test_a_trainer_that_nobody_knows_is_not_waited_for(tmp_path: Path) -> None:
    """Ten rows of steps as they are: at a minute a step, two hundred lines would be hours of blindness."""
    path = tmp_path / "run.log"
    rows = [f'{{"step": {n}, "loss": {"NaN" if n == 10 else 0.5}}}\n'.encode() for n in range(1, 13)]
    path.write_bytes(b"starting up\n" * 20 + b"".join(rows[:9]))
    file = LogFile(str(path), {"verl": VERL}, GENERIC)
    assert steps(file) == [] and file.log is None
    with path.open("ab") as more:
        more.write(rows[9])
    assert steps(file) == list(range(1, 11))
    assert file.log is not None and file.log.form is GENERIC


def test_junk_is_counted_and_read_past(tmp_path: Path) -> None:
    """Binary between lines of numbers: every number is read, and how little was understood is known."""
    path, rng = tmp_path / "run.log", random.Random(3)
    path.write_bytes(b"".join(rng.randbytes(300).replace(b"step:", b"") + b"\n" + line(n) for n in range(1, 20)))
    file = opened(path)
    assert steps(file) == list(range(1, 20))
    assert file.log is not None and file.log.understood == 19 < file.log.lines
