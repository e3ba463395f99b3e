"""Real processes of a run: agents that die at a named point, trainers, the command line; waited for by conditions."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEADLINE = 60.0
LIGHT = Path(__file__).with_name("light_trainer.py")
PACK = """
pack: e2e
groups:
  - name: numerics
    rules:
      - {alert: NonFiniteValue, detector: nonfinite, severity: warning}
      - alert: NonFinitePoison
        detector: nonfinite
        with: {confirmed: true}
        severity: critical
        incident: nonfinite
        inhibits: [NonFiniteValue]
playbooks:
  - incident: nonfinite
    budget: {actions: 100, steps: 10}
    ceiling: {incidents: 100, steps: 10}
    cooldown: 0
    rungs: RUNGS
"""
SKIP = "[{remedy: skip_data, horizon: 3, irreversible: true}, {remedy: rollback, horizon: 3, irreversible: true}]"


class Place:
    """One run's folders, and the processes started for it."""

    def __init__(self, folder: Path, rungs: str = SKIP) -> None:
        self.folder = folder
        self.run = folder / "run"
        self.root = folder / "checkpoints"
        self.log = folder / "trainer.log"
        self.pack = folder / "pack.yaml"
        self.said = folder / "agent.err"
        self.run.mkdir(mode=0o700, parents=True)
        self.root.mkdir(mode=0o700)
        self.pack.write_text(PACK.replace("RUNGS", rungs))
        self.processes: list[subprocess.Popen[Any]] = []

    @property
    def journal(self) -> Path:
        return self.run / "agent" / "journal.db"

    def agent(self, *options: str, dies_at: str = "", **environment: str) -> "subprocess.Popen[Any]":
        """An agent in mode act, whose words go to ``said``; ``dies_at`` is a failpoint and its count."""
        argv = [sys.executable, "-m", "gyrostat_agent", "agent", str(self.run), "--rules", str(self.pack)]
        argv += ["--mode", "act", "--no-approvals", "--listen", "", *options]
        armed = {"GYROSTAT_FAILPOINT": dies_at} if dies_at else {}
        with open(self.said, "ab") as said:
            return self._start(argv, stderr=said, env={**world(), **armed, **environment})

    def trainer(self, *options: str) -> "subprocess.Popen[Any]":
        """A light trainer; its errors come with the test's own."""
        return self._start(self.trainer_argv(*options), env=world())

    def trainer_argv(self, *options: str) -> list[str]:
        return [sys.executable, str(LIGHT), str(self.run), str(self.root), "--log", str(self.log), *options]

    def start(self, argv: list[str], **environment: str) -> "subprocess.Popen[Any]":
        """Any other process of the run; its words go to ``said``."""
        with open(self.said, "ab") as said:
            return self._start(argv, stdout=said, stderr=said, env={**world(), **environment})

    def _start(self, argv: list[str], **more: Any) -> "subprocess.Popen[Any]":
        process = subprocess.Popen(argv, **more)
        self.processes.append(process)
        return process

    def lines(self) -> list[str]:
        """What the trainer has done so far; a line that a kill cut off is none."""
        return self.log.read_text().split("\n")[:-1] if self.log.exists() else []

    def done(self, beginning: str) -> list[str]:
        """The trainer's lines that begin so."""
        return [line for line in self.lines() if line.startswith(beginning)]

    def open_gate(self, item: int) -> None:
        """Let the trainer go on behind a gate."""
        Path(f"{self.log}.{item}").touch()

    def rung(self) -> int:
        """The number in the bell, 0 before the first."""
        bell = self.run / "directives" / "bell"
        return int.from_bytes(bell.read_bytes(), "little") if bell.exists() else 0

    def status(self) -> dict[str, Any]:
        """The agent's newest view, {} where there is none yet."""
        try:
            found: dict[str, Any] = json.loads((self.run / "agent" / "status.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def watched(self, agent: "subprocess.Popen[Any]") -> None:
        """Wait until this agent has shown its first view."""
        until(lambda: self.status().get("pid") == agent.pid, "the agent never looked")

    def read_to_end(self) -> None:
        """Wait until the agent has read the trainer's goodbye."""
        until(lambda: [r for r in self.status().get("ranks", []) if r["ended"]], "the agent never read the end")

    def parked(self, lives: int = 1) -> None:
        """Wait until the trainer stands at a poisoned item and has answered all that was rung."""
        until(lambda: self._stands(lives), "the trainer never came to a poisoned item")

    def _stands(self, lives: int) -> bool:
        lines = self.lines()
        answered = [line for line in lines if line.startswith("ack ")]
        began = [line for line in lines if line.startswith("began ")]
        return len(began) == lives and lines[-1].startswith("waiting ") and self.rung() == len(answered)

    def end(self) -> None:
        """Kill whatever a failed test left behind."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def world() -> dict[str, str]:
    """Our environment, with the packages where we found them."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OMP_NUM_THREADS": "1"}


def gyrostat(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """``gyrostat WORDS`` run to its end: status, stdout, stderr."""
    argv = [sys.executable, "-m", "gyrostat_agent", *words]
    return subprocess.run(
        argv, capture_output=True, encoding="utf-8", env={**world(), **environment}, timeout=DEADLINE, check=False
    )


def until(condition: Callable[[], Any], what: str, seconds: float = DEADLINE) -> Any:
    """The first true answer of ``condition``; fails after ``seconds`` saying what did not come about."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s in vain: {what}"
        time.sleep(0.005)
    return answer


def killed(process: "subprocess.Popen[Any]", what: str) -> None:
    """Wait for a process to die by SIGKILL, as it was armed to."""
    assert process.wait(DEADLINE) == -signal.SIGKILL, f"{what}: it ended with {process.returncode}, not by SIGKILL"


def ended(process: "subprocess.Popen[Any]") -> int:
    """Ask a process to end by SIGTERM; its status."""
    process.send_signal(signal.SIGTERM)
    return process.wait(DEADLINE)
