"""A trainer's end is seen, however short its life and whatever the mode."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CRASHES = """
import gyrostat
telemetry = gyrostat.Telemetry()
for step in range(1, 31):
    telemetry.record(step, loss=1.0)
raise SystemExit(9)
"""


def gyrostat(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "gyrostat_agent", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, env=dict(os.environ))


@pytest.mark.parametrize("mode", ["shadow", "act"])
def test_a_crash_is_an_incident_however_short_the_life(tmp_path: Path, mode: str) -> None:
    """The supervisor ends the agent right behind the trainer: what was written by then is read first."""
    script = tmp_path / "crash.py"
    script.write_text(CRASHES)
    run = tmp_path / "run"
    words = ("run", "--run-dir", str(run), "--mode", mode, "--listen", "", "--", sys.executable, str(script))
    assert gyrostat(*words, cwd=tmp_path).returncode == 9
    told = gyrostat("incidents", str(run), cwd=tmp_path)
    assert "crash: trainer 0 ended with exit 9 after step 30" in told.stdout, told.stdout + told.stderr
