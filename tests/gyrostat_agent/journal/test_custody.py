"""Custody: an agent whose journal is kept small decides, restarts and mends as any other, and notes its heads."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from agent_runs import Bench
from kept_runs import kept

from gyrostat_agent import failpoints, ledgerfile
from gyrostat_agent.custody import EVERY
from gyrostat_agent.journal import JournalError
from gyrostat_agent.journal import retention as retaining
from gyrostat_agent.loop import Agent
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Verb

SMALL = {"journal_bytes": 1, "snapshot_turns": 20}


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs of some hundred steps: nothing is looked back at for long, and every free page is given back."""
    monkeypatch.setattr(retaining, "LOOKBACK", 30)
    monkeypatch.setattr(retaining, "SPAN", 32)
    monkeypatch.setattr(retaining, "_LEAST_FREE", 2)
    yield
    failpoints.strike = None


def journal_path(bench: Bench) -> str:
    return os.path.join(bench.run.agent, "journal.db")


def steps(bench: Bench, agent: Agent, first: int, last: int) -> None:
    """One pass a step, a second each."""
    for step in range(first, last + 1):
        bench.now += 1.0
        bench.tell(step)
        agent.once()


def test_a_small_journal_changes_nothing_that_is_decided(bench: Bench) -> None:
    """What was told goes while the run goes on; a restart stands where the last agent stood, and mends what comes."""
    control, agent = bench.control(), bench.agent(**SMALL)
    steps(bench, agent, 1, 300)
    assert len(kept(journal_path(bench))) < 150 and agent.journal.verify().ok
    state = agent.engine.snapshot()
    agent.abandon()
    again = bench.agent(**SMALL)
    assert not again.engine.state.settings.distrust
    assert again.engine.state.step == 300 and len(again.engine.snapshot()) >= len(state) - 100
    bench.skip_twice(301)
    again.once()
    assert bench.directives() == ["1.json"]
    control.apply(303)
    steps(bench, again, 303, 330)
    assert [e.state for e in again.journal.entries(kinds=(EntryKind.INCIDENT,))][-1] == "resolved"
    steps(bench, again, 331, 500)
    assert kept(journal_path(bench))[0] > 300 and again.journal.verify().ok


@pytest.mark.parametrize("point", failpoints.RETENTION_POINTS)
@pytest.mark.parametrize("times", [1, 3])
def test_an_agent_that_dies_in_a_bite_is_followed(bench: Bench, point: str, times: int) -> None:
    """Killed while it lets something go: the next one trusts what it finds, loses nothing and goes on."""
    left = times

    def strike(name: str) -> None:
        nonlocal left
        left -= name == point
        if left == 0:
            raise Crash

    agent = bench.agent(**SMALL)
    failpoints.strike = strike
    with pytest.raises(Crash):
        steps(bench, agent, 1, 400)
    failpoints.strike = None
    agent.abandon()
    again = bench.agent(**SMALL)
    last = again.engine.state.step
    assert not again.engine.state.settings.distrust and last > 10
    steps(bench, again, last + 1, last + 100)
    assert again.engine.state.step == last + 100
    assert again.journal.verify().ok


def test_what_cannot_go_stops_nothing(bench: Bench) -> None:
    """A disk that takes no deletion: it is said once, every step is committed all the same, and later it is made up."""
    agent = bench.agent(**SMALL)
    steps(bench, agent, 1, 10)
    with closing(sqlite3.connect(journal_path(bench))) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE DELETE ON inputs BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
    steps(bench, agent, 11, 200)
    said = [e.text for e in agent.journal.entries(kinds=(EntryKind.SOURCE,)) if "journal" in e.text]
    assert len(said) == 1 and "disk is full" in said[0]
    assert agent.engine.state.step == 200 and len(kept(journal_path(bench))) > 200
    with closing(sqlite3.connect(journal_path(bench))) as other:
        other.execute("DROP TRIGGER full")
    steps(bench, agent, 201, 260)
    assert len(kept(journal_path(bench))) < 150
    assert "let go again" in [e.text for e in agent.journal.entries(kinds=(EntryKind.SOURCE,))][-1]


def test_evidence_is_kept(bench: Bench) -> None:
    """A run that is distrusted is somebody's to look into: nothing of its journal goes until it is trusted."""
    agent = bench.agent(snapshot_turns=20)
    steps(bench, agent, 1, 200)
    agent.close()
    with closing(sqlite3.connect(journal_path(bench))) as db, db:
        db.execute("UPDATE turns SET kind = 'Tick' WHERE seq = 150")
    again = bench.agent(**SMALL)
    assert again.engine.state.settings.distrust
    steps(bench, again, 201, 260)
    assert len(kept(journal_path(bench))) > 250
    assert again.journal.gone() == []
    assert Verb.DISTRUST in [e.subject for e in again.journal.entries(kinds=(EntryKind.COMMAND,))]


def test_a_damaged_journal_is_written_on(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What custody cannot read is a fault that is told, and not the end of the agent."""

    def broken(*_: object) -> None:
        raise JournalError("it cannot be read")

    monkeypatch.setattr("gyrostat_agent.custody.Retention", broken)
    agent = bench.agent(snapshot_turns=20)
    steps(bench, agent, 1, 50)
    assert agent.engine.state.step == 50 and agent.journal.snapshot() is not None
    assert "it cannot be read" in str([e.text for e in agent.journal.entries(kinds=(EntryKind.SOURCE,))])


def test_a_snapshot_that_is_not_read_is_no_guess(bench: Bench) -> None:
    """Another version's states, and the first inputs gone: the agent only observes, and says what is missing."""
    agent = bench.agent(**SMALL)
    steps(bench, agent, 1, 200)
    for (seq,) in agent.journal.read("SELECT seq FROM snapshots"):
        agent.journal.save_snapshot(seq, b'["of another version"]', 1, keep=range(300))
    agent.abandon()
    again = bench.agent(**SMALL)
    assert "were let go on" in again.engine.state.settings.distrust and again.journal.verify().ok
    steps(bench, again, 201, 210)
    assert again.journal.verify().ok


def heads(bench: Bench) -> list[str]:
    written, _ = ledgerfile.read(bench.root)
    assert written is not None
    return ledgerfile.heads_of(written)


def test_heads_are_noted_in_the_ledger(bench: Bench) -> None:
    """At each incident and action, and every so many turns: few, the newest first, each one the chain passes."""
    agent = bench.agent()
    steps(bench, agent, 1, EVERY + 50)
    quiet = heads(bench)
    assert f"{EVERY}:" in str(quiet)
    bench.skip_twice(EVERY + 51)
    agent.once()
    noted = heads(bench)
    assert noted[0] == agent.journal.head() == agent.custody.heads[-1] and set(noted) > {agent.custody.heads[-1]}
    assert len(noted) <= 9 and agent.journal.verify(*noted).ok


def test_a_ledger_of_which_one_head_is_not_passed_is_doubted(bench: Bench) -> None:
    """The newest head is the journal's own, an older one is not: history was rewritten, and the agent only observes."""
    agent = bench.agent()
    steps(bench, agent, 1, 20)
    agent.close()
    written, _ = ledgerfile.read(bench.root)
    assert written is not None
    facts = {name: value for name, value in written.items() if not name.startswith("journal_head")}
    ledgerfile.write(bench.root, facts, agent_head(bench), heads=["7:" + "ab" * 16])
    again = bench.agent()
    assert "turn 7 of a journal that is not here" in again.engine.state.settings.distrust


def agent_head(bench: Bench) -> str:
    with closing(sqlite3.connect(journal_path(bench))) as db:
        seq, digest = db.execute("SELECT seq, hash FROM turns ORDER BY seq DESC").fetchone()
    return f"{seq}:{digest.hex()}"
