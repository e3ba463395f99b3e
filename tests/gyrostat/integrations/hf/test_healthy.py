"""A healthy TRL run under an agent that may act: it trains to its end, and nothing is done to it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trl_runs import HERE, PYTHON, WORLD, need_trl

pytestmark = pytest.mark.trl


def _agent(*arguments: str, env: dict[str, str] | None = None) -> str:
    command = [sys.executable, "-m", "gyrostat_agent", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, env=env)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_a_healthy_run_is_let_alone(tmp_path: Path) -> None:
    """Thirty steps in mode act, with nobody asked: no incident, no action, its checkpoints verified."""
    need_trl()
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    script = [PYTHON, "-W", "ignore", str(HERE / "train_grpo.py"), str(tmp_path / "out"), "30"]
    options = ["--mode", "act", "--no-approvals", "--listen", "", "--run-dir", str(run)]
    assert "TRAINED 30" in _agent("run", *options, "--", *script, env=WORLD)
    history: list[dict[str, Any]] = json.loads(_agent("incidents", "--all", "--json", str(run)))
    assert not [entry for entry in history if entry["kind"] in ("alert", "incident", "action")]
    verified = [Path(entry["subject"]).name for entry in history if entry["kind"] == "checkpoint"]
    assert verified[:2] == ["checkpoint-10", "checkpoint-20"]
