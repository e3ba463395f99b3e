"""Runs that an agent in mode shadow has watched, told in a few words: real agents, real journals."""

import os
import time
from pathlib import Path

from agent_runs import NAN, Bench

from gyrostat import Telemetry
from gyrostat.wire import Exit
from gyrostat_agent.loop import Agent
from gyrostat_agent.shadow.chronicle import Chronicle, read
from gyrostat_agent.shadow.occasion import Occasion
from gyrostat_agent.sources.commands import give

POISON = "NonFinitePoison"


class Shadowed:
    """A run with checkpoints at steps 5 and 10, healthy up to step 20, watched in ``mode``; ``pace`` seconds a step."""

    def __init__(
        self,
        folder: Path,
        name: str = "run",
        *,
        mode: str = "shadow",
        last: int = 20,
        root: str = "",
        pace: float = 2.0,
    ) -> None:
        self.bench = Bench(folder, time.time, root=root or str(folder / f"checkpoints of {name}"), name=name)
        self.control = self.bench.control()
        self.watcher: Agent = self.bench.agent(mode=mode)
        self.supervisor: Telemetry | None = None
        self.step, self.pace = 0, pace
        self.well(last)

    @property
    def journal(self) -> str:
        return os.path.join(self.bench.run.agent, "journal.db")

    def look(self, times: int = 3) -> None:
        """The agent passes; what it sent is obeyed, and it looks again."""
        for _ in range(times):
            self.bench.now += 0.001
            self.watcher.once()

    def tell(self, loss: float = 0.5, **more: float) -> None:
        """One more step."""
        self.step += 1
        self.bench.now += self.pace
        values = {"loss": loss, "step_applied": 1.0, "params_finite": 1.0, "suspect_item": float(self.step), **more}
        self.bench.telemetry.record(self.step, **values)
        if self.step in (5, 10):
            self.bench.verdicts.tell(f"/c/{self.step}", self.step)
        self.look()
        self.control.apply(self.step)

    def well(self, steps: int) -> "Shadowed":
        """So many healthy steps."""
        for _ in range(steps):
            self.tell()
        return self

    def ill(self, steps: int = 1) -> "Shadowed":
        """So many steps that are not finite and are applied."""
        for _ in range(steps):
            self.tell(NAN)
        return self

    def ends(self, status: int, *, asked: bool = False) -> "Shadowed":
        """A supervisor sees the trainer end."""
        self.supervisor = self.supervisor or Telemetry(self.bench.run.path, run="run", role="supervisor")
        self.supervisor.say(Exit("trainer", 0, os.getpid(), status, asked))
        self.look()
        return self

    def begins(self, step: int) -> "Shadowed":
        """Somebody begins the trainer again behind ``step``; the old one says goodbye."""
        self.bench.telemetry.close()
        self.bench.telemetry = Telemetry(self.bench.run.path, run="run", checkpoint_root=self.bench.root)
        self.control, self.step = self.bench.control(), step
        self.look()
        return self

    def says(self, verb: str, **words: str) -> "Shadowed":
        """A person's word, as the command line lays it down."""
        give(self.bench.run, verb, {**words, "by": "Ada"})
        self.look()
        return self

    def again(self, **changed: object) -> "Shadowed":
        """The agent ends without a word, and another one begins."""
        self.watcher.abandon()
        self.bench.agents.remove(self.watcher)
        self.watcher = self.bench.agent(**{"mode": "shadow", **changed})
        self.look()
        return self

    def end(self) -> "Shadowed":
        """The agent leaves in order."""
        self.look()
        self.watcher.close()
        self.bench.agents.remove(self.watcher)
        self.close()
        return self

    def close(self) -> None:
        """Nothing is left open."""
        self.bench.close()
        self.bench.agents.clear()
        if self.supervisor is not None:
            self.supervisor.close()

    def read(self, within: int = 50) -> Chronicle:
        """What its journal is evidence of."""
        return read(self.journal, within)

    def occasion(self, within: int = 50) -> Occasion:
        """The only occasion."""
        (one,) = self.read(within).occasions
        return one
