"""Stage: a chaos run under way: its folder, its processes, and what was done to it, said aloud."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from chaos.draw import Draw
from chaos.plan import LIVES, trainer_file
from gyrostat_agent.demo.scenarios import Layout


@dataclass(slots=True)
class Stage:
    """``notes``: what was done and when, a line each. ``wrong``: what a bystander found out that must not be.

    ``pod`` is the supervisor's PID, 0 while there is none. ``frozen``: seconds that the trainer was stopped for.
    ``rescue``: what must be undone whatever happens, such as a stopped process that is to go on.
    """

    draw: Draw
    folder: Path
    pod: int = 0
    step: int = 0
    notes: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    frozen: float = 0.0
    began: float = field(default_factory=time.monotonic)

    @property
    def layout(self) -> Layout:
        """Where the run keeps its files."""
        return Layout(self.folder)

    @property
    def agent(self) -> int:
        """PID of the agent, 0 while none lives."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            pid = int((self.folder / LIVES).read_text().split()[-1])
            return pid if self._is_ours(pid) else 0
        return 0

    @property
    def trainers(self) -> list[int]:
        """PIDs of the trainer's ranks that live, in order."""
        found = []
        for rank in range(self.draw.ranks):
            with contextlib.suppress(OSError, ValueError):
                pid = int(trainer_file(self.folder, rank).read_text())
                found += [pid] if self._is_ours(pid) else []
        return found

    def say(self, text: str) -> None:
        """Note what was done, with the step and the second."""
        self.notes.append(f"step {self.step}, {time.monotonic() - self.began:.1f} s: {text}")

    def send(self, what: str, pids: list[int], number: int) -> bool:
        """Send a signal to processes of this run; False, and said, where none lives."""
        alive = [pid for pid in pids if pid and self._is_ours(pid)]
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        self.say(f"{signal.Signals(number).name} to {what}" if alive else f"no {what} lives")
        return bool(alive)

    def end(self) -> None:
        """Kill what is left of the run."""
        for pid in [self.pod, self.agent, *self.trainers]:
            if pid and self._is_ours(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _is_ours(self, pid: int) -> bool:
        """A number may have been given to somebody else: only what has this folder in its environment is ours."""
        try:
            told = Path(f"/proc/{pid}/environ").read_bytes()
            dead = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return False
        return str(self.folder).encode() in told and not dead
