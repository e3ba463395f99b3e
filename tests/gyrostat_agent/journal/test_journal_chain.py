"""The chain: whatever is changed in a journal behind its back is found, and named by its turn."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from journal_runs import fill, opened

from gyrostat_agent.journal import JournalError
from gyrostat_rules.inputs import Tick

FLIP = "CAST(substr({0}, 1, 20) || x'7E' || substr({0}, 22) AS BLOB)"  # a tilde stands there in none of them
TAMPERED: dict[str, tuple[list[str], int, str]] = {
    "a byte of an input": ([f"UPDATE turns SET given = {FLIP.format('given')} WHERE seq = 5"], 5, "changed"),
    "a byte of an entry": ([f"UPDATE entries SET body = {FLIP.format('body')} WHERE seq = 5"], 5, "changed"),
    "an input's kind": (["UPDATE turns SET kind = 'Tick' WHERE seq = 5"], 5, "changed"),
    "an input that is text": (["UPDATE turns SET given = 'x' WHERE seq = 5"], 5, "changed"),
    "a hash": (["UPDATE turns SET hash = zeroblob(16) WHERE seq = 5"], 5, "changed"),
    "the offsets of a turn": (["UPDATE turns SET offsets = x'7B7D' WHERE seq = 5"], 5, "changed"),
    "an entry's id": (["UPDATE entries SET id = 'e0' WHERE seq = 5 AND place = 0"], 5, "changed"),
    "an entry's kind": (["UPDATE entries SET kind = 'run' WHERE seq = 5 AND place = 0"], 5, "changed"),
    "an entry's subject": (["UPDATE entries SET subject = 's9' WHERE seq = 5 AND place = 1"], 5, "changed"),
    "an entry's place": (["UPDATE entries SET place = 4 WHERE seq = 5 AND place = 1"], 5, "changed"),
    "an entry gone": (["DELETE FROM entries WHERE seq = 5 AND place = 1"], 5, "removed"),
    "the entries of a turn gone": (["DELETE FROM entries WHERE seq = 5"], 5, "removed"),
    "an entry put in": (["INSERT INTO entries VALUES (6, 0, 'x', 'run', 's', x'00')"], 6, "added"),
    "an entry of no turn": (["INSERT INTO entries VALUES (99, 0, 'x', 'run', 's', x'00')"], 99, "turn 99"),
    "an entry before the first turn": (["INSERT INTO entries VALUES (-1, 0, 'x', 'run', 's', x'00')"], -1, "turn -1"),
    "an entry moved to another turn": (["UPDATE entries SET seq = 6 WHERE seq = 5"], 5, "changed"),
    "a turn gone": (["DELETE FROM turns WHERE seq = 5"], 5, "turn 5 is missing"),
    "a turn and its entries gone": (
        ["DELETE FROM turns WHERE seq = 5", "DELETE FROM entries WHERE seq = 5"], 5, "turn 5 is missing"),
    "the first turn gone": (["DELETE FROM turns WHERE seq = 1"], 1, "turn 1 is missing"),
    "a turn gone and the rest moved up": (
        ["DELETE FROM turns WHERE seq = 3", "UPDATE turns SET seq = seq - 1 WHERE seq > 3"], 3, "changed"),
    "the last turns cut off": (
        ["DELETE FROM turns WHERE seq > 10", "DELETE FROM entries WHERE seq > 10"], 11, "cut off"),
    "two turns swapped": (
        ["UPDATE turns SET seq = -4 WHERE seq = 4", "UPDATE turns SET seq = 4 WHERE seq = 7",
         "UPDATE turns SET seq = 7 WHERE seq = -4"], 4, "changed"),
    "two inputs swapped": (
        ["CREATE TABLE was AS SELECT * FROM turns",
         "UPDATE turns SET given = (SELECT given FROM was WHERE seq = 16 - turns.seq) WHERE seq IN (7, 9)"],
        7, "changed"),
    "a turn put in behind": (["INSERT INTO turns VALUES (13, 'Tick', x'00', x'00', zeroblob(16))"], 13, "changed"),
    "a turn put in before": (["INSERT INTO turns VALUES (-3, 'Tick', x'00', x'00', zeroblob(16))"], -3, "put in"),
    "a file's offset": (
        ["UPDATE offsets SET position = 1 WHERE source = CAST('a.000' AS BLOB)"], 12, "offset of a.000"),
    "a file's offset gone": (["DELETE FROM offsets WHERE source = CAST('b.1' AS BLOB)"], 11, "offset of b.1"),
    "the journal's own count": (["UPDATE offsets SET position = 11 WHERE source = x'FF'"], 13, "cut off"),
    "a snapshot's state": (["UPDATE snapshots SET state = x'01' WHERE seq = 8"], 8, "snapshot at turn 8"),
    "a snapshot moved to another turn": (["UPDATE snapshots SET seq = 7 WHERE seq = 8"], 7, "snapshot at turn 7"),
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A closed journal of twelve turns with snapshots at 6 and 8."""
    path = str(tmp_path / "journal.db")
    journal = opened(path)
    fill(journal, 12)
    journal.save_snapshot(6, b"six")
    journal.save_snapshot(8, b"eight")
    journal.close()
    return path


def edit(path: str, statements: list[str]) -> int:
    """Change the file as somebody with a database tool would; the number of rows changed."""
    db = sqlite3.connect(path)
    with db:
        for statement in statements:
            db.execute(statement)
    changed = db.total_changes
    db.close()
    return changed


def test_an_untouched_journal_holds(path: str) -> None:
    """No false alarm: it is whole for the writer and for a reader, and by every head that was noted on the way."""
    assert opened(path).verify() == opened(path, readonly=True).verify() == (True, 12, 0, "")


@pytest.mark.parametrize(("statements", "seq", "said"), TAMPERED.values(), ids=TAMPERED.keys())
def test_a_change_is_found_and_named(path: str, statements: list[str], seq: int, said: str) -> None:
    """Somebody edits history with a database tool: verify names the first turn that is not as it was."""
    assert edit(path, statements) >= 1
    verdict = opened(path, readonly=True).verify()
    assert (verdict.ok, verdict.broken_at) == (False, seq)
    assert said in verdict.why
    assert verdict.turns == min(max(seq - 1, 0), 12) or "offset" in said or "snapshot" in said or seq == 99


@pytest.mark.parametrize("change", ["state = x'01'", "seal = zeroblob(16)", "hash = zeroblob(16)", "seq = 7"])
def test_a_changed_snapshot_is_not_believed(path: str, change: str) -> None:
    """A restart falls back to the state before it, and to none rather than to a wrong one."""
    edit(path, [f"UPDATE snapshots SET {change} WHERE seq = 8"])
    assert opened(path, readonly=True).snapshot() == (6, b"six")
    edit(path, ["UPDATE snapshots SET state = x'02' WHERE seq = 6"])
    assert opened(path, readonly=True).snapshot() is None


def test_a_snapshot_of_another_journal_is_not_believed(path: str, tmp_path: Path) -> None:
    """A whole snapshot row taken from another run does not belong to this one's turns."""
    other = opened(str(tmp_path / "other.db"))
    for _ in range(9):
        other.commit(Tick(1.0), [], {})
    other.save_snapshot(9, b"foreign")
    other.close()
    edit(path, [f"ATTACH '{tmp_path}/other.db' AS other", "INSERT INTO snapshots SELECT * FROM other.snapshots"])
    assert opened(path, readonly=True).snapshot() == (8, b"eight")
    assert opened(path, readonly=True).verify().broken_at == 9


def test_a_journal_written_anew_does_not_pass_a_noted_head(path: str, tmp_path: Path) -> None:
    """Whoever computes every hash again is caught by the head that the ledger holds, and nobody else is."""
    noted = opened(path).head()
    forged = opened(str(tmp_path / "forged.db"))
    fill(forged, 11)
    forged.commit(Tick(1.0), [], {})
    assert forged.verify().ok
    verdict = forged.verify(noted)
    assert (verdict.ok, verdict.broken_at) == (False, 12)
    assert "written anew" in verdict.why
    grown = opened(path)
    fill(grown, 3, first=13)
    assert grown.verify(noted) == (True, 15, 0, "")
    assert "number:hash" in grown.verify("twelve").why


CUT = ["DELETE FROM turns WHERE seq > 10", "DELETE FROM offsets"]


@pytest.mark.parametrize("cut", [CUT[:1], CUT, CUT[1:]], ids=["turns", "turns and offsets", "offsets"])
def test_history_goes_on_behind_a_break_that_stays_known(path: str, cut: list[str]) -> None:
    """An agent that only observes from now on writes that down, and nothing it writes heals or hides the break."""
    edit(path, cut)
    found = opened(path, readonly=True).verify()
    journal = opened(path)
    assert journal.verify() == found
    number = journal.commit(Tick(1.0), [], {})
    assert number > 10
    assert [t.seq for t in journal.turns()][-1] == number
    assert (journal.verify().ok, found.ok) == (False, False)
    assert opened(path).commit(Tick(2.0), [], {}) == number + 1


def test_a_turn_that_cannot_be_read_is_named(path: str) -> None:
    """Damage met in a replay is one sentence with the turn's number, behind the turns that are good."""
    edit(path, ["UPDATE turns SET given = x'00' WHERE seq = 5"])
    turns = opened(path, readonly=True).turns()
    assert [next(turns).seq for _ in range(4)] == [1, 2, 3, 4]
    with pytest.raises(JournalError, match="turn 5 cannot be read"):
        next(turns)


def _page_of(path: str, table: str) -> int:
    db = sqlite3.connect(path)
    page: int = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    db.close()
    return page


@pytest.mark.parametrize("table", ["turns", "entries", "offsets", "snapshots"])
def test_a_damaged_page_is_a_verdict(path: str, table: str) -> None:
    """A bad sector is told as such, in words, and not as a crash of the one who looks."""
    page = _page_of(path, table)
    with Path(path).open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xaa" * 4096)
    verdict = opened(path, readonly=True).verify()
    assert not verdict.ok
    assert "damaged" in verdict.why
    if table in ("turns", "offsets"):
        with pytest.raises(JournalError, match="damaged; keep a copy"):
            opened(path)


def test_every_byte_of_a_turn_counts(path: str) -> None:
    """Any single byte of a stored input: one bit of it is turned, and the turn is named."""
    read: Callable[[], bytes] = lambda: bytes(_column(path, "given"))  # noqa: E731
    whole = read()
    for at in range(len(whole)):
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        edit(path, [f"UPDATE turns SET given = x'{changed.hex()}' WHERE seq = 7"])
        assert opened(path, readonly=True).verify().broken_at == 7
    edit(path, [f"UPDATE turns SET given = x'{whole.hex()}' WHERE seq = 7"])
    assert opened(path, readonly=True).verify().ok


def _column(path: str, name: str) -> bytes:
    db = sqlite3.connect(path)
    value: bytes = db.execute(f"SELECT {name} FROM turns WHERE seq = 7").fetchone()[0]
    db.close()
    return value
