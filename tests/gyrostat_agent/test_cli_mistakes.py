"""What people get wrong, and what nobody foresaw: one clear line, the documented status, never a stack trace."""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_runs import Bench
from cli_runs import Run, calling, one_line
from supervised_runs import DEADLINE, environment

from gyrostat_agent import console
from gyrostat_agent.sources.commands import give


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Bench]:
    """A run whose path is not UTF-8."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xff"))
    folder.mkdir(mode=0o700)
    made = Bench(folder, time.time)
    made.agent().close()
    yield made
    made.close()


@pytest.mark.parametrize(
    "words", ["status", "incidents", "incidents --all --json", "journal verify", "replay", "pause"]
)
def test_a_path_that_is_not_utf8(cli: Run, odd: Bench, words: str) -> None:
    """It is a path like any other."""
    status, out, err = cli(*words.split(), odd.run.path)
    assert status == (1 if words == "status" else 0) and out, err
    assert "\udcff" not in out


def test_a_run_in_a_path_that_is_not_utf8(tmp_path: Path) -> None:
    """``gyrostat run`` and its agent write there, and look there."""
    path = os.path.join(os.fsencode(tmp_path), b"run\xff")
    base = [sys.executable, "-m", "gyrostat_agent"]
    argv = [*base, "run", "--run-dir", path, "--listen", "", "--", "true"]
    done = subprocess.run(argv, env=environment(), capture_output=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0 and b"Traceback" not in done.stderr and os.path.isdir(os.path.join(path, b"records"))


def test_an_internal_error_is_one_line(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw is called so, with the way to see where; status 1."""

    def broken() -> int:
        raise TypeError("a thing\nis no thing")

    monkeypatch.setattr("gyrostat_agent.cli.main", broken)
    status, _, err = cli("status")
    assert status == 1
    one_line(err, "internal error: TypeError: a thing is no thing (GYROSTAT_DEBUG=1 shows where)")
    monkeypatch.setenv(console.DEBUG, "1")
    with pytest.raises(TypeError):
        cli("status")


def test_a_library_that_one_command_misses(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are imported when they are called: it says what to install then as well."""

    def broken() -> int:
        raise ModuleNotFoundError("No module named 'yaml'", name="yaml")

    monkeypatch.setattr("gyrostat_agent.cli.main", broken)
    status, _, err = cli("rules", "check")
    assert (status, err) == (2, f"{console.NEEDED}  (missing: yaml)\n")


@pytest.mark.parametrize("slip, meant", [("stauts", "status"), ("aprove", "approve"), ("incident", "incidents")])
def test_a_slip_of_the_finger(cli: Run, slip: str, meant: str) -> None:
    """Status 2, and what was meant."""
    status, _, err = cli(slip)
    assert status == 2 and f"Did you mean '{meant}'?" in err


def test_journals_help_says_what_there_is(cli: Run) -> None:
    """It promises nothing that is not there."""
    assert "list" not in cli("journal", "--help")[1].lower().replace("listed", "")
    assert "journal verify" in cli("--help")[1]


def test_rules_check_goes_on(cli: Run, tmp_path: Path) -> None:
    """A file that cannot be read hides no mistake of the next."""
    bad, binary = tmp_path / "bad.yaml", tmp_path / "binary.yaml"
    bad.write_text("pack: 3\ngroups: none\n")
    binary.write_bytes(b"\xff")
    status, _, err = cli("rules", "check", str(tmp_path / "none.yaml"), str(binary), str(tmp_path), str(bad))
    assert status == 2 and "none.yaml: No such file" in err and "binary.yaml: " in err and f"{bad}:" in err, err


def test_a_break_that_was_trusted(cli: Run, bench: Bench) -> None:
    """The chain stays broken, and verify says who trusted the run since; not before."""
    bench.agent().close()
    with sqlite3.connect(os.path.join(bench.run.agent, "journal.db")) as db:
        db.execute("UPDATE turns SET hash = zeroblob(16) WHERE seq = 1")
    db.close()
    agent = bench.agent()
    status, out, _ = cli("journal", "verify", bench.run.path)
    assert status == 4 and "observes only until: gyrostat trust" in out
    give(bench.run, "trust", {"reason": "seen", "by": "ada"})
    agent.once()
    status, out, _ = cli("journal", "verify", bench.run.path)
    assert status == 4 and "trusted again by ada" in out and "observes only until" not in out


@pytest.mark.parametrize("where", ["none/figures.json", "."], ids=["no folder", "a folder"])
def test_demo_asks_where_before_it_trains(cli: Run, tmp_path: Path, where: str) -> None:
    """Minutes of training are not thrown away for a path."""
    status, _, err = cli("demo", "--json", str(tmp_path / where), "--out", str(tmp_path / "out"))
    assert status == 2 and not (tmp_path / "out").exists()
    one_line(err, "--json")
