"""``gyrostat checkpoints prune``: what no rule keeps goes, when a person says so, and nothing else."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_runs import Bench
from checkpoint_folders import contents, written
from cli_runs import Run, calling, one_line

from gyrostat_agent.archive.pace import Pace
from gyrostat_agent.archive.progress import Silent
from gyrostat_agent.archive.store import opened
from gyrostat_agent.archive.upload import archive, labels
from gyrostat_agent.checkpoints import CheckpointSource, InlineVerifier
from gyrostat_agent.checkpoints.pins import FOLDER
from gyrostat_agent.loop import Agent
from gyrostat_agent.rundir import Lock

STEPS = (5, 10, 15, 20)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A run that has ended: four checkpoints that are well, all pinned; rotation has taken all but the newest."""
    made = Bench(tmp_path, time.time)
    made.verdicts = CheckpointSource(InlineVerifier(), pinning=True)  # type: ignore[assignment]
    made.control()
    agent = made.agent(mode="shadow", approvals=True, pins=10)
    for step in range(1, 23):
        made.tell(step)
        if step in STEPS:
            written(Path(made.root), step, contents(step), segment=0, time=time.time())
        passed(made, agent)
    for step in STEPS[:-1]:
        shutil.rmtree(Path(made.root) / name(step))
    passed(made, agent)
    yield made
    made.close()
    made.verdicts.close()  # type: ignore[attr-defined]


def passed(bench: Bench, agent: Agent) -> None:
    bench.now += 1.5
    while agent.once():
        pass


def ended(bench: Bench) -> str:
    """No agent any more; returns the run directory."""
    bench.agents.pop().close()
    return bench.run.path


def name(step: int) -> str:
    return f"step-{step:08d}"


def pinned(bench: Bench) -> list[int]:
    return sorted(int(each[5:]) for each in os.listdir(Path(bench.root) / FOLDER))


def test_what_no_rule_keeps_goes(cli: Run, bench: Bench) -> None:
    """The newest two that are certified stay; what is freed is said: a link to a file that is there frees nothing."""
    status, out, err = cli("checkpoints", "prune", "--yes", ended(bench))
    assert (status, err) == (0, "")
    assert pinned(bench) == [15, 20]
    assert "2 of 4 can go" in out and "certified, and so are 2 newer ones" in " ".join(out.split())
    (row,) = [line for line in out.splitlines() if name(20) in line]
    assert " 0 B " in row and "the last certified one" in row
    assert (Path(bench.root) / name(20) / "manifest.json").exists()


def test_for_machines_it_is_shown_and_not_done(cli: Run, bench: Bench) -> None:
    """Sizes and reasons as one document; without --yes nothing goes."""
    status, out, _ = cli("checkpoints", "prune", "--json", "--keep-newest", "1", ended(bench))
    rows = {row["name"]: row for row in json.loads(out)}
    assert status == 0 and [rows[name(step)]["stays"] for step in STEPS] == [False, False, False, True]
    assert rows[name(5)]["frees"] == rows[name(5)]["bytes"] > rows[name(20)]["frees"] == 0
    assert pinned(bench) == list(STEPS)


def test_a_no_removes_nothing(cli: Run, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked before it is done, and a no is exit status 1."""
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda prompt: "n")
    status, out, _ = cli("checkpoints", "prune", ended(bench))
    assert status == 1 and "nothing was removed" in out
    assert pinned(bench) == list(STEPS)


def test_a_tag_keeps(cli: Run, bench: Bench) -> None:
    """A person's word for it is a rule."""
    bench.agents[-1].engine.state.tags = {name(5): ["stable"]}
    bench.agents[-1]._unsaved += 1
    path = ended(bench)
    status, out, _ = cli("checkpoints", "prune", "--keep-newest", "1", "--yes", path)
    assert status == 0 and pinned(bench) == [5, 20] and "tagged stable" in out


def test_while_an_incident_is_open_all_that_is_well_stays(cli: Run, bench: Bench) -> None:
    """How far back it will have to be is not known yet."""
    bench.skip_twice(23)
    passed(bench, bench.agents[-1])
    assert [i.open for i in bench.agents[-1].engine.state.incidents] == [True]
    path = ended(bench)
    status, _, _ = cli("checkpoints", "prune", "--keep-newest", "1", "--yes", path)
    assert status == 0 and pinned(bench) == list(STEPS)


def test_what_is_young_stays_where_that_is_asked(cli: Run, bench: Bench) -> None:
    """Age counts since the pin was made."""
    path = ended(bench)
    os.utime(Path(bench.root) / FOLDER / name(5), (0.0, time.time() - 8 * 86400))
    status, _, _ = cli("checkpoints", "prune", "--older-than", "7d", "--yes", path)
    assert status == 0 and pinned(bench) == [10, 15, 20]
    status, _, err = cli("checkpoints", "prune", "--older-than", "a week", path)
    assert status == 2
    one_line(err, "--older-than a week", "12h, 7d")


def test_what_nobody_has_judged_stays(cli: Run, bench: Bench) -> None:
    """A pin that the journal knows nothing of may be another run's last one."""
    path = ended(bench)
    shutil.copytree(Path(bench.root) / FOLDER / name(5), Path(bench.root) / FOLDER / name(7))
    status, out, _ = cli("checkpoints", "prune", "--yes", path)
    assert status == 0 and 7 in pinned(bench) and "nobody has judged it yet" in out


def test_an_agent_at_work_is_left_to_it(cli: Run, bench: Bench) -> None:
    """It lets go by the same rules; exit status 3 names it, and what to do instead."""
    path = ended(bench)
    lock = Lock(bench.run)
    try:
        status, _, err = cli("checkpoints", "prune", "--yes", path)
    finally:
        lock.release()
    assert status == 3 and pinned(bench) == list(STEPS)
    one_line(err, "is watched by process", "unpin", "when it has ended")


def test_no_agent_begins_meanwhile(cli: Run, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is held while it is asked."""
    path, asked = ended(bench), list[str]()

    def answer(prompt: str) -> str:
        from gyrostat_agent.errors import HeldError

        with pytest.raises(HeldError):
            Lock(bench.run)
        asked.append(prompt)
        return "y"

    monkeypatch.setattr("click.termui.visible_prompt_func", answer)
    assert cli("checkpoints", "prune", path)[0] == 0
    assert len(asked) == 1 and pinned(bench) == [15, 20]


def test_a_root_that_is_gone_is_said(cli: Run, bench: Bench) -> None:
    """A mount that is not there is not an empty one."""
    path = ended(bench)
    shutil.rmtree(bench.root)
    status, _, err = cli("checkpoints", "prune", path)
    assert status == 2
    one_line(err, "is not there")


def test_archives_go_only_where_they_are_asked_for(cli: Run, bench: Bench, tmp_path: Path) -> None:
    """Untagged ones of this run, beyond the newest; what is another run's, tagged or unfinished stays."""
    url = f"file://{tmp_path}/shared 盘"
    store = opened(url, make=True)
    for step, run, tags in (
        (1, "checkpoints", ()),
        (2, "run", ("gold",)),
        (3, "other", ()),
        (4, "run", ()),
        (6, "run", ()),
    ):
        folder = written(tmp_path / "old", step, contents(step))
        archive(folder, store, labels(run, tags, ""), Pace(1e12), Silent())
    (tmp_path / "shared 盘" / "half" / "00000").mkdir(parents=True)
    (tmp_path / "shared 盘" / "half" / "00000" / "000000-x").write_bytes(b"x")
    path = ended(bench)
    assert cli("checkpoints", "prune", "--yes", path)[0] == 0
    assert len(os.listdir(tmp_path / "shared 盘")) == 6
    lock = Lock(bench.run)
    try:
        status, out, err = cli("checkpoints", "prune", "--archives", url, "--keep-newest", "1", "--yes", path)
    finally:
        lock.release()
    assert (status, err) == (0, ""), err
    assert "pins are left to the agent" in out and pinned(bench) == [15, 20]
    left = {each for each in os.listdir(tmp_path / "shared 盘") if list((tmp_path / "shared 盘" / each).rglob("*-*"))}
    assert left == {name(2), name(3), name(6), "half"}
    status, _, err = cli("checkpoints", "prune", "--archives", f"{url}/{name(6)}", "--yes", path)
    assert status == 2 and (tmp_path / "shared 盘" / name(6) / "index.json").exists()
    one_line(err, "that of one archive")
