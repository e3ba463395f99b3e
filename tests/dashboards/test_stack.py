"""The stack: its Alertmanager's routes lead where the page says, and the whole chain holds with the real programs."""

import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "dashboards" / "prometheus" / "alertmanager.example.yaml"
STACK = ROOT / "dashboards" / "stack" / "stack.py"


def amtool(*words: str) -> str:
    """What the real amtool says; skips with the reason where there is none."""
    program = which("amtool")
    if program is None:
        pytest.skip("amtool is not on PATH; on Debian: apt-get install prometheus-alertmanager")
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_the_example_is_one_that_alertmanager_takes() -> None:
    """Checked by its own tool."""
    assert "SUCCESS" in amtool("check-config", str(EXAMPLE))


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        (("alertname=PersonNeeded", "run=r", "incident=i0001", "severity=critical"), "on-call"),
        (("alertname=GyrostatGone", "run=r", "severity=warning"), "on-call"),
        (("alertname=GyrostatBlind", "instance=a", "severity=critical"), "on-call"),
        (("alertname=NonFinitePoison", "run=r", "incident=i0001", "severity=critical"), "channel"),
        (("alertname=EntropyCollapse", "run=r", "incident=i0002", "severity=critical"), "channel"),
        (("alertname=RecordsLost", "instance=a", "severity=warning"), "morning"),
    ],
)
def test_whoever_must_get_up_is_told_and_nobody_else(labels: tuple[str, ...], receiver: str) -> None:
    """What the agent mends itself wakes nobody; what needs a person does."""
    assert amtool("config", "routes", "test", f"--config.file={EXAMPLE}", *labels) == receiver


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """Without the programs: one line that says how to get them, no stack trace."""
    words = [sys.executable, str(STACK), "--test"]
    done = subprocess.run(words, capture_output=True, text=True, env={"PATH": str(tmp_path)}, timeout=60, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "apt-get install prometheus" in done.stderr


@pytest.mark.full
def test_the_whole_chain_holds() -> None:
    """From a NaN to the webhook with a runbook that opens, and to resolved; `make stack-test`."""
    if which("prometheus") is None or not (which("prometheus-alertmanager") or which("alertmanager")):
        pytest.skip("prometheus and prometheus-alertmanager are not on PATH; on Debian: apt-get install both")
    done = subprocess.run(
        [sys.executable, str(STACK), "--test"], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "resolved NonFinitePoison" in done.stdout
