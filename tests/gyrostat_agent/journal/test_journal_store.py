"""The journal: what was committed is there, in order and whole; what goes wrong is said in a sentence."""

import ctypes
import os
import sqlite3
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from journal_runs import batch, entries, fill, opened

from gyrostat_agent.journal import JournalError
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Tick


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a journal may be."""
    return str(tmp_path / "journal.db")


def test_turns_come_back_in_order(path: str) -> None:
    """A replay sees every input and entry, page after page, from any turn on, after a restart too."""
    journal = opened(path)
    fill(journal, 150)
    journal.close()
    journal = opened(path)
    assert [t.seq for t in journal.turns()] == list(range(1, 151))
    assert all(t.given == batch(t.seq) and t.at == t.seq for t in journal.turns())
    assert all(t.entries == tuple(entries(t.seq, t.seq % 3)) for t in journal.turns())
    assert [t.seq for t in journal.turns(after=148)] == [149, 150]
    assert journal.commit(Tick(1.0), [], {}) == 151
    assert journal.verify() == (True, 151, 0, "")


def test_an_empty_journal_is_whole(path: str) -> None:
    """Before the first turn there is nothing, and nothing wrong."""
    journal = opened(path)
    assert (list(journal.turns()), list(journal.entries()), journal.offsets(), journal.snapshot()) == ([], [], {}, None)
    assert journal.verify() == (True, 0, 0, "")
    assert journal.head() == "0:" + "00" * 16


def test_offsets_are_the_newest_of_each_file(path: str) -> None:
    """Reading resumes where the last committed turn left each file; names may be no UTF-8 and may be empty."""
    journal = opened(path)
    odd = os.fsdecode(b"log-\xff")
    journal.commit(Tick(1.0), [], {"a": 1, odd: 7, "": 3})
    journal.commit(Tick(2.0), [], {"a": 2**40})
    assert journal.offsets() == {"a": 2**40, odd: 7, "": 3}
    assert journal.verify().ok


def test_only_offsets_that_moved_are_written(path: str) -> None:
    """A run of many ranks tells all its files each time; a turn costs what changed, and the rest still stands."""
    journal = opened(path)
    told = {f"trainer-{rank:05d}.000": 100 for rank in range(64)}
    journal.commit(Tick(1.0), [], told)
    journal.close()
    journal = opened(path)
    journal.commit(Tick(2.0), [], {**told, "trainer-00003.000": 200})
    assert journal.offsets() == {**told, "trainer-00003.000": 200}
    db = sqlite3.connect(path)
    assert db.execute("SELECT offsets FROM turns WHERE seq = 2").fetchone()[0] == b'{"trainer-00003.000":200}'
    db.close()
    assert journal.verify().ok


def test_the_head_moves_with_each_turn_and_is_the_same_for_the_same_turns(tmp_path: Path) -> None:
    """The ledger can name a state of the journal; two agents that were fed alike agree on it."""
    heads = []
    for name in ("one.db", "two.db"):
        journal = opened(str(tmp_path / name))
        fill(journal, 3)
        heads.append(journal.head())
        fill(journal, 1, first=4)
        assert journal.head() != heads[-1]
        assert journal.head() == opened(str(tmp_path / name), readonly=True).head()
    assert heads[0] == heads[1]
    assert heads[0].startswith("3:")


VIEWS = {
    "all": ({}, lambda e: True, False, 0),
    "one kind": ({"kinds": ["incident"]}, lambda e: e.kind == "incident", False, 0),
    "two kinds": ({"kinds": ["alert", "incident"]}, lambda e: True, False, 0),
    "a kind inside another's name": ({"kinds": ["inc"]}, lambda e: False, False, 0),
    "later than one": ({"after": "e151.0"}, lambda e: e.step > 151, False, 0),
    "inside a turn": ({"after": "e152.0", "limit": 1}, lambda e: (e.step, e.id) > (152, "e152.0"), False, 1),
    "newest first": ({"newest_first": True}, lambda e: True, True, 0),
    "newest few": ({"newest_first": True, "limit": 3, "kinds": ["alert"]}, lambda e: e.kind == "alert", True, 3),
    "newest few later than one": (
        {"newest_first": True, "limit": 70, "after": "e100.0"}, lambda e: e.step > 100, True, 70),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "keep", "newest", "limit"), VIEWS.values(), ids=VIEWS.keys())
def test_entries_can_be_looked_through(
    path: str, asked: dict[str, object], keep: Callable[[Entry], bool], newest: bool, limit: int
) -> None:
    """Status and incident views get the entries they ask for, over many pages, in the order they ask for."""
    journal = opened(path)
    fill(journal, 200)
    made = [e for t in journal.turns() for e in t.entries if keep(e)]
    made = made[::-1] if newest else made
    assert list(journal.entries(**asked)) == (made[:limit] if limit else made)  # type: ignore[arg-type]


def test_an_entry_that_is_not_there_is_named(path: str) -> None:
    """A view that asks for what follows a foreign entry is told so, instead of being shown nothing."""
    with pytest.raises(JournalError, match=r"no entry 'e9'"):
        list(opened(path).entries(after="e9"))


def test_names_that_are_no_utf8_are_journaled(path: str) -> None:
    """A trainer may say a name with a lone surrogate in JSON; history takes it as it is."""
    journal = opened(path)
    entry = Entry("e\ud800", 1.0, 1, "alert", "s\udfff", "firing", "t", {})
    journal.commit(Tick(1.0), [entry], {"f\ud800": 1})
    assert list(journal.entries()) == [entry]
    assert list(journal.entries(after="e\ud800")) == []
    assert journal.verify().ok


def test_a_turn_that_cannot_be_written_leaves_nothing(path: str) -> None:
    """All of a turn or none of it: the next commit takes its number."""
    journal = opened(path)
    fill(journal, 2)
    bad = entries(3, 2)[1]._replace(data={"x": object()})
    with pytest.raises(JournalError, match="object"):
        journal.commit(batch(3), [entries(3, 2)[0], bad], {"a.000": 300})
    with pytest.raises(JournalError, match="int"):
        journal.commit(batch(3), entries(3, 1), {"a.000": 2**64})
    assert journal.offsets()["a.000"] == 200
    fill(journal, 1, first=3)
    assert journal.verify() == (True, 3, 0, "")


def test_the_newest_two_snapshots_are_kept(path: str) -> None:
    """A restart begins at the newest state; one older is there in case that one is damaged."""
    journal = opened(path)
    fill(journal, 5)
    for seq in (1, 3, 5):
        journal.save_snapshot(seq, b"state %d" % seq)
    assert journal.snapshot() == (5, b"state 5")
    assert opened(path, readonly=True).snapshot() == (5, b"state 5")
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT seq FROM snapshots ORDER BY seq").fetchall() == [(3,), (5,)]
    db.close()
    with pytest.raises(JournalError, match="no turn 6"):
        journal.save_snapshot(6, b"")


def test_the_files_are_the_owners_alone(path: str) -> None:
    """Records may hold what a company keeps to itself: 0600 whatever the umask is."""
    before = os.umask(0)
    try:
        journal = opened(path)
        fill(journal, 1)
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE(os.stat(path + name).st_mode) for name in ("", "-wal", "-shm")}
    assert modes == {"": 0o600, "-wal": 0o600, "-shm": 0o600}
    journal.close()


def test_a_reader_never_holds_up_the_writer(path: str) -> None:
    """`gyrostat incidents | less` left open all night: commits go on, and the log is still folded in."""
    writer = opened(path)
    fill(writer, 200)
    reader = opened(path, readonly=True)
    turns, seen = reader.turns(), reader.entries()
    assert (next(turns).seq, next(seen).id) == (1, "e1.0")
    fill(writer, 100, first=201)
    third = sqlite3.connect(path, timeout=0)
    busy, _, _ = third.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    third.close()
    assert busy == 0
    assert [t.seq for t in turns] == list(range(2, 301))
    assert len(list(seen)) == len([e for t in writer.turns() for e in t.entries]) - 1
    assert reader.verify() == (True, 300, 0, "")
    fill(writer, 1, first=301)
    assert reader.head() == writer.head()


def test_a_reader_writes_nothing(path: str) -> None:
    """A journal opened for reading refuses to commit, in words."""
    opened(path).close()
    with pytest.raises(JournalError, match="opened for reading only"):
        opened(path, readonly=True).commit(Tick(1.0), [], {})


def test_a_second_writer_is_found_out(path: str) -> None:
    """Two agents on one journal cannot both go on: the second to commit is told, and nothing is mixed."""
    first, second = opened(path), opened(path)
    fill(first, 1)
    with pytest.raises(JournalError, match="another process has written to it"):
        fill(second, 1)
    assert first.verify() == (True, 1, 0, "")


def test_a_closed_journal_says_so(path: str) -> None:
    """Use after close is one clear error."""
    journal = opened(path)
    journal.close()
    with pytest.raises(JournalError, match="closed"):
        journal.commit(Tick(1.0), [], {})


def _other_database(path: str) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE recipes (name TEXT)")
    db.close()


def _later_version(path: str) -> None:
    opened(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 9")
    db.close()


UNFIT: dict[str, tuple[Callable[[str], object], bool, str]] = {
    "not a database": (lambda path: Path(path).write_text("loss\n" * 999), False, "not an SQLite database; move"),
    "another program's": (_other_database, False, "another program's database"),
    "a later version": (_later_version, False, "of version 9, and this Gyrostat reads versions 1 and 2"),
    "a folder": (os.mkdir, False, "look at their owner and mode"),
    "no folder": (lambda path: os.rmdir(os.path.dirname(path)), False, "No such file"),
    "a folder of everybody's": (lambda path: os.chmod(os.path.dirname(path), 0o777), False, "others may write it"),
    "nothing to read": (lambda path: None, True, "there is none"),
    "nothing in it to read": (lambda path: Path(path).touch(), True, "no agent has begun it"),
    "a later version to read": (_later_version, True, "of version 9, and this Gyrostat reads versions 1 and 2"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "readonly", "said"), UNFIT.values(), ids=UNFIT.keys())
def test_a_file_that_is_no_journal_is_named_and_left_alone(
    tmp_path: Path, make: Callable[[str], object], readonly: bool, said: str
) -> None:
    """A wrong path is one sentence with the path in it, and the file there stays as it was."""
    folder = tmp_path / "agent"
    folder.mkdir(mode=0o700)
    path = folder / "journal.db"
    make(str(path))
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(JournalError, match=said) as caught:
        opened(str(path), readonly=readonly)
    assert str(path.parent) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_synchronised_commit_is_on_the_disk(path: str) -> None:
    """Before what cannot be undone, the intent outlives the machine: no page of the log is left in memory alone."""
    journal = opened(path)
    journal.commit(Tick(1.0), [], {}, sync=True)
    if dirty_pages(path + "-wal") is None:
        pytest.skip("cachestat(2) is not here: Linux 6.5 or later tells which pages are not yet on the disk")
    deadline = time.monotonic() + 5
    while not dirty_pages(path + "-wal"):  # the kernel may write a page back by itself at any time
        if time.monotonic() > deadline:
            pytest.skip(f"{path} is on a file system without a disk behind it")
        fill(journal, 1, first=2)
    journal.commit(Tick(2.0), [], {}, sync=True)
    assert dirty_pages(path + "-wal") == 0
    assert journal.verify().ok


def dirty_pages(path: str) -> int | None:
    """Pages of a file that are dirty or being written back; None where the kernel does not tell."""
    libc = ctypes.CDLL(None, use_errno=True)
    whole, found = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
    fd = os.open(path, os.O_RDONLY)  # the log, not the database: closing that one would drop SQLite's locks
    try:
        failed = libc.syscall(451, fd, ctypes.byref(whole), ctypes.byref(found), 0)
    finally:
        os.close(fd)
    return None if failed else found[1] + found[2]
