"""Short form of ``make scenarios``, really played: one seed of four scenarios."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scenario_rows import read
from scenarios import QUICK

ROOT = Path(__file__).parents[2]


def test_one_seed_of_four_scenarios_is_mended(tmp_path: Path) -> None:
    """A real run, a real fault, a real sidecar: all four are mended, and nothing is done where nothing is broken."""
    pytest.importorskip("torch", reason="the reference trainer needs torch: pip install 'gyrostat[reference]'")
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/scenarios.py"), "--quick", "--no-untreated", "--out", str(tmp_path)],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = read(tmp_path / "scenarios.json").rows
    assert {row.scenario: row.mended for row in rows} == dict.fromkeys(QUICK, True), done.stdout
