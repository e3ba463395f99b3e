"""Journals of a whole run, long enough that something of it may be let go, made by an engine without an agent."""

import sqlite3
from pathlib import Path

from journal_runs import opened

from gyrostat.wire import Hello, Record
from gyrostat_agent.cli.options import builtin, digest_of
from gyrostat_agent.journal import Journal, encode, encode_entry
from gyrostat_agent.journal.chain import GENESIS, link
from gyrostat_agent.journal.retention import Retention
from gyrostat_agent.journal.schema import APPLICATION
from gyrostat_agent.journal.stretches import stretches
from gyrostat_agent.recovery import same
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Batch, Command, Input, Pack, Verb

LIFE = "0123456789ab"
NAN = float("nan")
EVERY = 50  # turns between snapshots
DAY = 86400.0


def inputs(steps: int, poisoned: tuple[int, ...] = ()) -> list[Input]:
    """A run of so many steps, one a turn; at those that are poisoned, two steps are not finite."""
    text = builtin()
    begin: list[Input] = [
        Pack(0.0, digest_of(text), text),
        Command(0.0, Verb.CONFIGURE, {"mode": "shadow", "run": "r"}),
    ]
    ill = {step + more for step in poisoned for more in (0, 1)}
    hello = Hello("r", "trainer", 0, 1, LIFE, 0, 1, (), (), "", 0)
    for step in range(1, steps + 1):
        values = {"loss": NAN if step in ill else 0.5, "step_applied": float(step not in ill)}
        record = Record("trainer", 0, LIFE, 0, step, step, float(step), values)
        begin.append(Batch(float(step), (hello, record) if step == 1 else (record,)))
    return begin


_MADE: dict[tuple[int, tuple[int, ...]], bytes] = {}


def written(
    path: str, steps: int, poisoned: tuple[int, ...] = (), *, days: float = 0.0, most: int = 0
) -> tuple[Journal, Retention]:
    """A run's journal, of which nothing is let go yet. The same run is fed to an engine once, and copied after that."""
    if (steps, poisoned) not in _MADE:
        _write(path, inputs(steps, poisoned))
        _MADE[(steps, poisoned)] = Path(path).read_bytes()
    Path(path).touch(mode=0o600)
    Path(path).write_bytes(_MADE[(steps, poisoned)])
    journal = opened(path)
    return journal, Retention(journal, days, most)


def _write(path: str, given: list[Input]) -> None:
    """All of it committed by a fresh engine, as an agent does it."""
    journal, engine = opened(path), Engine()
    retention = Retention(journal, 0, 0)
    for each in given:
        entries = engine.feed(each)
        seq = journal.commit(each, entries, {"a.000": 10 * engine.state.step})
        retention.see(seq, entries)
        if seq % EVERY == 0:
            retention.save(seq, engine.snapshot(), engine.state.step)
    journal.close()


def bitten(retention: Retention, now: float = 1e9, times: int = 400) -> int:
    """Bites until there is nothing left to do; how many inputs went."""
    went = 0
    for _ in range(times):
        bite = retention.bite(now)
        went += bite.turns
        if not any(bite):
            return went
    raise AssertionError("it never ends")


def replayed(journal: Journal) -> list[int]:
    """The turns that can be fed again; each must decide as it did."""
    fed = []
    for stretch in stretches(journal):
        engine = Engine.restore(stretch.state) if stretch.state else Engine()
        for turn in journal.turns(stretch.after, stretch.last):
            assert same(engine.feed(turn.given), turn.entries), turn.seq
            fed.append(turn.seq)
    return fed


def kept(path: str) -> list[int]:
    """Turns whose inputs are still there."""
    with sqlite3.connect(path) as db:
        found = [seq for (seq,) in db.execute("SELECT seq FROM inputs ORDER BY seq")]
    db.close()
    return found


OLD = f"""
CREATE TABLE turns (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, given BLOB NOT NULL, offsets BLOB NOT NULL, hash BLOB NOT NULL
);
CREATE TABLE entries (
    seq INTEGER NOT NULL, place INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
    body BLOB NOT NULL, PRIMARY KEY (seq, place)
) WITHOUT ROWID;
CREATE INDEX entries_by_id ON entries (id);
CREATE TABLE offsets (source BLOB PRIMARY KEY, position INTEGER NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, hash BLOB NOT NULL, seal BLOB NOT NULL, state BLOB NOT NULL);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = 1;
"""


def old_journal(path: Path, given: list[Input]) -> None:
    """A journal of version 1, whose turns hold their inputs themselves."""
    path.touch(mode=0o600)
    db, engine, before = sqlite3.connect(path), Engine(), GENESIS
    db.executescript(OLD)
    with db:
        for seq, each in enumerate(given, 1):
            rows = [(i, e.id, e.kind, e.subject, encode_entry(e)) for i, e in enumerate(engine.feed(each))]
            before = link(before, seq, type(each).__name__, encode(each), rows, b"{}")
            db.execute(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?)", (seq, type(each).__name__, encode(each), b"{}", before)
            )
            db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", [(seq, *row) for row in rows])
        db.execute("INSERT INTO offsets VALUES (x'FF', ?, ?)", (len(given), len(given)))
    db.close()
