"""Bad input through the command line: one clear line, the documented status, never a stack trace, never a hang."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import DEADLINE, Place, ended, gyrostat, world

from gyrostat_agent.cli.group import COMMANDS

Places = Callable[..., Place]


def said_once(done: "subprocess.CompletedProcess[str]", status: int, *words: str) -> None:
    """One line on stderr with these words in it, and the status."""
    assert done.returncode == status, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("gyrostat: "), done.stderr
    assert all(word in lines[0] for word in words), done.stderr


# -- where a run directory cannot be used -----------------------------------------------------------------


def test_a_run_directory_that_is_nowhere(tmp_path: Path) -> None:
    """Neither it nor its parent exists: says which, status 2."""
    said_once(gyrostat("agent", str(tmp_path / "no" / "such")), 2, str(tmp_path / "no"), "make the folder")


def test_a_run_directory_that_is_a_file(tmp_path: Path) -> None:
    """A file in its place is named."""
    (tmp_path / "run").touch()
    said_once(gyrostat("agent", str(tmp_path / "run")), 2, str(tmp_path / "run"))


def test_a_run_directory_that_others_may_write(tmp_path: Path) -> None:
    """Whoever could write there could give orders: refused, with the mode."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o777)
    said_once(gyrostat("agent", str(tmp_path / "run")), 2, "0777", "nobody else may write there")


def test_a_run_directory_that_cannot_be_written() -> None:
    """A file system that takes no folders, whoever asks."""
    done = gyrostat("agent", "/proc/sys/gyrostat-run")
    said_once(done, 2, "/proc/sys", "give a run directory this user can write to")


def test_run_checks_before_it_starts_anything(tmp_path: Path) -> None:
    """``gyrostat run`` on a folder that cannot be used starts no trainer."""
    (tmp_path / "run").touch()
    mark = tmp_path / "started"
    done = gyrostat("run", "--run-dir", str(tmp_path / "run"), "--", "touch", str(mark))
    said_once(done, 2, str(tmp_path / "run"))
    assert not mark.exists()


@pytest.mark.parametrize("command", ["status", "incidents", "journal verify", "replay", "pause", "approve i0001.1"])
def test_an_empty_folder(tmp_path: Path, command: str) -> None:
    """A folder that no agent has used: says so, and leaves it empty."""
    said_once(gyrostat(*command.split(), str(tmp_path)), 2, "holds no agent/journal.db")
    assert not list(tmp_path.iterdir())


def test_an_address_that_cannot_be_served(tmp_path: Path) -> None:
    """--listen without a port: how to write it."""
    said_once(gyrostat("agent", str(tmp_path / "run"), "--listen", "here"), 2, "HOST:PORT")


def test_a_second_agent_names_the_first(place: Places) -> None:
    """One agent a run: status 3, and whose it is."""
    run = place()
    first = run.agent()
    run.watched(first)
    said_once(gyrostat("agent", str(run.run)), 3, f"process {first.pid}", "one agent a run")
    assert ended(first) == 0


# -- rule packs -----------------------------------------------------------------------------------------


THREE = """pack: mine
groups:
  - name: numerics
    rules:
      - {alert: A, detector: nonfinit, severity: warning}
      - {alert: B, detector: nonfinite, severity: grave}
playbooks:
  - incident: nonfinite
    rungs:
      - {remedy: rolback, horizon: 3}
"""


def test_a_pack_with_three_mistakes(tmp_path: Path) -> None:
    """All three at once, each at its line, with what was meant; an agent does not start on it."""
    pack = tmp_path / "pack.yaml"
    pack.write_text(THREE)
    done = gyrostat("rules", "check", str(pack))
    assert done.returncode == 2 and not done.stdout
    found = [line for line in done.stderr.splitlines() if line.startswith(f"{pack}:")]
    assert [line.split(":")[1] for line in found] == ["5", "6", "10"], done.stderr
    assert all(word in done.stderr for word in ("nonfinite", "critical", "rollback")), done.stderr
    agent = gyrostat("agent", str(tmp_path / "run"), "--rules", str(pack))
    assert agent.returncode == 2 and "Traceback" not in agent.stderr and agent.stderr.count("pack.yaml:") == 3
    assert not (tmp_path / "run").exists()


def test_a_pack_that_is_not_there(tmp_path: Path) -> None:
    """Its name, and why."""
    said_once(gyrostat("rules", "check", str(tmp_path / "none.yaml")), 2, "none.yaml", "No such file")


def test_the_pack_that_comes_along() -> None:
    """Has no mistake."""
    done = gyrostat("rules", "check")
    assert done.returncode == 0 and "no mistake" in done.stdout


# -- terminals and pipes --------------------------------------------------------------------------------


def test_a_reader_that_leaves(place: Places) -> None:
    """``gyrostat incidents | head -1`` ends without a word of complaint, whenever the reader goes."""
    run = place()
    trainer, agent = (
        run.trainer("--items", "300", "--once", "--poison", ",".join(map(str, range(1, 300, 3)))),
        run.agent(),
    )
    assert trainer.wait(DEADLINE) == 0
    run.read_to_end()
    assert ended(agent) == 0
    argv = [sys.executable, "-m", "gyrostat_agent", "incidents", "--all", str(run.run)]
    done = subprocess.run(["bash", "-c", f"{shlex.join(argv)} | head -1"], env=world(), capture_output=True, text=True)
    assert done.stdout.count("\n") == 1 and not done.stderr, done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    gone = subprocess.run(argv, env=world(), stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (gone.returncode, gone.stderr) == (1, "")


def test_ctrl_c_ends_an_agent_in_order(place: Places) -> None:
    """SIGINT is a wish, not an error: status 0, the journal whole, no stack trace."""
    run = place()
    agent = run.agent()
    run.watched(agent)
    agent.send_signal(signal.SIGINT)
    assert agent.wait(DEADLINE) == 0
    assert "Traceback" not in run.said.read_text()
    assert gyrostat("journal", "verify", str(run.run)).returncode == 0


@pytest.mark.parametrize("command", [*COMMANDS, "journal verify", "rules check"])
def test_help_shows_how(command: str) -> None:
    """Every command's help ends well and says what it does; with an example where there are arguments."""
    done = gyrostat(*command.split(), "--help")
    assert done.returncode == 0 and done.stdout.startswith("Usage: ")
    if command not in ("journal", "rules"):
        assert f"\n  gyrostat {command}" in done.stdout, done.stdout


# -- run's own status --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, status", [("false", 1), ("sh -c 'exit 7'", 7), ("true", 0), ("no-such-program", 127)]
)
def test_run_leaves_with_its_commands_status(tmp_path: Path, command: str, status: int) -> None:
    """As if Gyrostat were not there."""
    words = ["sh", "-c", "exit 7"] if status == 7 else [command]
    done = gyrostat("run", "--run-dir", str(tmp_path / "run"), "--listen", "", "--", *words)
    assert done.returncode == status and not done.stdout and "Traceback" not in done.stderr


# -- words of the world ------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["C", "zh_CN.UTF-8"])
def test_a_run_directory_in_chinese(place: Places, language: str) -> None:
    """Watched, told of and verified, whatever the locale; the name comes out as it went in."""
    run = place(name="跑")
    odd = run.run.rename(run.folder / "运行一")
    run.run = odd
    told = {"LANG": language, "LC_ALL": language, "PYTHONUTF8": "", "PYTHONCOERCECLOCALE": ""}
    agent = run.agent(**told)
    run.watched(agent)
    trainer = run.trainer("--items", "20", "--poison", "10")
    assert trainer.wait(DEADLINE) == 0
    run.read_to_end()
    done = gyrostat("status", "--json", str(odd), **told)
    assert done.returncode == 0 and json.loads(done.stdout)["run"] == "运行一", done.stderr
    assert gyrostat("incidents", str(odd), **told).returncode == 0
    assert gyrostat("journal", "verify", str(odd), **told).returncode == 0
    assert ended(agent) == 0
    assert "运行一" in run.said.read_text(encoding="utf-8") and "Traceback" not in run.said.read_text(encoding="utf-8")
