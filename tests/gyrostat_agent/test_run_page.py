"""docs/run.md: its recipes do what they say, and its tables are those of the code."""

import os
import re
import signal
import subprocess
import textwrap
from pathlib import Path

import pytest
from supervised_runs import DEADLINE, until

from gyrostat_agent.launch.flags import recognise, resumed, table
from gyrostat_agent.launch.person import EXIT_PERSON

PAGE = (Path(__file__).parents[2] / "docs" / "run.md").read_text(encoding="utf-8")


def block(begins: str) -> str:
    """The indented part of the page whose first line begins so."""
    lines = PAGE[PAGE.index(f"    {begins}") :].splitlines()
    end = next((i for i, line in enumerate(lines) if line and not line.startswith("    ")), len(lines))
    return textwrap.dedent("\n".join(lines[:end]))


class Job:
    """The Slurm script, with stand-ins for ``gyrostat`` and ``scontrol``."""

    def __init__(self, folder: Path, run: str) -> None:
        self.folder = folder
        for name, body in {"gyrostat": run, "scontrol": f'echo "$@" >>{folder}/requeued'}.items():
            (folder / name).write_text(f"#!/bin/bash\n{body}\n")
            (folder / name).chmod(0o700)
        (folder / "job").write_text(block("#!/bin/bash"))
        at = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "HOME": str(folder)}
        self.process = subprocess.Popen(["bash", str(folder / "job")], env=at, stderr=subprocess.DEVNULL)

    def end(self) -> tuple[int, str]:
        """Its status, and what Slurm was asked for."""
        status = self.process.wait(DEADLINE)
        asked = self.folder / "requeued"
        return status, asked.read_text().strip() if asked.exists() else ""


@pytest.mark.parametrize("status, again", [(0, False), (1, True), (EXIT_PERSON, False), (127, False), (2, False)])
def test_slurm_queues_a_failure_again_and_never_one_that_needs_a_person(
    tmp_path: Path, status: int, again: bool
) -> None:
    """By the exit status alone."""
    assert Job(tmp_path, f"exit {status}").end() == (status, "requeue 7" if again else "")


@pytest.mark.parametrize("status, again", [(0, True), (143, True), (EXIT_PERSON, False)])
def test_slurm_hands_the_time_limits_signal_on_and_waits(tmp_path: Path, status: int, again: bool) -> None:
    """The run saves on it and ends when it has; then it is queued again."""
    mark = tmp_path / "up"
    job = Job(tmp_path, f"trap 'sleep 0.2; exit {status}' TERM; touch {mark}; while :; do sleep 0.05; done")
    until(mark.exists)
    job.process.send_signal(signal.SIGTERM)
    assert job.end() == (status, "requeue 7" if again else "")


def test_systemd_does_not_restart_what_needs_a_person() -> None:
    """Nor what cannot be started; and the whole group is not signalled past us."""
    unit = block("[Unit]")
    (statuses,) = re.findall(r"RestartPreventExitStatus=(.*)", unit)
    assert statuses.split() == ["2", "3", str(EXIT_PERSON), "126", "127"] and "KillMode=mixed" in unit
    assert f"\n| {EXIT_PERSON} |" in PAGE


def test_the_recipes_commands_are_known() -> None:
    """What they restart can be told from where."""
    for text in (block("#!/bin/bash"), block("[Unit]")):
        command = re.sub(r"\\\n", " ", text).partition(" -- ")[2].splitlines()[0].split()
        launcher = recognise(command, table())
        assert launcher is not None and launcher.name == "trl"


def test_the_page_has_each_launcher_with_its_flags() -> None:
    """A row for each of the table, with what it is told."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    for launcher in table():
        assert any(all(name in row or "the same" in row for name in launcher.resume) for row in rows), launcher.name


def test_the_pages_own_table_is_one(tmp_path: Path) -> None:
    """It can be given as it stands there."""
    place = tmp_path / "flags.yaml"
    place.write_text(block("launchers:"))
    launcher = recognise(["python", "our_train.py"], table(str(place)))
    assert launcher is not None
    found = resumed(["python", "our_train.py"], launcher, "/c/step12")
    assert found is not None and found.command[2:] == ("--from", "/c", "--at", "12")
