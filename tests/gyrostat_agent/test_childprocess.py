"""Starting a child without a shell, and what is said of its end."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gyrostat_agent.childprocess import StartError, in_words, start


@pytest.mark.parametrize(
    "name, text, mode, status, said",
    [
        ("absent", None, 0, 127, "not found"),
        ("plain", "x", 0o600, 126, "chmod +x"),
        ("headless", "exit 0", 0o700, 126, "#! line"),
        ("astray", "#!/nowhere/at/all\n", 0o700, 127, "interpreter"),
    ],
)
def test_a_command_that_cannot_be_started(
    tmp_path: Path, name: str, text: str | None, mode: int, status: int, said: str
) -> None:
    """The error names the command and what to do, has the shell's status, and no shell is tried."""
    program = tmp_path / name
    if text is not None:
        program.write_text(text)
        program.chmod(mode)
    with pytest.raises(StartError, match=re.escape(said)) as caught:
        start([str(program)], {}, frozenset())
    assert str(program) in str(caught.value)
    assert (caught.value.status, caught.value.passing) == (status, False)


def test_a_child_apart_touches_no_terminal_and_no_stdout() -> None:
    """The agent reads nothing of the trainer's stdin, writes nothing to its stdout, and is in a session of its own."""
    child = "import os, sys; print(repr(sys.stdin.read()), os.getsid(0) == os.getpid())"
    program = (
        "import os, sys; from gyrostat_agent.childprocess import start;"
        f"os.waitpid(start([sys.executable, '-c', {child!r}], os.environ, frozenset(), apart=True), 0)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, input="trainer's", capture_output=True, text=True, timeout=20
    )
    assert (done.stdout, done.stderr) == ("", "'' True\n")


def test_a_child_has_signals_as_any_program_has(tmp_path: Path) -> None:
    """What the interpreter ignores, SIGPIPE above all, is not ignored in a child; only the given mask is blocked."""
    found = tmp_path / "status"
    pid = start(["cp", "/proc/self/status", str(found)], os.environ, frozenset({signal.SIGUSR1}))
    assert os.waitpid(pid, 0)[1] == 0
    masks = {
        k: int(v, 16)
        for k, _, v in (x.partition(":") for x in found.read_text().splitlines())
        if k[:3] == "Sig" and k != "SigQ"
    }
    assert masks["SigBlk"] == 1 << (signal.SIGUSR1 - 1)
    assert not masks["SigIgn"] & (1 << (signal.SIGPIPE - 1))


@pytest.mark.parametrize("status, text", [(0, "exit 0"), (7, "exit 7"), (-9, "signal 9 (SIGKILL)"), (-40, "signal 40")])
def test_an_end_in_words(status: int, text: str) -> None:
    """People read what happened without a table of signals."""
    assert in_words(status) == text
