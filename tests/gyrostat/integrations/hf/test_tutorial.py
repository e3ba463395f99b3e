"""The tutorial's own commands, typed in its order, by somebody who has TRL."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from trl_runs import PYTHON, WORLD, need_trl

pytestmark = pytest.mark.trl
ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "tutorial.md"
DIES = "--mend-within 0"  # the one command whose run is to die, as the page says


def commands() -> list[str]:
    """What is to be typed, in order; installing is the environment's."""
    found = re.findall(r"^    (gyrostat .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"\s{2,}#.*$", "", line) for line in found]


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """A PATH on which ``python`` has TRL and ``gyrostat`` is this one; the repository lies there under its names."""
    need_trl()
    tools = tmp_path / "bin"
    tools.mkdir()
    packages = os.pathsep.join(str(ROOT / name) for name in ("trainer", "rules", "agent", "exporters"))
    ours = f'PYTHONPATH={packages} exec {shlex.quote(sys.executable)} -m gyrostat_agent "$@"'
    scripts = {"python": f'exec {shlex.quote(PYTHON)} -W ignore "$@"', "gyrostat": ours}
    for name, line in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o700)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "runs").mkdir(mode=0o700)
    return {**WORLD, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "trainer")}


def test_every_command_of_the_page_does_what_it_says(tmp_path: Path, shell: dict[str, str]) -> None:
    """Each ends well, but for the run that is to die; what the page tells of the two broken runs is there."""
    typed = commands()
    assert len(typed) >= 11
    said = {}
    for line in typed:
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=tmp_path, env=shell, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == (1 if DIES in line else 0), f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        said[line] = done.stdout + done.stderr
    assert "mode is shadow" in said["gyrostat incidents runs/shadow"]
    assert "rollback" in said["gyrostat incidents runs/shadow"]
    assert re.search(r"hit +NonFinitePoison, rollback", said["gyrostat shadow report runs/shadow"])
    assert "resolved" in said["gyrostat incidents runs/act"]
    assert "loss" in said["gyrostat top --once --no-color runs/first"]
