"""Tampering: whoever edits a journal, byte by byte or as a whole, is found; with what was let go, and without."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from journal_runs import fill, opened

from gyrostat_agent.journal.chain import GENESIS, link, walk
from gyrostat_rules.inputs import Tick

TURNS = 8
# ``entries_by_id`` and the pragmas aside, this is all that the file holds.
TABLES = {
    "turns": ("seq", "kind", "given", "offsets", "hash"),
    "inputs": ("seq", "given"),
    "entries": ("seq", "place", "id", "kind", "subject", "body"),
    "offsets": ("source", "position", "seq"),
    "snapshots": ("seq", "hash", "seal", "state", "step"),
    "letgo": ("id", "first", "last", "at", "by", "why", "hash"),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A closed journal of eight turns: the inputs of the second and third let go, a later turn noting it."""
    path = str(tmp_path / "journal.db")
    journal = opened(path)
    fill(journal, 6)
    journal.save_snapshot(4, b"four", 4)
    journal.let_go(2, 3, 5.5, "the agent", "older than 1 days")
    journal.write([("DELETE FROM inputs WHERE seq BETWEEN ? AND ?", [(2, 3)])])
    fill(journal, 2, first=7)
    journal.save_snapshot(8, b"eight", 8)
    journal.close()
    return path


def variants(value: object) -> Iterator[object]:
    """Every byte of a value with one bit turned; a number a little off."""
    if isinstance(value, (int, float)):
        yield from (value + 1, value - 1)
    elif isinstance(value, bytes):
        yield from (value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :] for at in range(len(value)))
        yield from (value[:-1], value + b"\0")
    else:
        assert isinstance(value, str)
        yield from (value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :] for at in range(len(value)))


@pytest.mark.parametrize("table", TABLES)
def test_every_byte_of_every_row_counts(path: str, table: str) -> None:
    """One bit of any byte that any row holds, in any column: the chain no longer holds."""
    tried = 0
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        assert walk(db).ok
        for row in db.execute(f"SELECT * FROM {table}").fetchall():
            names = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]
            assert set(names) == set(TABLES[table])
            where = " AND ".join(f"{name} IS ?" for name in names)
            for name, value in zip(names, row, strict=True):
                for other in variants(value):
                    db.execute("BEGIN")
                    try:
                        db.execute(f"UPDATE {table} SET {name} = ? WHERE {where}", (other, *row))
                        assert not walk(db).ok, (table, row, name, other)
                    except sqlite3.IntegrityError:
                        pass  # a number that another row has: SQLite itself refuses it
                    finally:
                        db.execute("ROLLBACK")
                    tried += 1
        assert walk(db).ok
    assert tried > 20


GONE: dict[str, tuple[str, int, str]] = {
    "an input that nobody let go": ("DELETE FROM inputs WHERE seq = 5", 5, "nothing says that it was let go"),
    "the statement": ("DELETE FROM letgo", 2, "nothing says that it was let go"),
    "the statement of what is still there": (
        "DELETE FROM letgo; INSERT INTO inputs SELECT seq, x'00' FROM turns WHERE seq IN (2, 3)", 2, "was changed"),
    "a statement put in behind": ("INSERT INTO letgo VALUES (2, 4, 6, 1.0, 'x', 'y', zeroblob(16))", 4, "statement 2"),
    "a statement put in before": ("INSERT INTO letgo VALUES (0, 4, 6, 1.0, 'x', 'y', zeroblob(16))", 4, "statement 1"),
    "an input of no turn": ("INSERT INTO inputs VALUES (99, x'00')", 99, "which does not exist"),
    "two inputs swapped": (
        "UPDATE inputs SET seq = -5 WHERE seq = 5; UPDATE inputs SET seq = 5 WHERE seq = 6;"
        "UPDATE inputs SET seq = 6 WHERE seq = -5", 5, "input of turn 5 was changed"),
}  # fmt: skip


@pytest.mark.parametrize(("statements", "seq", "said"), GONE.values(), ids=GONE.keys())
def test_what_was_let_go_cannot_be_forged(path: str, statements: str, seq: int, said: str) -> None:
    """Removing an input is not letting it go, and what was said of it can be neither taken back nor made up."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(statements)
        verdict = walk(db)
    assert (verdict.ok, verdict.broken_at) == (False, seq), verdict
    assert said in verdict.why


def test_a_statement_of_what_never_went_cannot_be_taken_back(path: str) -> None:
    """The turn behind it notes it: with every input in its place, its absence is found all the same."""
    journal = opened(path)
    journal.let_go(4, 5, 9.0, "me", "no reason")
    journal.commit(Tick(9.0), [], {})
    assert journal.verify().ok
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM letgo WHERE id = 2")
    verdict = opened(path, readonly=True).verify()
    assert (verdict.ok, verdict.broken_at) == (False, TURNS + 1)
    assert "notes that inputs were let go" in verdict.why


def rewrite(path: str, start: int) -> None:
    """Change turn ``start`` and compute every hash from there on anew, as one who knows the format would."""
    with closing(sqlite3.connect(path)) as db, db:
        rows = db.execute("SELECT seq, kind, given, offsets FROM turns ORDER BY seq").fetchall()
        before = GENESIS
        for seq, kind, given, offsets in rows:
            name = "Forged" if seq == start else kind
            found = "SELECT place, id, kind, subject, body FROM entries WHERE seq = ? ORDER BY place"
            before = link(before, seq, name, given, db.execute(found, (seq,)).fetchall(), offsets)
            db.execute("UPDATE turns SET kind = ?, hash = ? WHERE seq = ?", (name, before, seq))
        db.execute("DELETE FROM snapshots")


@pytest.mark.parametrize("start", range(1, TURNS + 1))
def test_a_chain_rewritten_from_any_turn_is_found_by_a_later_head(path: str, start: int) -> None:
    """Every hash is right again, and the chain alone says nothing; a head noted elsewhere, at or behind it, does."""
    hashes = dict(opened(path).read("SELECT seq, hash FROM turns"))
    rewrite(path, start)
    forged = opened(path, readonly=True)
    assert forged.verify().ok
    for seq, digest in hashes.items():
        verdict = forged.verify(f"{seq}:{digest.hex()}")
        assert verdict.ok == (seq < start), (seq, verdict)
        assert verdict.ok or (verdict.broken_at == seq and "written anew" in verdict.why)


@pytest.mark.parametrize("head", ["x", "5", "5:xyz", ":", "-1:00", f"{10**30}:00"])
def test_what_is_no_head_is_no_proof(path: str, head: str) -> None:
    """A head that was copied wrong is never taken for one that the chain passes."""
    assert not opened(path, readonly=True).verify(head).ok
