"""A person's word, as a person gives it: without the run directory, and with the agent's answer printed."""

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_runs import NAN, Bench
from cli_runs import Run, calling, one_line
from supervised_runs import until
from word_runs import watched

from gyrostat_agent.journal import Journal
from gyrostat_agent.rundir import Lock
from gyrostat_rules.entries import Entry


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This user's folder of run directories, where there is no tmpfs."""
    real = os.access
    monkeypatch.setattr("os.access", lambda path, mode: path != "/dev/shm" and real(path, mode))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made = tmp_path / f"gyrostat-{os.geteuid()}"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def benches(home: Path) -> Iterator[Callable[[str], Bench]]:
    """Makes runs in that folder, by name."""
    made: list[Bench] = []

    def make(name: str) -> Bench:
        made.append(Bench(home, time.time, root=str(home.parent / f"checkpoints of {name}"), name=name))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


def entries(bench: Bench, kind: str) -> list[Entry]:
    """All entries of a kind, read as another process would."""
    path = os.path.join(bench.run.agent, "journal.db")
    return list(Journal(path, readonly=True).entries(kinds=(kind,)))


def test_approve_as_the_engine_prints_it(cli: Run, benches: Callable[[str], Bench]) -> None:
    """The line that the agent says is the line to type: it finds the run, and says that the word was heard; once."""
    bench = benches("one")
    bench.control()
    for step in range(1, 15):
        bench.tell(step)
    bench.verdicts.tell("/c/2", 2)
    with watched(bench, approvals=True):
        until(lambda: entries(bench, "checkpoint"))
        bench.tell(15, NAN)
        until(lambda: [e for e in entries(bench, "action") if e.state == "hold"])
        (held,) = [e for e in entries(bench, "action") if e.state == "hold"]
        (words,) = re.findall(r"gyrostat (approve \S+)", held.text)
        status, out, _ = cli(*words.split())
        assert status == 0 and f"approved {held.subject}" in out
        status, _, err = cli(*words.split())
        assert status == 2
        one_line(err, f"no action {held.subject!r} waits for a word")


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_a_word_for_nothing_is_refused(cli: Run, benches: Callable[[str], Bench], verb: str) -> None:
    """A wrong id is status 2 and the agent's own sentence, not a word that vanishes."""
    with watched(benches("one")):
        status, out, err = cli(verb, "i9")
    assert (status, out) == (2, "")
    one_line(err, "no action 'i9' waits for a word", "gyrostat status")


@pytest.mark.parametrize(
    "words", [("pause",), ("resume",), ("trust", "--reason", "seen")], ids=["pause", "resume", "trust"]
)
def test_the_answer_is_printed(cli: Run, benches: Callable[[str], Bench], words: tuple[str, ...]) -> None:
    """Each word is answered out of the journal."""
    with watched(bench := benches("one")):
        status, out, _ = cli(*words)
        (said,) = [e for e in entries(bench, "command") if e.subject == words[0]]
    assert status == 0 and out == f"{said.text}\n"


@pytest.mark.parametrize("words", ["status", "incidents", "replay --quiet", "journal verify"])
def test_the_one_run_is_found(cli: Run, benches: Callable[[str], Bench], words: str) -> None:
    """Where one agent of this user watches, whoever looks need not say where; past runs are not meant."""
    benches("past").agent().close()
    with watched(benches("one")):
        status, out, err = cli(*words.split())
    assert status == (1 if words == "status" else 0) and "RUN_DIR" not in out + err, err


def test_several_runs_are_listed(cli: Run, benches: Callable[[str], Bench]) -> None:
    """Two agents: nobody guesses which is meant."""
    one, two = benches("one"), benches("two")
    with watched(one), watched(two):
        status, _, err = cli("pause")
        assert not entries(one, "command")[1:] and not entries(two, "command")[1:]
    assert status == 2
    one_line(err, one.run.path, two.run.path, "give RUN_DIR")


def test_no_run_is_said(cli: Run, benches: Callable[[str], Bench], home: Path) -> None:
    """No agent: where it was looked for, and what lies there of the past."""
    past = benches("past")
    past.agent().close()
    status, _, err = cli("approve", "i0001.1")
    assert status == 2
    one_line(err, str(home), past.run.path, "GYROSTAT_RUN_DIR")


def test_the_environment_says_which(cli: Run, benches: Callable[[str], Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """GYROSTAT_RUN_DIR goes before looking around."""
    one, two = benches("one"), benches("two")
    with watched(one), watched(two):
        monkeypatch.setenv("GYROSTAT_RUN_DIR", two.run.path)
        assert cli("pause")[0] == 0
        assert [e.subject for e in entries(two, "command")][-1] == "pause" and not entries(one, "command")[1:]


def test_a_folder_that_others_may_write_is_not_looked_into(
    cli: Run, benches: Callable[[str], Bench], home: Path
) -> None:
    """Whoever made it could have laid a run there for us to approve."""
    with watched(benches("one")):
        home.chmod(0o777)
        status, _, err = cli("pause")
    home.chmod(0o700)
    assert status == 2
    one_line(err, "no agent watches a run")


def test_an_agent_that_does_not_answer(
    cli: Run, benches: Callable[[str], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its silence is said; the word lies there."""
    bench = benches("one")
    bench.agent().close()
    monkeypatch.setattr("gyrostat_agent.cli.answer._PATIENCE", 0.05)
    lock = Lock(bench.run)
    status, out, _ = cli("pause")
    lock.release()
    assert status == 0 and "has not answered yet" in out and os.listdir(os.path.join(bench.run.agent, "commands"))
