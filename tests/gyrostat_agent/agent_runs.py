"""An agent in this process, its clock in hand: a run directory, a trainer of the SDK, checkpoints as verdicts."""

import os
from collections.abc import Callable
from pathlib import Path

from gyrostat import Control, Telemetry
from gyrostat.wire import RunDirectory
from gyrostat_agent.cli.options import builtin, digest_of
from gyrostat_agent.loop import Agent
from gyrostat_agent.rundir import prepare
from gyrostat_agent.settings import Settings
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import CheckpointSeen, Fit
from gyrostat_rules.keeping import Keep

NAN = float("nan")


class Verdicts:
    """Checkpoints whose verdicts a test decides."""

    def __init__(self) -> None:
        self.root = ""
        self.new: list[CheckpointSeen] = []
        self.known: dict[str, CheckpointSeen] = {}
        self.polls = 0

    def tell(self, path: str, step: int, fit: str = Fit.VERIFIED, why: str = "") -> CheckpointSeen:
        seen = CheckpointSeen(path, step, 0, f"digest of {path}", fit, why, float(step))
        self.known[path] = seen
        self.new.append(seen)
        return seen

    def set_root(self, path: str) -> None:
        self.root = path

    def poll(self) -> None:
        self.polls += 1

    def drain(self) -> list[CheckpointSeen]:
        new, self.new = self.new, []
        return new

    pin_fault = ""

    def keep(self, keep: Keep) -> None:
        """Nothing is pinned here."""

    def recheck(self, path: str, digest: str) -> CheckpointSeen:
        return self.known[path]


class Bench:
    """One run: agents come and go, files stay. ``now`` is the agents' clock, Unix seconds."""

    def __init__(self, folder: Path, clock: Callable[[], float], root: str = "", name: str = "run") -> None:
        self.run: RunDirectory = prepare(str(folder / name))
        self.root = root or str(folder / "checkpoints")
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        self.now = clock()
        self.verdicts = Verdicts()
        self.telemetry = Telemetry(self.run.path, run="run", checkpoint_root=self.root, rank=0, world=1)
        self.skipped: list[int] = []
        self.targets: list[str] = []
        self.agents: list[Agent] = []

    def agent(self, **changed: object) -> Agent:
        """A new agent; mode act, no approvals."""
        text = builtin()
        job = changed.pop("job", None)
        settings = Settings("run", text, digest_of(text), "act", False)._replace(**changed)
        self.agents.append(Agent(self.run, settings, self.verdicts, lambda: self.now, job=job))
        return self.agents[-1]

    def control(self) -> Control:
        """The trainer's side, which passes items over and goes back."""

        def skip(arguments: object) -> None:
            self.skipped.extend(arguments["items"])  # type: ignore[index]

        def rollback(arguments: object) -> dict[str, int]:
            self.targets.append(arguments["checkpoint"])  # type: ignore[index]
            return {"step": arguments["step"]}  # type: ignore[index]

        return Control(self.telemetry, procedures={"skip_data": skip, "rollback": rollback})

    def tell(self, step: int, loss: float = 0.5, applied: float = 1.0) -> None:
        self.telemetry.record(step, loss=loss, step_applied=applied, suspect_item=float(step), params_finite=1.0)

    def skip_twice(self, step: int) -> None:
        """Two steps that were not finite and were skipped: an incident, mended by passing an item over."""
        self.tell(step, NAN, 0.0)
        self.tell(step + 1, NAN, 0.0)

    def directives(self) -> list[str]:
        return sorted(n for n in os.listdir(self.run.directives) if n.endswith(".json"))

    def close(self) -> None:
        for agent in self.agents:
            agent.abandon()
        self.telemetry.close()


def said(agent: Agent, kind: str) -> list[Entry]:
    """All entries of a kind in the agent's journal."""
    return list(agent.journal.entries(kinds=(kind,)))
