"""``gyrostat run``: what it takes as the command, what it refuses before anything is started, what it says last."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import Run, calling, one_line
from supervised_runs import DEADLINE, environment

SICK = """
import json, os, sys, time
from gyrostat import Telemetry
telemetry = Telemetry(rank=0, world=1)
for step in (1, 2):
    telemetry.record(step, loss=float("nan"), step_applied=0.0)
telemetry.close()
end = time.monotonic() + 20
shown = os.path.join(os.environ["GYROSTAT_RUN_DIR"], "agent", "status.json")
while time.monotonic() < end:
    if os.path.exists(shown) and json.load(open(shown))["incidents"]:
        sys.exit(0)
    time.sleep(0.01)
sys.exit("the agent never opened an incident")
"""


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS`` that are refused: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


def begin(*words: str) -> "subprocess.Popen[str]":
    """``gyrostat run WORDS`` in a process of its own."""
    argv = [sys.executable, "-m", "gyrostat_agent", "run", "--listen", "", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment())


def run(*words: str) -> tuple[int, str, str]:
    """The same, to its end."""
    process = begin(*words)
    out, err = process.communicate(timeout=DEADLINE)
    return process.returncode, out, err


@pytest.mark.parametrize("between", [(), ("--",)], ids=["bare", "dashes"])
def test_what_stands_behind_the_command_is_its_own(tmp_path: Path, between: tuple[str, ...]) -> None:
    """``--`` may be forgotten: the trainer's options reach the trainer, those that we have too."""
    show = [sys.executable, "-c", "import sys; print(sys.argv[1:])"]
    wanted = ["--lr", "1", "--mode", "act", "--run-dir", "x", "-h"]
    status, out, err = run("--run-dir", str(tmp_path / "run"), *between, *show, *wanted)
    assert (status, out) == (0, f"{wanted}\n"), err
    assert "incident" not in err and "mode shadow" in err


def test_help_shows_where_the_command_goes(cli: Run) -> None:
    """The usage line has the dashes."""
    assert "run [OPTIONS] -- COMMAND..." in cli("run", "--help")[1]


@pytest.mark.parametrize("name", ["../x", "a/b", "/x", "a//b", "..", ".", "a\x1b[2J", "a\nb", "a\udcff"], ids=ascii)
def test_a_name_stays_in_its_folder(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A run's name is no path, and commands no terminal; refused before a folder is made."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("os.access", lambda *_: False)
    for words in (("run", "--run", name, "--", "true"), ("agent", str(tmp_path / "run"), "--run", name)):
        status, _, err = cli(*words)
        assert status == 2 and "\x1b" not in err
        one_line(err, "--run", "give a plain name")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "option, value",
    [
        ("--listen", "here"),
        ("--listen", ":9466"),
        ("--listen", "127.0.0.1:99999"),
        ("--listen", "127.0.0.1:²"),
        ("--listen", "127.0.0.1:" + "9" * 5000),
        ("--listen", "127.0.0.1:-1"),
        ("--mend-within", "-1"),
        ("--mend-within", "nan"),
        ("--rules", "/no/such/pack.yaml"),
    ],
    ids=lambda v: v[:20],
)
def test_options_are_checked_first(cli: Run, tmp_path: Path, option: str, value: str) -> None:
    """Nothing is started, and no folder made, on an option that cannot be used."""
    status, _, err = cli("run", "--run-dir", str(tmp_path / "run"), option, value, "--", "true")
    assert status == 2
    one_line(err, option if option != "--rules" else value)
    assert not os.listdir(tmp_path)


def test_one_supervisor_a_run(tmp_path: Path) -> None:
    """A second one beside a living one is refused with status 3; after its end the directory may be used again."""
    path = str(tmp_path / "run")
    first = begin("--run-dir", path, "--", "sh", "-c", "echo up; read word")
    assert first.stdout is not None and first.stdout.readline() == "up\n"
    mark = tmp_path / "started"
    status, _, err = run("--run-dir", path, "--", "touch", str(mark))
    assert status == 3 and not mark.exists()
    one_line(err, path, "--run-dir")
    first.communicate("word\n", timeout=DEADLINE)
    assert run("--run-dir", path, "--", "touch", str(mark))[0] == 0 and mark.exists()


def test_it_says_last_what_went_wrong(tmp_path: Path) -> None:
    """Who comes back in the morning sees the count and where to look."""
    path = str(tmp_path / "a run")
    status, _, err = run("--run-dir", path, "--", sys.executable, "-c", SICK)
    assert status == 0, err
    assert err.splitlines()[-1] == f"gyrostat: 1 incident in this run; look with: gyrostat incidents '{path}'"
    assert err.count("incident in this run") == 1
