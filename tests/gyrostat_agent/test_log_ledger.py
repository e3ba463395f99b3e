"""A run that is only read from its log has a ledger too: beside the checkpoints that --checkpoints names."""

import json
from pathlib import Path

from agent_runs import Verdicts

from gyrostat_agent import ledgerfile
from gyrostat_agent.cli.options import builtin, digest_of
from gyrostat_agent.loop import Agent
from gyrostat_agent.rundir import prepare
from gyrostat_agent.settings import Settings


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
