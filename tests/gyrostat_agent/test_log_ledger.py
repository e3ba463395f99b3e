"""A run that is only read from its log has a ledger too: beside the checkpoints that --checkpoints names."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from agent_runs import Verdicts
from supervised_runs import environment
from test_run_exit import PATIENCE, TRAINER, awaited, entries

from gyrostat_agent import ledgerfile
from gyrostat_agent.cli.options import builtin, digest_of
from gyrostat_agent.launch.person import EXIT_PERSON
from gyrostat_agent.loop import Agent
from gyrostat_agent.rundir import prepare
from gyrostat_agent.settings import Settings
from gyrostat_rules.entries import EntryKind


class Watched:
    """A log that grows, and agents in run directories that come and go."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now, self.step = folder, 1000.0, 0
        self.root = folder / "checkpoints"
        self.root.mkdir(mode=0o700)

    def agent(self, name: str) -> Agent:
        log = self.folder / f"{name}.jsonl"
        log.touch()
        settings = Settings("run", builtin(), digest_of(builtin()), "act", False, logs=(str(log),))
        settings = settings._replace(checkpoints=(str(self.root),))
        return Agent(prepare(str(self.folder / name)), settings, Verdicts(), lambda: self.now)

    def tell(self, agent: Agent, name: str, loss: str, steps: int = 1) -> None:
        for _ in range(steps):
            self.step, self.now = self.step + 1, self.now + 2.0
            with (self.folder / f"{name}.jsonl").open("a") as log:
                log.write(f'{{"step": {self.step}, "loss": {loss}, "grad_norm": 1.0, "reward": 0.5}}\n')
            while agent.once():
                pass
        self.now += 2.0
        agent.once()


def test_what_was_done_outlives_the_run_directory(tmp_path: Path) -> None:
    """Another node, an empty run directory, no SDK: incidents are counted on, and planned for after a look around."""
    watched = Watched(tmp_path)
    first = watched.agent("first")
    watched.tell(first, "first", "1.5", 20)
    watched.tell(first, "first", "NaN", 3)
    assert [i.kind for i in first.engine.state.incidents] == ["nonfinite"]
    first.close()
    written = json.loads(Path(ledgerfile.path_of(str(watched.root))).read_text())
    assert written["incident_count"] == 1

    second = watched.agent("second")
    watched.tell(second, "second", "1.5", 20)
    assert second.engine.state.incident_count == 1 and not second.engine.state.settings.distrust
    watched.tell(second, "second", "NaN", 3)
    (incident,) = [i for i in second.engine.state.incidents if i.id == "i0002"]
    assert incident.state == "stopped", "it was planned for: nobody here can carry anything out"
    second.close()


def test_the_same_agent_goes_on_with_its_own(tmp_path: Path) -> None:
    """Begun again at its own journal, the ledger that it wrote is no reason for doubt."""
    watched = Watched(tmp_path)
    first = watched.agent("first")
    watched.tell(first, "first", "1.5", 20)
    watched.tell(first, "first", "NaN", 3)
    first.close()
    again = watched.agent("first")
    watched.tell(again, "first", "1.5", 5)
    assert not again.engine.state.settings.distrust and again.engine.state.incident_count == 1
    again.close()


def _trained(folder: Path, run: Path, pack: Path) -> tuple[int, list[str], str]:
    """A trainer that knows nothing of us, and dies of a NaN unless it resumed: status, beginnings, what was said."""
    options = ["--mode", "act", "--no-approvals", "--rules", str(pack), "--checkpoints", str(folder)]
    trainer = [sys.executable, "-c", TRAINER, str(folder), "--resume_from_checkpoint", "None"]
    command = [sys.executable, "-m", "gyrostat_agent", "run", "--listen", "", "--run-dir", str(run), *options, "--"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, *trainer], stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment()
    ) as process:
        try:
            awaited(
                lambda: {e.step for e in entries(run, EntryKind.CHECKPOINT) if e.state == "verified"} >= {10, 20, 30}
            )
            out, err = process.communicate("\n", timeout=PATIENCE)
        finally:
            process.terminate()
    return process.returncode, [line for line in out.splitlines() if line.startswith("begins")], err


@pytest.mark.full  # the next agent looks around for half a minute of real time before it plans
def test_a_restart_that_was_spent_stays_spent_on_the_next_node(tmp_path: Path) -> None:
    """The queue starts the job again with an empty run directory: it does not begin a loop of restarts."""
    pack, folder = tmp_path / "pack.yaml", tmp_path / "checkpoints"
    budget = "  - incident: nonfinite\n    budget: {actions: 3, "
    assert budget in builtin()
    pack.write_text(builtin().replace(budget, budget.replace("3", "1")))
    folder.mkdir(mode=0o700)
    status, began, err = _trained(folder, tmp_path / "first", pack)
    assert (status, began) == (0, ["begins at 0", "begins at 20"]), err
    shutil.rmtree(tmp_path / "first")

    status, began, err = _trained(folder, tmp_path / "second", pack)
    assert (status, began) == (EXIT_PERSON, ["begins at 0"]), err
    assert "the budget is spent" in err
