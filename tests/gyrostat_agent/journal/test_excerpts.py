"""Excerpts: a journal carried elsewhere proves itself there, and is fed again there."""

import io
import json
import tracemalloc
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from journal_runs import entries, fill, opened
from kept_runs import bitten, inputs, old_journal, replayed, written

from gyrostat_agent.journal import JournalError, excerptreader
from gyrostat_agent.journal.excerptwriter import Part, part_of, write
from gyrostat_agent.journal.store import Journal
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Batch, Command, SourceState, Tick

HEADER: dict[str, Any] = {"run": "r", "gyrostat": "0", "journal": 2}


def exported(journal: Journal, to: Path, part: Part | None = None) -> Path:
    """The file; the whole journal's where no part is named."""
    head = int(journal.head().partition(":")[0])
    with to.open("wb") as file:
        size = write(journal, part or Part(1, head), HEADER, file)
    assert size == to.stat().st_size
    return to


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a journal may be."""
    return str(tmp_path / "journal.db")


def test_a_journal_comes_through_whole(path: str, tmp_path: Path) -> None:
    """Every turn, entry, offset and snapshot is what it was, to the byte, and decides as it did."""
    journal, _ = written(path, 300, (100,))
    with excerptreader.opened(str(exported(journal, tmp_path / "out"))) as there:
        assert there.verify(journal.head()) == (True, 302, 0, "")
        assert there.head() == journal.head() and there.offsets() == journal.offsets()
        assert list(there.turns()) == list(journal.turns())
        assert there.snapshot() == journal.snapshot()
        assert replayed(there) == list(range(1, 303))


def test_what_json_can_hardly_say_comes_through(path: str, tmp_path: Path) -> None:
    """Odd names, odd numbers, long inputs: what does not stand as JSON stands as its bytes."""
    journal, odd = opened(path), "a\ud800\x1b[2J\0\u2028é"
    journal.commit(
        Tick(float("nan")), [Entry(odd, float("inf"), 1, odd, odd, odd, odd, {odd: [float("nan")]})], {odd: 1}
    )
    journal.commit(Command(-1e300, odd, {"base64": "x"}), [], {})
    journal.commit(Batch(1.0, (SourceState("x" * 5000, odd, ""),)), entries(1, 3), {"base64": 7})
    with excerptreader.opened(str(exported(journal, tmp_path / "out"))) as there:
        assert there.verify(journal.head()).ok
        assert str(list(there.turns())) == str(list(journal.turns()))
        assert there.offsets() == journal.offsets()


def test_a_part_begins_at_a_snapshot_and_is_fed_again(path: str, tmp_path: Path) -> None:
    """What is about one incident is enough to see it decided again, months later, on another machine."""
    journal, retention = written(path, 1200, (500,), most=1 << 30, days=1)
    bitten(retention)
    part = part_of(journal, "i0001")
    assert part.first > 1
    with excerptreader.opened(str(exported(journal, tmp_path / "out", part))) as there:
        assert there.verify(journal.head().replace("1202", "1200")).ok is False
        assert there.verify() == (True, part.last - part.first + 1, 0, "")
        assert replayed(there) == list(range(part.first, part.last + 1))
        assert [e for e in there.entries() if e.kind == "incident"] == list(journal.entries(kinds=("incident",)))
        assert {(s.by, s.why) for s in there.gone()} == {("the agent", "older than 1 days")}


def test_an_incident_that_is_not_there_is_named(path: str) -> None:
    """A slip in its name is told, and no empty file is written."""
    with pytest.raises(JournalError, match="no incident 'i9'"):
        part_of(written(path, 300)[0], "i9")


def test_an_old_journal_is_exported(tmp_path: Path) -> None:
    """Turns that hold their inputs themselves prove themselves as well."""
    old_journal(tmp_path / "journal.db", inputs(40))
    journal = opened(str(tmp_path / "journal.db"), readonly=True)
    with excerptreader.opened(str(exported(journal, tmp_path / "out"))) as there:
        assert there.verify(journal.head()) == (True, 42, 0, "")
        assert replayed(there) == list(range(1, 43))


def whole(file: Path) -> bool:
    """True where it is read, and its chain holds."""
    try:
        with excerptreader.opened(str(file)) as there:
            return there.verify().ok
    except JournalError:
        return False


def test_any_byte_that_is_changed_is_found(path: str, tmp_path: Path) -> None:
    """One bit, in every 29th byte of the file: it is refused, or its chain does not hold; it is never believed."""
    journal = opened(path)
    fill(journal, 4)
    journal.save_snapshot(4, b"four", 4)
    file = exported(journal, tmp_path / "out")
    data = file.read_bytes()
    assert whole(file)
    for at in range(0, len(data), 29):
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert not whole(file), (at, data[at - 20 : at + 20])


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


def sealed(lines: list[bytes]) -> bytes:
    """These lines with an end that is right about them: what one who knows the format would write."""
    end = json.loads(lines[-1])
    return b"".join(lines[:-1]) + json.dumps(
        {**end, "digest": blake2b(b"".join(lines[:-1]), digest_size=16).hexdigest()}
    ).encode() + b"\n"  # fmt: skip


FORGED: dict[str, Any] = {
    "a turn left out": lambda ls: [*ls[:3], *ls[4:]],
    "two turns swapped": lambda ls: [*ls[:3], ls[4], ls[3], *ls[5:]],
    "the last turn cut off": lambda ls: [*ls[:-2], ls[-1]],
    "a turn twice": lambda ls: [*ls[:3], ls[3], *ls[3:]],
    "an entry left out": lambda ls: [*ls[:2], ls[2].replace(b'"entries":[{', b'"entries":[],"was":[{'), *ls[3:]],
    "a time of its own": lambda ls: [*ls[:2], ls[2].replace(b'"at":2.0,"kind"', b'"at":9.0,"kind"'), *ls[3:]],
    "another value": lambda ls: [*ls[:2], ls[2].replace(b'"entropy":0.5', b'"entropy":0.7'), *ls[3:]],
    "an input said to be gone": lambda ls: [
        *ls[:2],
        json.dumps({**json.loads(ls[2]), "at": None, "input": {"gone": "02" + "00" * 32}}).encode() + b"\n",
        *ls[3:],
    ],
    "a line of another kind": lambda ls: [*ls[:2], b'{"x":1}\n', *ls[2:]],
    "a line that is no object": lambda ls: [*ls[:2], b"[]\n", *ls[2:]],
    "a header that is none": lambda ls: [b'{"gyrostat_excerpt":1}\n', *ls[1:]],
    "a later form": lambda ls: [ls[0].replace(b'"gyrostat_excerpt":1', b'"gyrostat_excerpt":2'), *ls[1:]],
    "a turn of another type": lambda ls: [*ls[:2], ls[2].replace(b'"turn":2', b'"turn":"x"'), *ls[3:]],
    "nothing but an end": lambda ls: [ls[0], ls[-1]],
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_a_forged_file_is_not_believed(path: str, tmp_path: Path, forge: Any) -> None:
    """Lines dropped, moved, put in or written anew, the digest at the end put right: it is found all the same."""
    journal = opened(path)
    fill(journal, 6)
    file = exported(journal, tmp_path / "out")
    lines = lines_of(file)
    file.write_bytes(sealed(lines))
    assert whole(file)
    changed = forge(lines)
    assert changed != lines
    file.write_bytes(sealed(changed))
    assert not whole(file)


@pytest.mark.parametrize("data", [b"", b"\n", b"loss\n", b"{}\n", b"\xff\xfe", b"[" * 100_000 + b"\n"])
def test_what_is_no_excerpt_is_named(tmp_path: Path, data: bytes) -> None:
    """A wrong file is one sentence with its name."""
    file = tmp_path / "out"
    file.write_bytes(data)
    with pytest.raises(JournalError, match="out: "), excerptreader.opened(str(file)):
        pass


def test_a_cut_file_is_named(path: str, tmp_path: Path) -> None:
    """A copy that broke off is never taken for a shorter run."""
    journal = opened(path)
    fill(journal, 6)
    file = exported(journal, tmp_path / "out")
    data = file.read_bytes()
    for size in range(0, len(data), 151):
        file.write_bytes(data[:size])
        assert not whole(file)


def test_a_broken_chain_is_not_exported(path: str) -> None:
    """What does not add up is not carried on as if it did; the turn is named."""
    journal = opened(path)
    fill(journal, 6)
    journal.write([("UPDATE entries SET subject = ? WHERE seq = 4", [("x",)])])
    with pytest.raises(JournalError, match="broken at turn 4"):
        write(journal, Part(1, 6), HEADER, io.BytesIO())


def test_memory_does_not_grow_with_the_journal(tmp_path: Path) -> None:
    """Three times the turns take no more memory, to write them and to read them back."""
    peaks = []
    for turns in (300, 900):
        journal = opened(str(tmp_path / f"{turns}.db"))
        fill(journal, turns)
        with closing(journal):
            tracemalloc.start()
            file = exported(journal, tmp_path / f"{turns}.out")
            with excerptreader.opened(str(file)) as there:
                assert there.head() == journal.head()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0] + 100_000
