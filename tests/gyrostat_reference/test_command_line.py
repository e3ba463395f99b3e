import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gyrostat_reference.__main__ import DIED, main
from gyrostat_reference.faults import DIE_AT


def test_a_destroyed_policy_ends_the_run_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 1, one line on stderr, and a summary that says what happened."""
    summary = tmp_path / "summary.json"
    arguments = ["--steps", "4", "--poison-at-step", "2", "--summary", str(summary), "--run-dir", ""]
    assert main(arguments) == DIED
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert err == "step 3: the policy's probabilities are not finite; the parameters were destroyed\n"
    told = json.loads(summary.read_text())
    assert (told["last_step"], told["died"] + "\n", told["skipped"]) == (2, err, 0)
    assert (told["rewards"][1], told["nonfinite"]) == ([2, None], {"reward at 2": "inf"})


def test_killed_while_it_writes_a_checkpoint(tmp_path: Path) -> None:
    """The half-written checkpoint is none: the next life goes on from the one before it."""
    command = [
        sys.executable, "-m", "gyrostat_reference", "--steps", "4", "--checkpoint-every", "1",
        "--checkpoints", str(tmp_path), "--run-dir", "",
    ]  # fmt: skip
    killed = subprocess.run(command, env={**os.environ, DIE_AT: "checkpoint.files:2"}, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert sorted(p.name for p in tmp_path.iterdir()) == [".step-00000002.tmp", "step-00000001"]
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.splitlines()[0] == "resumed from step-00000001"
    assert [p.name for p in sorted(tmp_path.iterdir())] == [f"step-{n:08d}" for n in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    "arguments", [["--steps", "0"], ["--keep", "-1"], ["--poison-item", "1", "--poison-at-step", "1"]]
)
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """They are refused before anything is loaded."""
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "error" in capsys.readouterr().err
