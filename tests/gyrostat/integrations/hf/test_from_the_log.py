"""Real GRPO runs without a line of Gyrostat: what happens to them is found in what they print, by ``gyrostat run``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from trl_runs import HERE, PYTHON, WORLD, need_trl

pytestmark = pytest.mark.trl


class Found(NamedTuple):
    """The trainer's own exit status, the agent's entries, and the steps that were read."""

    status: int
    entries: list[dict[str, Any]]
    steps: int

    def kinds(self) -> list[str]:
        """The kinds of the incidents, in the order in which they were opened."""
        found = [e["data"]["incident_kind"] for e in self.entries if e["kind"] == "incident" and e["state"] == "open"]
        return list(dict.fromkeys(found))

    def fired(self) -> set[str]:
        """The rules that fired."""
        fired = (e["subject"] for e in self.entries if e["kind"] == "alert" and e["state"] == "firing")
        return {subject.partition("{")[0] for subject in fired}


def watched(fault: str, folder: Path) -> Found:
    """Train under the fault in mode shadow: nothing is done, so that the run ends as it would have."""
    need_trl()
    run = folder / "run"
    run.mkdir(mode=0o700)
    (folder / "gate").touch()
    script = [
        PYTHON,
        "-u",
        "-W",
        "ignore",
        str(HERE / "plain_grpo.py"),
        fault,
        str(folder / "work"),
        str(folder / "gate"),
    ]
    command = [
        sys.executable,
        "-m",
        "gyrostat_agent",
        "run",
        "--listen",
        "",
        "--run-dir",
        str(run),
        "--mend-within",
        "0",
    ]
    done = subprocess.run(
        [*command, "--", *script], capture_output=True, text=True, check=False, timeout=150, env=WORLD
    )
    told = [sys.executable, "-m", "gyrostat_agent", "incidents", "--all", "--json", str(run)]
    entries = json.loads(subprocess.run(told, capture_output=True, text=True, check=True, timeout=60).stdout)
    status = json.loads((run / "agent" / "status.json").read_text())
    assert status["step"] > 0, done.stderr[-2000:] + done.stdout[-2000:]
    return Found(done.returncode, entries, status["step"])


def test_nan_weights_are_found_and_the_death_they_lead_to(tmp_path: Path) -> None:
    """No row shows them; the next generation raises and says so: one incident, of the cause alone."""
    found = watched("nan_weights", tmp_path)
    assert found.status == 1, "as it would have ended"
    assert found.kinds() == ["nonfinite"]
    assert {"NonFinitePoison", "TrainerDied"} <= found.fired()


def test_a_reward_that_is_nan_is_found(tmp_path: Path) -> None:
    """TRL trains on without it; its row says nan where the function's mean should be."""
    found = watched("nan_reward", tmp_path)
    assert (found.status, found.kinds()) == (0, ["nonfinite"])
    assert "NonFinitePoison" in found.fired()


def test_an_entropy_that_collapses_is_found(tmp_path: Path) -> None:
    """TRL logs it each step."""
    found = watched("entropy", tmp_path)
    assert (found.status, found.kinds()) == (0, ["entropy"])
    assert "EntropyCollapsed" in found.fired()


def test_experts_that_collapse_show_in_the_balance_loss(tmp_path: Path) -> None:
    """All that TRL logs of them: a warning. Which experts, and how many, only the callback sees."""
    found = watched("router", tmp_path)
    assert (found.status, found.kinds()) == (0, [])
    assert "BalanceLossRose" in found.fired()


def test_a_killed_trainer_is_found(tmp_path: Path) -> None:
    """SIGKILL leaves no word in a log: its supervisor saw it, and ends as it did."""
    found = watched("killed", tmp_path)
    assert (found.status, found.kinds()) == (-9, ["crash"])
    assert "TrainerDied" in found.fired()
