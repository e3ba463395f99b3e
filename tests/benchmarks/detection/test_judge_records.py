"""Real runs judged by their record files: what is healthy is counted, what is not is told."""

from pathlib import Path

import judge_records
import pytest

from gyrostat import Telemetry
from gyrostat_agent.rundir import prepare


def trained(folder: Path, name: str, *, poisoned: int = 0, steps: int = 30) -> None:
    """A run as a demonstration leaves it, in a folder of that name; its loss is NaN from ``poisoned`` on."""
    (folder / name).mkdir(parents=True)
    run = prepare(str(folder / name / "run"))
    telemetry = Telemetry(run.path, run="run", rank=0, world=1)
    for step in range(1, steps + 1):
        ill = poisoned and step >= poisoned
        telemetry.record(step, loss=float("nan") if ill else 1.0 + step % 3 / 50, step_applied=1.0, params_finite=1.0)
    telemetry.close()


def test_healthy_steps_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Clean runs and twins alike; what was treated is no healthy run and is not looked at."""
    trained(tmp_path / "a", "clean")
    trained(tmp_path / "b", "twin")
    trained(tmp_path / "c", "treated", poisoned=10)
    assert judge_records.main([str(tmp_path), "--most-incidents", "0", "--most-warnings", "0"]) == 0
    assert "2 runs, 60 steps: 0 incidents, 0 warnings, 0.00 in 1,000 steps" in capsys.readouterr().out


def test_what_is_told_of_a_clean_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which run, which rule, how often; exit status 1 where it is more than was allowed."""
    trained(tmp_path, "clean", poisoned=10)
    assert judge_records.main([str(tmp_path), "--most-incidents", "0"]) == 1
    out, err = capsys.readouterr()
    assert "1 runs, 30 steps: 1 incidents" in out and "NonFinitePoison (critical): 1" in out
    assert str(tmp_path / "clean" / "run") in err


def test_nothing_found_is_no_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty folder is not called healthy."""
    assert judge_records.main([str(tmp_path)]) == 2
    assert "no record files" in capsys.readouterr().err
