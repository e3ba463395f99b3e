"""Supervisors in processes of their own, for tests: what they are started with, what they said, how they ended."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gyrostat.wire import Ack, Directive, Exit, Hello, Kind, scan

SUPERVISE = (
    "import json, sys; from gyrostat_agent.supervisor import Supervisor;"
    "settings = json.loads(sys.argv[1]); sys.exit(Supervisor(**settings).run())"
)
DEADLINE = 20.0
PAUSE = "import signal; [signal.pause() for _ in iter(int, 1)]"
FIRST_TIME = "import os, sys; first = not os.path.exists({0!r}); open({0!r}, 'a').write(str(os.getpid()) + ' ');"
Starter = Callable[..., "Run"]


class Said:
    """What a supervisor has said in its run directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def frames(self, kind: int) -> list[bytes]:
        """Bodies of the supervisor's frames of one kind, in order."""
        files = sorted(self.path.glob("records/supervisor-*"))
        return [f.body for file in files for f in scan(file.read_bytes()).frames if f.kind == kind]

    def exits(self) -> list[Exit]:
        return [Exit.decode(body) for body in self.frames(Kind.EXIT)]

    def acks(self) -> list[Ack]:
        return [Ack.decode(body) for body in self.frames(Kind.ACK)]


class Run(Said):
    """A supervisor under test."""

    def __init__(self, path: Path, process: "subprocess.Popen[str]") -> None:
        super().__init__(path)
        self.process = process

    def lay(self, number: int, procedure: str) -> None:
        """Lay a directive as the agent does."""
        until(lambda: self.frames(Kind.HELLO))
        me = Hello.decode(self.frames(Kind.HELLO)[-1])
        folder = self.path / "directives"
        folder.mkdir(mode=0o700, exist_ok=True)
        directive = Directive(
            number, me.run, "supervisor", me.incarnation, 0, f"a-{number}", time.time() + 60, procedure=procedure
        )
        draft = folder / f".{number}"
        draft.touch(mode=0o600)
        draft.write_bytes(directive.encode())
        os.link(draft, folder / f"{number}.json")
        (folder / "bell").touch(mode=0o600)
        (folder / "bell").write_bytes(number.to_bytes(8, "little"))

    def direct(self, number: int, procedure: str) -> Ack:
        """Lay a directive and wait for its answer."""
        self.lay(number, procedure)
        until(lambda: any(a.number == number for a in self.acks()))
        return next(a for a in self.acks() if a.number == number)

    def line(self) -> str:
        """The trainer's next line on stdout: it is up."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> tuple[int, str, str]:
        """Status, stdout and stderr, once it has ended."""
        out, err = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, out, err


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition to hold; fails after a deadline."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.005)


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", program, *arguments]


def settings(path: Path, command: list[str], **more: Any) -> str:
    given = {"command": command, "run_dir": str(path), "run": "r", "agent_argv": None, "mode": "act", **more}
    return json.dumps(given)


def environment() -> dict[str, str]:
    """Ours, with the packages where we found them."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def supervise(path: Path, command: list[str], **more: Any) -> list[str]:
    """Command line of a supervisor over ``command``."""
    return [sys.executable, "-c", SUPERVISE, settings(path, command, **more)]


def starting(tmp_path: Path) -> Iterator[Starter]:
    """A fixture's body: starts supervisors, and ends what a failed test leaves behind."""
    runs: list[Run] = []

    def begin(
        command: list[str], *, path: Path = tmp_path / "run", before: Callable[[], object] | None = None, **more: Any
    ) -> Run:
        process = subprocess.Popen(
            supervise(path, command, **more),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            preexec_fn=before,
        )
        runs.append(Run(path, process))
        return runs[-1]

    yield begin
    for run in runs:
        if run.process.poll() is None:
            run.process.send_signal(signal.SIGTERM)
        run.process.communicate(timeout=DEADLINE)


def state_of(pid: int) -> str:
    """A process's state letter, T where it is stopped; '' where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""
