"""``gyrostat checkpoints``: what can be gone back to, why the rest cannot, and one command that goes back."""

import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_runs import Bench
from checkpoint_folders import contents, floats, packed, written
from cli_runs import Run, calling, one_line
from supervised_runs import until

from gyrostat_agent.checkpoints import CheckpointSource, InlineVerifier
from gyrostat_agent.loop import Agent
from gyrostat_agent.rundir import Lock

_POISONED = packed({"head.weight": ("F32", floats(10)[:-4] + b"\x00\x00\xc0\x7f")})


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A run in shadow whose checkpoints are real folders: 5, 10, 15 well, 20 ill; step 22 is its newest."""
    made = Bench(tmp_path, time.time)
    made.verdicts = CheckpointSource(InlineVerifier(), pinning=True)  # type: ignore[assignment]
    yield made
    made.close()
    made.verdicts.close()  # type: ignore[attr-defined]


@pytest.fixture
def agent(bench: Bench) -> Agent:
    """It, having seen all that."""
    bench.control()
    made = bench.agent(mode="shadow", approvals=True)
    for step in range(1, 23):
        bench.tell(step)
        if step % 5 == 0:
            files = contents(step) if step < 20 else {**contents(step), "model.safetensors": _POISONED}
            written(Path(bench.root), step, files, segment=0, time=time.time())
        bench.now += 1.5
        while made.once():
            pass
    return made


def test_the_list_says_which_are_certified_and_why_the_others_are_not(cli: Run, bench: Bench, agent: Agent) -> None:
    """Newest first; the reason stands beside each that nobody can go back to."""
    status, out, _ = cli("checkpoints", "list", bench.run.path)
    assert status == 0
    lines = [line.split()[0] for line in out.splitlines()[1:] if line.split()[0].isdecimal()]
    assert lines == ["20", "15", "10", "5"]
    assert out.count("certified") == 3 and "not finite" in out


def test_what_rotation_removed_is_counted_not_listed(cli: Run, bench: Bench, agent: Agent) -> None:
    """Of a long run hundreds are gone: they would hide the few that one can go back to; machines get them all."""
    shutil.rmtree(os.path.join(bench.root, "step-00000005"))
    for step in range(23, 30):
        bench.tell(step)
        bench.now += 1.5
        while agent.once():
            pass
    _, out, _ = cli("checkpoints", "list", bench.run.path)
    told = json.loads(cli("checkpoints", "list", "--json", bench.run.path)[1])
    gone = [each["step"] for each in told if each["why_not"] == "gone"]
    rows = [line.split()[0] for line in out.splitlines()[1:] if "more are gone" not in line]
    assert 5 in gone and f"{len(gone)} more are gone" in out and "20" in rows and "5" not in rows


def test_for_machines_it_is_one_document(cli: Run, bench: Bench, agent: Agent) -> None:
    """What is certified, kept and tagged, with path and digest."""
    _, out, _ = cli("checkpoints", "list", "--json", bench.run.path)
    found = {each["step"]: each for each in json.loads(out)}
    assert [step for step, each in found.items() if each["certified"]] == [15, 10, 5]
    assert [step for step, each in found.items() if each["kept"]] == [15, 10]
    assert found[15]["path"] == os.path.join(bench.root, "step-00000015")
    assert found[15]["digest"].startswith("xxh3_128:")


def test_one_is_shown_with_its_evidence(cli: Run, bench: Bench, agent: Agent) -> None:
    """Digest, knobs and place in the data; of a step that is not there, what to do instead."""
    status, out, _ = cli("checkpoints", "show", "15", bench.run.path)
    assert status == 0 and "lr=0.001" in out and "xxh3_128:" in out
    status, _, err = cli("checkpoints", "show", "16", bench.run.path)
    assert status == 2
    one_line(err, "no checkpoint of step 16 is known", "gyrostat checkpoints list")


def test_a_folder_is_verified_without_a_run(cli: Run, tmp_path: Path) -> None:
    """Before a night job resumes from it: exit status 1 where it must not."""
    well, ill = written(tmp_path, 1), written(tmp_path, 2, {**contents(), "model.safetensors": _POISONED})
    assert cli("checkpoints", "verify", str(well))[:2] == (0, f"{well}: verified\n")
    status, out, _ = cli("checkpoints", "verify", str(well), str(ill))
    assert status == 1 and "not finite" in out
    status, out, _ = cli("checkpoints", "verify", "--json", str(ill), str(tmp_path / "nowhere"))
    assert status == 1 and [each["fit"] for each in json.loads(out)] == ["unfit", "unfit"]


@contextlib.contextmanager
def watched(bench: Bench, agent: Agent) -> Iterator[None]:
    """A later agent of the run, which passes again and again in a thread of its own and holds the run."""
    agent.close()
    bench.agents.remove(agent)
    lock, done = Lock(bench.run), threading.Event()

    def passes() -> None:
        later = bench.agent(mode="shadow", approvals=True)
        while not done.wait(0.002):
            later.once()
        bench.agents.remove(later)
        later.close()

    thread = threading.Thread(target=passes)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        lock.release()


def test_back_in_one_command(cli: Run, bench: Bench, agent: Agent) -> None:
    """Shown, asked, done by the trainer itself in mode shadow: the person is who acts."""
    with watched(bench, agent):
        status, out, err = cli("checkpoints", "rollback", "--to", "last-stable", "--yes", bench.run.path)
        assert (status, err) == (0, "")
        assert "step 15 chosen: verified" in out and "from step 22 back to 15: 7 steps are done again" in out
        assert "asked to go back to step 15 (last-stable)" in out
        until(lambda: bench.directives() != [])
    (name,) = bench.directives()
    said = json.loads((Path(bench.run.directives) / name).read_text())
    assert said["arguments"]["checkpoint"] == os.path.join(bench.root, "step-00000015")


def test_what_the_agent_refuses_says_where_to_look(cli: Run, bench: Bench, agent: Agent) -> None:
    """A step that is not there gets no tag: exit status 2, and the command that shows those that are."""
    with watched(bench, agent):
        status, _, err = cli("checkpoints", "promote", "16", bench.run.path)
    assert status == 2
    one_line(err, "not done: no verified checkpoint of step 16 is known", "gyrostat checkpoints list")


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("20", ("nothing to go back to", "step 20 not", "not finite")),
        ("7", ("no checkpoint is known by '7'",)),
        ("golden\x1b[31m", ("no checkpoint is known by",)),
    ],
    ids=["an ill one", "none of that step", "a tag of no one"],
)
def test_what_cannot_be_is_said_in_a_line(
    cli: Run, bench: Bench, agent: Agent, to: str, words: tuple[str, ...]
) -> None:
    """Exit status 2, the reason, and nothing is laid before the agent."""
    status, _, err = cli("checkpoints", "rollback", "--to", to, "--yes", bench.run.path)
    assert status == 2
    one_line(err, *words)
    assert "\x1b" not in err and os.listdir(Path(bench.run.agent) / "commands") == []


def test_with_nobody_there_it_is_not_laid_down_for_later(cli: Run, bench: Bench, agent: Agent) -> None:
    """A rollback that some agent finds tomorrow would hit another run than the one that was looked at."""
    status, _, err = cli("checkpoints", "rollback", "--to", "15", "--yes", bench.run.path)
    assert status == 2
    one_line(err, "no agent watches this run")
    assert os.listdir(Path(bench.run.agent) / "commands") == []


def test_a_no_does_nothing(cli: Run, bench: Bench, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked before it is done, and a no is exit status 1."""
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda prompt: "n")
    lock = Lock(bench.run)
    try:
        status, out, _ = cli("checkpoints", "rollback", "--to", "15", bench.run.path)
    finally:
        lock.release()
    assert status == 1 and "nothing was done" in out
    assert os.listdir(Path(bench.run.agent) / "commands") == []


def test_a_promoted_one_is_the_last_stable(cli: Run, bench: Bench, agent: Agent) -> None:
    """promote and pin tag, unpin takes away; the list shows it."""
    for words in (("promote", "10"), ("pin", "5"), ("pin", "15"), ("unpin", "15")):
        assert cli("checkpoints", *words, bench.run.path)[0] == 0
    while agent.once():
        pass
    assert agent.engine.state.tags == {"step-00000010": ["stable"], "step-00000005": ["pinned"]}
    _, out, _ = cli("checkpoints", "list", "--json", bench.run.path)
    assert {each["step"]: each["tags"] for each in json.loads(out) if each["tags"]} == {10: ["stable"], 5: ["pinned"]}


def test_a_run_without_a_journal_is_said(cli: Run, tmp_path: Path) -> None:
    """One line, no stack trace."""
    status, _, err = cli("checkpoints", "list", str(tmp_path))
    assert status in (2, 4)
    one_line(err)
