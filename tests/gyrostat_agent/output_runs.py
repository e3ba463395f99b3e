"""Supervisors that read their command's output, in processes of their own, for tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from supervised_runs import DEADLINE, Said, environment, until

SUPERVISE = (
    "import sys; from gyrostat_agent.launch.flags import recognise, table;"
    "from gyrostat_agent.launch.tail import plan; from gyrostat_agent.supervisor import Supervisor;"
    "command = sys.argv[4:]; sys.exit(Supervisor(command, sys.argv[1], 'r', None, mode=sys.argv[2], tail=plan(),"
    "grace=float(sys.argv[3]), launcher=recognise(command, table())).run())"
)
Begin = Callable[..., "OutputRun"]


class OutputRun(Said):
    """One of them, with pipes for its output unless told otherwise."""

    def __init__(self, path: Path, process: "subprocess.Popen[bytes]") -> None:
        super().__init__(path)
        self.process = process

    @property
    def log(self) -> bytes:
        """The copy that an agent would read."""
        return (self.path / "output.log").read_bytes()

    def tees(self) -> list[int]:
        """PIDs of the processes that pass its output on."""
        return [pid for pid in _processes() if str(self.path).encode() in _words(pid) and b"tee.py" in _words(pid)]

    def end(self) -> tuple[int, bytes, bytes]:
        """Status, stdout and stderr, once it has ended."""
        out, err = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, out or b"", err or b""


def argv(path: Path, *command: str, mode: str = "observe", grace: float = 10.0) -> list[str]:
    return [sys.executable, "-c", SUPERVISE, str(path), mode, str(grace), *command]


def beginning(tmp_path: Path) -> Iterator[Begin]:
    """A fixture's body: starts them, and ends what a failed test leaves behind."""
    runs: list[OutputRun] = []

    def begin(*command: str, mode: str = "observe", grace: float = 10.0, **streams: Any) -> OutputRun:
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        path = tmp_path / "run"
        path.mkdir(mode=0o700, exist_ok=True)
        words = argv(path, *command, mode=mode, grace=grace)
        runs.append(OutputRun(path, subprocess.Popen(words, env=environment(), **given)))
        return runs[-1]

    yield begin
    for run in runs:
        if run.process.poll() is None:
            run.process.send_signal(signal.SIGTERM)
            run.process.communicate(timeout=DEADLINE)
        for stream in (run.process.stdin, run.process.stdout, run.process.stderr):
            if stream is not None:
                stream.close()
        until(lambda one=run: not one.tees())  # type: ignore[misc]


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
