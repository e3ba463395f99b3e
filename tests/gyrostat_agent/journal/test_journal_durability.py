"""Durability: a commit that was acknowledged survives a SIGKILL at any instant, and a full disk is only a pause."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from journal_runs import batch, entries, fill, opened

from gyrostat_agent.journal import JournalError

COMMITTING = """
import os, sys
from gyrostat_agent.journal import Journal
from journal_runs import batch, entries
journal = Journal(sys.argv[1])
number = int(journal.head().partition(":")[0])
while True:
    number += 1
    journal.commit(batch(number), entries(number, number % 3), {"a.000": 100 * number}, sync=number % 25 == 0)
    os.write(1, b"%d\\n" % number)
    if number % 40 == 0:
        journal.save_snapshot(number, b"state %d" % number)
"""


def commit_until(path: str, acknowledged: int) -> int:
    """Let a child commit and kill it after so many acknowledged turns; the last number that it acknowledged."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen([sys.executable, "-c", COMMITTING, path], stdout=subprocess.PIPE, env=env)
    assert child.stdout
    for _ in range(acknowledged):
        last = child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    rest = child.stdout.read().split(b"\n")[:-1]  # a line cut short was not acknowledged
    child.stdout.close()
    child.wait()
    return int(rest[-1] if rest else last)


def test_acknowledged_turns_survive_sigkill(tmp_path: Path) -> None:
    """Killed in the middle of committing, again and again: nothing acknowledged is lost, nothing is half there."""
    path = str(tmp_path / "journal.db")
    for acknowledged in (1, 30, 7, 160, 2, 90, 41):
        last = commit_until(path, acknowledged)
        reader = opened(path, readonly=True)  # the log is as the dead writer left it
        turns = list(reader.turns())
        assert len(turns) in (last, last + 1)
        assert [t.given for t in turns] == [batch(n) for n in range(1, len(turns) + 1)]
        assert all(t.entries == tuple(entries(t.seq, t.seq % 3)) for t in turns)
        assert reader.offsets() == {"a.000": 100 * len(turns)}
        assert reader.verify() == (True, len(turns), 0, "")
        if kept := reader.snapshot():
            assert kept[1] == b"state %d" % kept[0]
            assert kept[0] % 40 == 0
            assert kept[0] >= last - 80  # one that was killed between turn and snapshot: the next has none of that turn
        reader.close()


@contextmanager
def small_file_system(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """A tmpfs of 1 MiB, filled to the brim; what frees it again."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", str(folder)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        filler = folder / "filler"
        filler.write_bytes(bytes(512 << 10))
        yield str(folder / "journal.db"), filler.unlink
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def small_files(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Files of this process end at 256 KiB; what lifts that again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def lift() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 10, hard))
    try:
        yield str(folder / "journal.db"), lift
    finally:
        lift()
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("narrow", [small_file_system, small_files], ids=["full file system", "file size limit"])
def test_a_full_disk_is_only_a_pause(tmp_path: Path, narrow: Callable[..., object]) -> None:
    """Nothing is committed by halves on a full disk; once there is space, the same turn goes through."""
    with narrow(tmp_path) as (path, free):  # type: ignore[attr-defined]
        journal = opened(path)
        done = 0
        with pytest.raises(JournalError, match=r"journal\.db: the disk .*full"):
            for number in range(1, 5000):
                fill(journal, 1, first=number)
                done = number
        assert 0 < done < 4999
        with pytest.raises(JournalError):
            journal.save_snapshot(done, bytes(1 << 20))
        assert journal.offsets()["a.000"] == 100 * done
        assert journal.verify() == (True, done, 0, "")
        free()
        fill(journal, 20, first=done + 1)
        journal.close()
        reader = opened(path, readonly=True)
        assert reader.verify() == (True, done + 20, 0, "")
        assert [t.given for t in reader.turns()] == [batch(n) for n in range(1, done + 21)]
        reader.close()
