"""The recorder of real runs: lines of the same form, deadlines by the run's own numbers, and a file that goes on."""

import json
import math
from pathlib import Path

import pytest
from recording import Recording, RecordingError

from gyrostat_agent.backtest.case import read

pytest.importorskip("torch", reason="the reference trainer needs torch: pip install 'gyrostat[reference]'")

import record
from recorded_runs import CLEAN, RECORDED, Job, jobs, lines, recorded


def rows(count: int, **changed: tuple[int, float]) -> list[dict[str, float]]:
    """Rows of a healthy run; a name's ``(step, value)`` holds from that step on."""
    plain = {"loss": 0.01, "reward": 0.5, "entropy": 0.8, "mismatch_kl": 1e-3, "expert_rho_eff": 0.8}
    return [
        {**plain, **{name: value for name, (since, value) in changed.items() if step >= since}}
        for step in range(1, count + 1)
    ]


def facts(name: str, told: list[dict[str, float]]) -> dict[str, object]:
    """The first line of a run of that name."""
    return dict(json.loads(lines(Job(name, 5000, len(told), "judge"), told)[0]))


@pytest.mark.parametrize(
    ("name", "told", "onset", "due"),
    [
        ("nan_data", rows(30, loss=(21, math.nan)), 20, 22),
        ("lr_bomb", rows(45, reward=(22, 0.0)), 20, 27),
        ("divergence", rows(23, reward=(21, 0.0)), 20, 23),
        ("entropy_collapse", rows(110, entropy=(60, 0.1)), None, 65),
        ("expert_imbalance", rows(40, expert_rho_eff=(1, 0.3)), 1, 6),
        ("stale_rollouts", rows(60, mismatch_kl=(30, 0.1)), 20, 35),
    ],
    ids=["nan", "reward", "the run ends first", "entropy", "experts", "mismatch"],
)
def test_a_deadline_is_of_the_runs_own_numbers(
    name: str, told: list[dict[str, float]], onset: int | None, due: int
) -> None:
    """Due so many rows after the first three that show the fault, and never after the run's end."""
    raw = facts(name, told)
    assert (raw["onset_step"], raw["must_fire_by_step"]) == (onset, due)
    assert (raw["kind"], raw["healthy"]) == (RECORDED[name].kind, False)


def test_a_fault_that_does_not_show_is_left_out() -> None:
    """A run that came through unharmed must not be called faulty."""
    assert lines(Job("divergence", 5000, 60, "judge"), rows(60)) == []


def test_seeds_of_the_splits_are_apart() -> None:
    """And so are the runs; the clean ones make the steps that were asked for."""
    clean = {split: jobs(CLEAN, split, 10_000, 3) for split in ("calibrate", "judge")}
    assert all(sum(job.steps for job in found) >= 10_000 for found in clean.values())
    assert not {job.seed for job in clean["calibrate"]} & {job.seed for job in clean["judge"]}
    assert [job.group for job in jobs("lr_bomb", "judge", 1, 2)] == ["reference-lr_bomb-5000", "reference-lr_bomb-5001"]


def test_a_real_run_is_recorded() -> None:
    """The reference trainer itself: every line is a case, with the balance that the sidecar would make."""
    made = recorded(Job(CLEAN, 5000, 2, "judge"))
    assert [wrong for line in made for wrong in read(line.encode(), "made.jsonl", 2)[1]] == []
    told = {raw["signal"]: raw["series"] for raw in map(json.loads, made)}
    assert {"loss", "grad_norm", "entropy", "reward", "mismatch_kl", "expert_rho_eff", "step_time"} <= told.keys()
    assert [step for step, _ in told["entropy"]] == [1, 2]


def test_a_recording_goes_on_from_what_it_holds(tmp_path: Path) -> None:
    """Hours of training are not lost to an interruption, and the order is the names'."""
    path = tmp_path / "recorded.jsonl"
    first = Recording.read(path)
    first.add("b", ['{"group":"b"}'])
    first.add("a", ['{"group":"a","id":1}', '{"group":"a","id":2}'])
    first.save()
    again = Recording.read(path)
    assert again.groups == {"a", "b"}
    assert path.read_text("utf-8").splitlines()[0] == '{"group":"a","id":1}'
    assert again.size == path.stat().st_size
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_what_is_there_is_not_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A recording that is whole ends at once."""
    path = tmp_path / "recorded.jsonl"
    path.write_text("".join(f'{{"group":"{job.group}"}}\n' for job in jobs(CLEAN, "judge", 300, 1)), "utf-8")
    assert record.main(["--out", str(path), "--only", CLEAN, "--healthy-steps", "300"]) == 0
    assert "2 runs" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["no json\n", '{"id": 1}\n', "[]\n"], ids=["no json", "no group", "a list"])
def test_another_file_is_not_written_over(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named with its line, and left as it is."""
    path = tmp_path / "other.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(RecordingError, match=":1:"):
        Recording.read(path)
    assert record.main(["--out", str(path)]) == 2
    assert "give another file with --out" in capsys.readouterr().err
    assert path.read_text("utf-8") == text
