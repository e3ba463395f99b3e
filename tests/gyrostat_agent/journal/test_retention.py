"""Retention: what the journal lets go, what it keeps, and that no moment of it is a bad one to die in."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from journal_runs import batch, opened
from kept_runs import DAY, EVERY, bitten, inputs, kept, old_journal, replayed, written

from gyrostat_agent import failpoints
from gyrostat_agent.errors import DistrustError
from gyrostat_agent.journal import GoneError, Journal, JournalError
from gyrostat_agent.journal import retention as retaining
from gyrostat_agent.journal.retention import BITE_BYTES, BITE_TURNS, LOOKBACK, Retention
from gyrostat_agent.journal.windows import AFTER, BEFORE
from gyrostat_agent.recovery import rebuilt
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Tick

STEPS = 1200
SMALL = 1  # byte: as much as may go, goes


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a journal may be."""
    return str(tmp_path / "journal.db")


@pytest.fixture(autouse=True)
def _unarmed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """These journals are small: what is free in them is given back all the same."""
    monkeypatch.setattr(retaining, "_LEAST_FREE", 2)
    monkeypatch.setattr(retaining, "BITE_PAGES", 4)
    yield
    failpoints.strike = None


def test_nothing_goes_within_the_bounds(path: str) -> None:
    """A young and small journal keeps every input: all of it can be fed again from the first turn."""
    journal, retention = written(path, 300, days=14, most=1 << 30)
    assert bitten(retention, now=300.0) == 0
    assert replayed(journal) == list(range(1, 303))
    assert journal.gone() == []


def test_what_is_beyond_the_bytes_goes_and_the_rest_proves_itself(path: str) -> None:
    """The oldest inputs go, the chain holds, and it is said which went, when, by whom and why."""
    journal, retention = written(path, STEPS, most=SMALL)
    entries, before = list(journal.entries()), journal.head()
    went = bitten(retention, now=5e5)
    assert went > STEPS / 2
    assert journal.verify() == (True, STEPS + 2, 0, "") == opened(path, readonly=True).verify(before)
    assert list(journal.entries()) == entries
    first, *_ = said = journal.gone()
    assert (first.first, first.at, first.by, first.why) == (1, 5e5, "the agent", "over 1 bytes")
    assert kept(path) == list(range(said[-1].last + 1, STEPS + 3))


def test_the_inputs_that_a_restart_needs_stay(path: str) -> None:
    """From the newest snapshot, and from the one before it, the engine is what it was."""
    journal, retention = written(path, STEPS, most=SMALL)
    whole = rebuilt(journal, believe_snapshot=False).snapshot()
    bitten(retention)
    assert rebuilt(journal, believe_snapshot=True).snapshot() == whole
    newest = journal.snapshot()
    assert newest is not None
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE snapshots SET state = x'00' WHERE seq = ?", (newest[0],))
    assert rebuilt(journal, believe_snapshot=True).snapshot() == whole
    assert replayed(journal)[-1] == STEPS + 2


def test_what_cannot_be_fed_again_is_said(path: str) -> None:
    """Whoever asks for the first turns learns that they are gone, through whom, and not a wrong state."""
    journal, retention = written(path, STEPS, most=SMALL)
    bitten(retention, now=86400.0 * 365)
    with pytest.raises(GoneError, match=r"turns 1 to \d+ were let go on 1971-01-01 by the agent \(over 1 bytes\)"):
        next(journal.turns())
    with pytest.raises((JournalError, DistrustError), match="let go"):
        rebuilt(journal, believe_snapshot=False)


def test_a_broken_chain_is_rebuilt_from_before_the_break(path: str) -> None:
    """With the first inputs gone, a snapshot that the chain still proves is where an agent begins again."""
    journal, retention = written(path, STEPS, most=SMALL)
    whole = rebuilt(journal, believe_snapshot=True).snapshot()
    bitten(retention)
    assert rebuilt(journal, believe_snapshot=False, below=STEPS).snapshot() == whole
    with pytest.raises(GoneError):
        rebuilt(journal, believe_snapshot=False, below=2)


def test_days_let_go_what_is_old_and_nothing_else(path: str) -> None:
    """An input's age is its own time: with days alone, what is younger stays however large the file."""
    journal, retention = written(path, STEPS, days=1)
    assert bitten(retention, now=DAY + 200) == 0
    assert bitten(retention, now=DAY + 300) == 256
    assert kept(path)[0] == 257
    assert journal.gone()[0].why == "older than 1 days"


def test_the_inputs_around_an_incident_stay(path: str) -> None:
    """Months later the incident is fed again, from a snapshot well before its onset, and decides as it did."""
    journal, retention = written(path, STEPS, poisoned=(500,), days=1)
    bitten(retention)
    opened_at = next(t.seq for t in journal.turns(400, 600) if any(e.kind == "incident" for e in t.entries))
    fed = set(replayed(journal))
    assert set(range(opened_at - BEFORE, opened_at + 100)) <= fed
    assert min(fed) >= opened_at - BEFORE - 2 * EVERY and 1 not in fed
    assert journal.verify().ok
    last = max(e.step for e in journal.entries(kinds=("incident",)))
    assert last + AFTER // 2 in {seq - 2 for seq in fed}


def test_a_restarted_agent_keeps_the_same(path: str) -> None:
    """What is kept is read from the journal itself: whoever opens it next lets nothing more go."""
    journal, retention = written(path, STEPS, poisoned=(300, 700), days=1)
    bitten(retention)
    before = kept(path)
    again = Retention(opened(path), 1, 0)
    assert bitten(again) == 0
    assert kept(path) == before
    assert again.wanted(STEPS) == retention.wanted(STEPS)
    journal.close()


def test_under_the_bytes_the_oldest_incident_goes_first_and_its_decisions_stay(path: str) -> None:
    """A cap that the incidents alone exceed is held all the same: by the oldest one's inputs, said as such."""
    journal, retention = written(path, STEPS, poisoned=(150, 600), most=SMALL)
    told = [e for e in journal.entries() if e.kind in ("incident", "action")]
    bitten(retention)
    assert [e for e in journal.entries() if e.kind in ("incident", "action")] == told
    reasons = list(dict.fromkeys(said.why for said in journal.gone()))
    assert reasons == ["over 1 bytes", "over 1 bytes, with nothing else to let go"]
    assert journal.verify().ok


def test_an_open_incident_is_never_let_go(path: str) -> None:
    """What waits for a person can be looked into when the person comes, however full the disk is meanwhile."""
    journal = opened(path)
    retention = Retention(journal, 0, SMALL)
    for number in range(1, 1501):
        told = [Entry("e", 0.0, 400, "incident", "i0001", "held", "", {"onset": 400})] if number == 400 else []
        retention.see(journal.commit(batch(number), told, {}), told)
        if number % EVERY == 0:
            retention.save(number, b"state", number)
    bitten(retention)
    assert set(range(400 - BEFORE, 400 + AFTER + 1)) <= set(kept(path))
    assert not {1, 250, 400 + AFTER + 1, 900} & set(kept(path))


def test_a_bite_is_small(path: str) -> None:
    """However much there is to let go, one tick does a bounded piece of it."""
    _, retention = written(path, STEPS, most=SMALL)
    bites = [retention.bite(1e9) for _ in range(30)]
    assert max(b.turns for b in bites) <= BITE_TURNS
    assert max(b.bytes for b in bites) <= BITE_BYTES + (1 << 16)
    assert sum(b.turns for b in bites) > BITE_TURNS


def test_snapshots_are_bounded(path: str) -> None:
    """Many turns a step, few, or going back: what is kept reaches back far enough, and is never many."""
    journal = opened(path)
    retention = Retention(journal, 0, 0)
    for number in range(1, 2001):
        journal.commit(Tick(1.0), [], {})
        step = number // 2 if number < 1500 else number - 1000
        if number % 20 == 0:
            retention.save(number, b"state", step)
            steps = [each for (each,) in journal.read("SELECT step FROM snapshots")]
            assert len(steps) <= 9
            assert min(steps) <= (max(10, step - LOOKBACK) if number < 1500 else step)
    assert len(steps) > 4


def test_the_file_becomes_smaller(tmp_path: Path) -> None:
    """What was let go is given back to the file system, and not only marked as free."""
    path = str(tmp_path / "journal.db")
    journal, retention = written(path, STEPS, most=1)
    journal.read("PRAGMA wal_checkpoint(TRUNCATE)")
    before = os.path.getsize(path)
    bitten(retention)
    journal.read("PRAGMA wal_checkpoint(TRUNCATE)")
    assert os.path.getsize(path) < 0.9 * before


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("turn", [1, 2, 3])
@pytest.mark.parametrize("point", failpoints.RETENTION_POINTS)
def test_no_moment_is_a_bad_one_to_die_in(path: str, point: str, turn: int) -> None:
    """Killed inside a bite: the journal verifies, the engine is what it was, and the next agent finishes the piece."""
    journal, retention = written(path, STEPS, poisoned=(1000,), most=SMALL)
    whole = rebuilt(journal, believe_snapshot=True).snapshot()
    left = turn

    def strike(name: str) -> None:
        nonlocal left
        left -= name == point
        if left == 0:
            raise Crash

    failpoints.strike = strike
    with pytest.raises(Crash):
        bitten(retention)
    failpoints.strike = None
    journal.close()
    again = opened(path)
    assert again.verify().ok
    assert rebuilt(again, believe_snapshot=True).snapshot() == whole
    follower = Retention(again, 0, SMALL)
    bitten(follower)
    assert again.verify().ok
    assert again.commit(inputs(1)[-1], [], {}) == STEPS + 3
    assert opened(path).verify().ok
    assert not [seq for said in again.gone() for seq in kept(path) if said.first <= seq <= said.last]


def test_an_old_journal_goes_on(tmp_path: Path) -> None:
    """An older Gyrostat's journal is read as it is, written on, and its own inputs stay; later ones are let go."""
    path, given = tmp_path / "journal.db", inputs(STEPS)
    old_journal(path, given[:100])
    before = path.read_bytes()
    reader = opened(str(path), readonly=True)
    assert reader.verify() == (True, 100, 0, "") and reader.gone() == []
    assert replayed(reader) == list(range(1, 101))
    reader.close()
    assert path.read_bytes() == before
    journal = opened(str(path))
    retention, engine = Retention(journal, 0, SMALL), rebuilt(journal, believe_snapshot=True)
    for each in given[100:]:
        seq = journal.commit(each, engine.feed(each), {})
        if seq % EVERY == 0:
            retention.save(seq, engine.snapshot(), engine.state.step)
    assert bitten(retention) > 500
    assert journal.verify() == (True, STEPS + 2, 0, "")
    assert next(journal.turns(99)).seq == 100 and kept(str(path))[0] > 101
    assert rebuilt(journal, believe_snapshot=True).snapshot() == engine.snapshot()


def test_an_old_gyrostat_refuses_a_new_journal(path: str) -> None:
    """Its version says that it is another: what cannot be read there is not misread."""
    written(path, 1)[0].close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_finished_run_is_compacted(path: str) -> None:
    """By hand all that nothing needs goes at once, as much as was foretold, and the file is as small as it can be."""
    journal, _ = written(path, STEPS, poisoned=(500,))
    keeping = Retention(journal, 0, 0, "me")
    told, before = keeping.prospect(), keeping.used()
    done = keeping.finish(7.0)
    assert told[:2] == done[:2] and told.turns > 400
    assert {(s.by, s.why) for s in journal.gone()} == {("me", "nothing needs them")}
    assert keeping.used() < before and journal.read("PRAGMA freelist_count") == [(0,)]
    assert journal.verify().ok and keeping.prospect() == (0, 0, 0)
    assert Journal is type(journal) and 500 in replayed(journal)
