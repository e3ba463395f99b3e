"""``gyrostat arm`` and ``gyrostat disarm``: on evidence or for a reason, refused in words, and true on a real run."""

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_runs import NAN
from cli_runs import Run, calling, one_line
from shadow_runs import POISON, Shadowed
from supervised_runs import DEADLINE

from gyrostat_agent import failpoints, statusfile
from gyrostat_agent.armedrules import armed
from gyrostat_agent.cli.options import builtin, digest_of
from gyrostat_agent.rundir import Lock
from gyrostat_exporters.view import Tally, view
from gyrostat_rules.entries import Entry

Make = Callable[..., Shadowed]


class Dead(Exception):
    """The agent ends here."""


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes runs, by name."""
    made: list[Shadowed] = []

    def run(name: str = "run", **how: object) -> Shadowed:
        made.append(Shadowed(tmp_path, name, **how))  # type: ignore[arg-type]
        return made[-1]

    yield run
    for one in made:
        one.close()


@pytest.fixture
def past(make: Make, tmp_path: Path) -> str:
    """A folder with what four runs say that died of it: 4 hits of 4, at least 51 %."""
    (tmp_path / "past").mkdir(mode=0o700)
    for number in range(4):
        make(f"past/{number}").ill(5).ends(1).end()
    return str(tmp_path / "past")


@contextlib.contextmanager
def watched(run: Shadowed) -> Iterator[None]:
    """Its agent passes again and again, and holds the run, so that a word is answered."""
    lock, up, ending, failed = Lock(run.bench.run), threading.Event(), threading.Event(), list[BaseException]()
    run.watcher.abandon()  # a journal stays in the thread that opened it: the agent is begun anew in that one
    run.bench.agents.remove(run.watcher)

    def live() -> None:
        try:
            run.watcher = run.bench.agent(mode="shadow")
            up.set()
            while not ending.wait(0.002):
                run.watcher.once()
            run.watcher.close()
            run.bench.agents.remove(run.watcher)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=live)
    thread.start()
    try:
        assert up.wait(DEADLINE)
        yield
    finally:
        ending.set()
        thread.join()
        lock.release()
        run.watcher = run.bench.agent(mode="shadow")
    assert not failed


def words_of(run: Shadowed, verb: str) -> list[Entry]:
    """What was said to a word of people's."""
    return [e for e in run.watcher.journal.entries(kinds=("command",)) if e.subject == verb]


# -- on evidence --------------------------------------------------------------------------------------


def test_evidence_that_passes_arms(cli: Run, make: Make, past: str) -> None:
    """The row, the agent's answer, and in the journal who, on what; the run's incident is then acted on."""
    run = make()
    with watched(run):
        status, out, _ = cli("arm", POISON, run.bench.run.path, "--evidence", past, "--least", "0.5")
    assert status == 0 and f"armed {POISON}: 4 hits of 4 in 4 runs, at least 51.0% (95 %)" in out
    (said,) = words_of(run, "arm")
    assert said.data["arguments"]["by"] and "4 hits of 4" in said.data["arguments"]["evidence"]
    run.ill()
    assert run.bench.targets == ["/c/10"]


def test_an_unarmed_run_is_left_alone(make: Make) -> None:
    """The same run without the word: planned, held, and no directive."""
    run = make().ill(2)
    assert run.bench.targets == [] and run.bench.directives() == []


def test_evidence_that_does_not_pass_arms_nothing(cli: Run, make: Make, past: str) -> None:
    """Status 1, the row, and how many more hits it would need; nothing is said to the agent."""
    run = make()
    with watched(run):
        status, out, err = cli("arm", POISON, run.bench.run.path, "--evidence", past)
    assert (status, err) == (1, "")
    assert POISON in out and "at least 51.0% were called for, and 90.0% is asked; 31 more hits" in out
    assert words_of(run, "arm") == []


def test_nothing_of_nothing_is_no_evidence(cli: Run, make: Make) -> None:
    """Whatever little is asked."""
    run = make()
    status, out, _ = cli("arm", POISON, run.bench.run.path, "--least", "0.001")
    assert status == 1 and "0 of 0 is no evidence" in out


def test_the_runs_own_journal_counts(cli: Run, make: Make) -> None:
    """What this run itself has shown is evidence, without any folder."""
    run = make().ill(52)
    status, out, _ = cli("arm", POISON, run.bench.run.path, "--least", "0.2")
    assert status == 0 and "laid down" in out


def test_another_declaration_is_no_evidence_of_this_one(cli: Run, make: Make, past: str) -> None:
    """Runs whose rule had another playbook say nothing of this one."""
    run = make()
    text = builtin().replace("cooldown: 5", "cooldown: 7")
    assert text != builtin()
    run.again(pack_text=text, pack_digest=digest_of(text))
    status, out, _ = cli("arm", POISON, run.bench.run.path, "--evidence", past, "--least", "0.5")
    assert status == 1 and "0 of 0" in out


def test_damaged_evidence_is_named(cli: Run, make: Make, past: str) -> None:
    """It arms on what is whole, and says what was left out."""
    Path(past, "odd.json").write_text("{")
    run = make()
    out = cli("arm", POISON, run.bench.run.path, "--evidence", past, "--least", "0.5")[1]
    assert "left out: " in out and "odd.json" in out


# -- for a reason -------------------------------------------------------------------------------------


def test_a_reason_goes_without_the_bound(cli: Run, make: Make) -> None:
    """It stands in the journal with who gave it, and in the status, the ledger and the incidents."""
    run = make()
    with watched(run):
        status, out, _ = cli("arm", POISON, run.bench.run.path, "--reason", "I sit beside it")
    assert status == 0 and f"armed {POISON}: I sit beside it" in out
    assert words_of(run, "arm")[0].data["arguments"]["reason"] == "I sit beside it"
    ledger = json.loads(Path(run.bench.root, ".gyrostat", "ledger.json").read_text())
    assert "reason: I sit beside it" in ledger["armed"][POISON]
    assert f"armed {POISON}" in cli("incidents", run.bench.run.path)[1]


def test_an_empty_reason_is_none(cli: Run, make: Make) -> None:
    """Blanks do not arm."""
    run = make()
    assert cli("arm", POISON, run.bench.run.path, "--reason", "  ")[0] == 1


# -- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule, said",
    [("Nobody", "has no rule 'Nobody'"), ("LossSpike", "opens no incident"), ("TrainerStalled", "only asks a person")],
)
def test_a_rule_that_cannot_be_armed(cli: Run, make: Make, rule: str, said: str) -> None:
    """Status 2 and why, for a reason too."""
    run = make()
    status, out, err = cli("arm", rule, run.bench.run.path, "--reason", "please")
    assert (status, out) == (2, "")
    one_line(err, said)


@pytest.mark.parametrize(("mode", "said"), [("observe", "in it nothing acts"), ("act", "every rule acts already")])
def test_only_shadow_can_be_armed(cli: Run, make: Make, mode: str, said: str) -> None:
    """In the other modes nothing acts, or all does, whatever is armed."""
    run = make(mode=mode)
    status, _, err = cli("arm", POISON, run.bench.run.path, "--reason", "please")
    assert status == 2
    one_line(err, f"mode is {mode}", said)


def test_disarming_what_is_not_armed(cli: Run, make: Make) -> None:
    """Status 2 and what is."""
    run = make()
    with watched(run):
        status, _, err = cli("disarm", POISON, run.bench.run.path)
    assert status == 2
    one_line(err, "is not armed; armed now: none")


def test_a_broken_journal_arms_nothing(cli: Run, make: Make) -> None:
    """Status 4: what is on the disk does not add up."""
    run = make().end()
    with sqlite3.connect(run.journal) as db:
        db.execute("UPDATE turns SET hash = x'00' WHERE seq = 3")
    db.close()
    status, _, err = cli("arm", POISON, run.bench.run.path, "--reason", "please")
    assert status == 4
    one_line(err, "chain is broken at turn 3")


# -- what it outlives ---------------------------------------------------------------------------------


def test_it_outlives_the_agent(make: Make) -> None:
    """Killed and begun again, it still acts."""
    run = make().says("arm", rule=POISON, reason="test").again(approvals=False).ill()
    assert run.bench.targets == ["/c/10"]


@pytest.mark.parametrize("rule, laid", [(POISON, 1), ("RewardCollapsed", 0)], ids=["armed", "another"])
def test_an_intent_of_an_armed_rule_is_settled(
    make: Make, monkeypatch: pytest.MonkeyPatch, rule: str, laid: int
) -> None:
    """Decided, and dead before it was laid: the next agent lays it once, in shadow too. Unarmed there is no intent."""
    run = make().says("arm", rule=rule, reason="test")

    def die(passed: str) -> None:
        if passed == "turn.committed":
            raise Dead(passed)

    monkeypatch.setattr(failpoints, "strike", die)
    run.bench.telemetry.record(21, loss=NAN, step_applied=1.0, params_finite=1.0)
    with pytest.raises(Dead):
        run.watcher.once()
    monkeypatch.setattr(failpoints, "strike", None)
    assert run.bench.directives() == []
    assert len(run.again(approvals=False).bench.directives()) == laid
    assert len(run.again(approvals=False).bench.directives()) == laid


def test_it_outlives_the_pod(make: Make) -> None:
    """The run directory is lost; the ledger beside the checkpoints is not."""
    old = make().says("arm", rule=POISON, reason="test").end()
    new = make("again", last=0, root=old.bench.root)
    new.look()
    new.bench.verdicts.tell("/c/10", 10)
    assert POISON in new.watcher.engine.state.settings.armed
    new.bench.now += 60.0
    new.well(20).ill()
    assert new.bench.targets == ["/c/10"]


def test_disarmed_it_acts_no_more(make: Make) -> None:
    """At once, and over a restart too."""
    run = make().says("arm", rule=POISON, reason="test").says("disarm", rule=POISON).again(approvals=False).ill()
    assert run.bench.targets == []


# -- where it is shown --------------------------------------------------------------------------------


def test_status_and_supervisor_see_it(cli: Run, make: Make) -> None:
    """``gyrostat status`` names it with its words; the supervisor reads the same file."""
    run = make().says("arm", rule=POISON, reason="seen enough")
    shown = view(run.watcher.engine.state, Tally(), {}, ())
    statusfile.write(run.bench.run, shown, "")
    assert armed(run.bench.run) == (POISON,)
    assert f"armed     {POISON}: reason: seen enough; by Ada" in cli("status", run.bench.run.path)[1]
    statusfile.write(run.bench.run, shown._replace(paused=True), "")
    assert armed(run.bench.run) == ()
    statusfile.write(run.bench.run, shown._replace(mode="observe"), "")
    assert armed(run.bench.run) == ()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mode": "shadow"}', "[" * 100_000])
def test_a_supervisor_believes_no_odd_status(make: Make, text: str) -> None:
    """Nothing is held back on the word of half a file."""
    run = make()
    path = Path(run.bench.run.agent, "status.json")
    path.write_text(text)
    path.chmod(0o600)
    assert armed(run.bench.run) == ()


def test_a_supervisor_believes_no_file_that_others_may_write(make: Make) -> None:
    """Whoever could write it could have the exit of a dead trainer held back."""
    run = make().says("arm", rule=POISON, reason="seen enough")
    statusfile.write(run.bench.run, view(run.watcher.engine.state, Tally(), {}, ()), "")
    os.chmod(os.path.join(run.bench.run.agent, "status.json"), 0o666)
    assert armed(run.bench.run) == ()
