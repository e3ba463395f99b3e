"""The agent's loop: nothing is done before it is written down, and nothing is done that cannot be."""

import json
import os
import sqlite3
from pathlib import Path

import pytest
from agent_runs import NAN, Bench, said

from gyrostat_agent import failpoints, ledgerfile
from gyrostat_agent.cli.options import builtin
from gyrostat_agent.journal import JournalError
from gyrostat_agent.sources.commands import give
from gyrostat_rules.inputs import Batch, Fit, Verb


class Dead(BaseException):
    """The agent's process ends here."""


def test_from_a_nan_to_the_directive_in_one_pass(bench: Bench) -> None:
    """Two skipped steps are read, decided, written down and answered with a directive, all in one pass."""
    control = bench.control()
    agent = bench.agent()
    bench.tell(1)
    bench.skip_twice(2)
    assert agent.once()
    assert bench.directives() == ["1.json"]
    assert [a.result for a in control.apply(4)] == ["applied"] and bench.skipped == [3]
    agent.once()
    assert [e.state for e in said(agent, "action")][:3] == ["planned", "sent", "applied"]


def test_a_pass_without_news_writes_nothing(bench: Bench) -> None:
    """Ticks that change nothing leave no turn behind."""
    agent = bench.agent()
    bench.tell(1)
    agent.once()
    turns = agent.turns
    for _ in range(5):
        bench.now += 1.0
        assert not agent.once()
    assert agent.turns == turns and bench.verdicts.polls == 6
    assert 0.0 <= agent.seconds_to_tick() <= 1.0


def test_a_clock_that_is_set_back_stops_no_tick(bench: Bench) -> None:
    """Time goes on from what the clock says now: what waits for a tick does not wait for the hour to come again."""
    agent = bench.agent()
    bench.tell(1)
    agent.once()
    bench.now -= 5000.0
    assert agent.seconds_to_tick() <= 1.0
    agent.once()
    polls = bench.verdicts.polls
    bench.now += 1.0
    agent.once()
    assert bench.verdicts.polls == polls + 1


@pytest.mark.parametrize("mode", ["observe", "shadow"])
def test_only_mode_act_acts(bench: Bench, mode: str) -> None:
    """The other modes write down what would have been done and lay no directive."""
    bench.control()
    agent = bench.agent(mode=mode)
    bench.skip_twice(1)
    agent.once()
    assert not bench.directives()
    assert [e.state for e in said(agent, "action")] == ["planned", "hold"]


def test_what_cannot_be_written_down_is_not_done(bench: Bench) -> None:
    """The journal refuses the turn: no directive; the next agent reads the same records and acts once."""
    control = bench.control()
    agent = bench.agent()
    bench.skip_twice(1)
    with sqlite3.connect(os.path.join(bench.run.agent, "journal.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="another process is writing"):
            agent.once()
    other.close()
    agent.abandon()
    assert not bench.directives()
    bench.agent().once()
    assert bench.directives() == ["1.json"] and len(control.apply(3)) == 1


@pytest.mark.parametrize("point", ["batch.drained", "batch.decided", "turn.committed", "directive.linked", "bell.rung"])
def test_an_agent_that_dies_anywhere_is_followed_by_one_that_ends_it(
    bench: Bench, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the last one had done, the trainer is told once, and every record is in the journal once."""
    control = bench.control()
    agent = bench.agent()
    bench.skip_twice(1)

    def die(passed: str) -> None:
        if passed == point:
            raise Dead(point)

    monkeypatch.setattr(failpoints, "strike", die)
    with pytest.raises(Dead):
        agent.once()
    monkeypatch.setattr(failpoints, "strike", None)
    agent.abandon()
    after = bench.agent()
    after.once()
    assert len(control.apply(3)) == 1 and bench.skipped == [2]
    after.once()
    told = [i for t in after.journal.turns() if isinstance(t.given, Batch) for i in t.given.items]
    assert [i.step for i in told if type(i).__name__ == "Record"] == [1, 2]
    assert [e.state for e in said(after, "action")] == ["planned", "sent", "applied"]


def test_a_checkpoint_that_went_bad_is_not_gone_back_to(bench: Bench) -> None:
    """Verified a while ago, unfit at the moment of use: no directive to it; the older one is taken."""
    control = bench.control()
    agent = bench.agent()
    for step in range(1, 15):
        bench.tell(step)
    bench.verdicts.tell("/c/2", 2)
    bench.verdicts.tell("/c/4", 4)
    agent.once()
    bench.verdicts.known["/c/4"] = bench.verdicts.known["/c/4"]._replace(fit=Fit.UNFIT, why="truncated")
    bench.tell(15, NAN)
    agent.once()
    control.apply(16)
    assert bench.targets == ["/c/2"]
    assert any("no longer fit: truncated" in e.text for e in said(agent, "action"))


def test_what_is_settled_at_start_is_looked_at_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decided, then death before it was laid; the checkpoint goes bad meanwhile: the next agent takes the older one."""
    control = bench.control()
    agent = bench.agent()
    for step in range(1, 15):
        bench.tell(step)
    bench.verdicts.tell("/c/2", 2)
    bench.verdicts.tell("/c/4", 4)
    agent.once()

    def die(passed: str) -> None:
        if passed == "turn.committed":
            raise Dead(passed)

    bench.tell(15, NAN)
    monkeypatch.setattr(failpoints, "strike", die)
    with pytest.raises(Dead):
        agent.once()
    monkeypatch.setattr(failpoints, "strike", None)
    agent.abandon()
    bench.verdicts.known["/c/4"] = bench.verdicts.known["/c/4"]._replace(fit=Fit.UNFIT, why="truncated")
    after = bench.agent()
    after.once()
    control.apply(16)
    assert bench.targets == ["/c/2"]
    assert any("no longer fit: truncated" in e.text for e in said(after, "action"))


def test_people_are_heard_once(bench: Bench) -> None:
    """A command is obeyed, its file goes, and the next agent does not hear it again."""
    agent = bench.agent()
    bench.tell(1)
    give(bench.run, Verb.PAUSE, {"by": "ada"})
    agent.once()
    assert agent.engine.state.settings.paused
    assert not os.listdir(os.path.join(bench.run.agent, "commands"))
    agent.close()
    again = bench.agent()
    assert again.engine.state.settings.paused
    assert [e.subject for e in said(again, "command")].count("pause") == 1


def test_a_close_leaves_a_snapshot_and_a_ledger(bench: Bench) -> None:
    """The next start need not replay, and the pod may go."""
    control = bench.control()
    agent = bench.agent()
    bench.skip_twice(1)
    agent.once()
    control.apply(3)
    agent.once()
    agent.close()
    again = bench.agent()
    assert again.journal.snapshot() is not None
    facts, why = ledgerfile.read(bench.root)
    assert facts is not None and not why and facts["next_directive"] == 2


def test_a_pod_that_was_lost(bench: Bench, tmp_path: Path) -> None:
    """A new run directory beside old checkpoints: the ledger's numbers and budgets go on."""
    control = bench.control()
    agent = bench.agent()
    bench.skip_twice(1)
    agent.once()
    control.apply(3)
    for step in range(3, 20):
        bench.tell(step)
    agent.once()
    agent.close()
    (tmp_path / "pod").mkdir()
    lost = Bench(tmp_path / "pod", lambda: bench.now, bench.root)
    lost.control()
    new = lost.agent(pack_text=builtin().replace("{actions: 3, steps: 200}", "{actions: 1, steps: 200}"))
    lost.skip_twice(20)
    new.once()
    state = new.engine.state
    assert (state.next_directive, len(state.deeds), state.settings.distrust) == (2, 1, "")
    for _ in range(2):  # half a minute, in which what the ledger does not hold is seen again
        lost.now += 20.0
        new.once()
    assert "the budget is spent" in str([e.text for e in new.journal.entries()]) and not lost.directives()
    lost.close()


def test_an_engine_that_lost_its_memory_knows_its_trainer(bench: Bench) -> None:
    """The journal cannot be read: observe only; once a person trusts it, the trainer at hand is given directives."""
    control = bench.control()
    agent = bench.agent()
    bench.tell(1)
    agent.once()
    agent.abandon()
    with sqlite3.connect(os.path.join(bench.run.agent, "journal.db")) as db:
        db.execute("UPDATE turns SET given = x'00' WHERE kind = 'Batch'")
    db.close()
    bench.skip_twice(2)
    after = bench.agent()
    after.once()
    assert "chain is broken" in after.engine.state.settings.distrust and not bench.directives()
    give(bench.run, Verb.TRUST, {"by": "ada", "reason": "looked"})
    bench.now += 1.0
    after.once()
    assert len(control.apply(4)) == 1 and bench.skipped == [3]
    after.abandon()
    again = bench.agent()  # a broken chain stays broken: what was looked into is not asked again at every start
    again.once()
    assert again.engine.state.settings.distrust == ""


@pytest.mark.parametrize("ledger", ["{", "[]", '{"version": 99}'], ids=["no JSON", "no mapping", "another version"])
def test_a_ledger_that_cannot_be_read(bench: Bench, ledger: str) -> None:
    """There was a life before, and nothing of it is known: observe only."""
    folder = Path(bench.root, ".gyrostat")
    folder.mkdir(mode=0o700)
    (folder / "ledger.json").write_text(ledger)
    (folder / "ledger.json").chmod(0o600)
    bench.control()
    agent = bench.agent()
    bench.skip_twice(1)
    agent.once()
    assert agent.engine.state.settings.distrust and not bench.directives()


def test_a_trainer_that_has_obeyed_others_before(bench: Bench) -> None:
    """Its Hello names a directive that no journal here knows: observe only."""
    bench.telemetry.introduce((), (), 7, 1)
    bench.telemetry.say()
    agent = bench.agent()
    bench.tell(1)
    agent.once()
    assert "has a history" in agent.engine.state.settings.distrust


def test_an_agent_that_died_before_the_first_hello_still_looks_for_the_ledger(bench: Bench) -> None:
    """A journal that holds nothing but its own beginning is no history: the ledger counts."""
    ledgerfile.write(bench.root, {**json.loads(FACTS), "next_directive": 9}, "0:")
    bench.agent().abandon()
    bench.control()
    agent = bench.agent()
    bench.tell(1)
    agent.once()
    assert agent.engine.state.next_directive == 9


FACTS = """{"version": 1, "run": "run", "next_directive": 1, "incident_count": 0, "incidents": [], "deeds": [],
 "closed": [], "jumps": [], "segment": 0}"""
