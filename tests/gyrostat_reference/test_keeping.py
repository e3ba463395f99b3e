"""What a run keeps, and what it goes on with when something of that is damaged or was never written."""

import errno
import json
import os
from pathlib import Path

import pytest
from reference_runs import end, fingerprint, lay_resume, ring, train, trainer_at

from gyrostat_reference.__main__ import DIED, WRONG, main
from gyrostat_reference.data import Place, PromptData
from gyrostat_reference.manifest import MANIFEST, MODEL, CheckpointError, Manifest
from gyrostat_reference.pivotrl import Pivot, Pool
from gyrostat_reference.procedures import Procedures


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir() if path.name.startswith("step"))


def test_a_checkpoint_that_fails_is_told_and_owed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is said and counted; what a rollback owes is written as soon as there is room again."""
    said: list[str] = []
    trainer = trainer_at(tmp_path, said=said)
    control = train(trainer, 2)
    folder = tmp_path / "checkpoints" / "step-00000002"
    Procedures(trainer).rollback({"checkpoint": str(folder), "digest": _digest(folder)})
    sync = os.fsync

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    trainer.begin_checkpoint()
    trainer.finish_writing()
    monkeypatch.setattr(os, "fsync", sync)
    train(trainer, 4, control)
    assert [line for line in said if "No space left" in line] == [
        "checkpoint not written: step-00000002-s0: No space left on device"
    ]
    assert "step-00000003" in names(tmp_path)  # owed since the rollback; by itself only every second step is kept


def _digest(folder: Path) -> str:
    from gyrostat_reference.manifest import digest_of

    return digest_of((folder / MANIFEST).read_bytes())


def test_directives_behind_a_damaged_checkpoint_are_not_done(tmp_path: Path) -> None:
    """Falling back to an older one, what was passed over stays so, and Hello claims only what was loaded."""
    trainer = trainer_at(tmp_path)
    control = train(trainer, 2)
    ring(trainer, control, 1, "skip_data", items=[500])
    train(trainer, 4, control)
    end(trainer)
    (tmp_path / "checkpoints" / "step-00000004" / MODEL).write_bytes(b"")
    again = trainer_at(tmp_path)
    control = train(again, 2)
    assert (again.step, control.last_directive, again.data.place.passed_over) == (2, 0, frozenset({500}))


def test_a_resume_is_obeyed_again_where_what_came_of_it_is_damaged(tmp_path: Path) -> None:
    """The restart's own checkpoint is lost: the order stands, instead of the older state that it was to leave."""
    first = trainer_at(tmp_path)
    train(first, 4)
    end(first)
    lay_resume(tmp_path, tmp_path / "checkpoints" / "step-00000002", 7)
    second = trainer_at(tmp_path)
    train(second, 3)
    end(second)
    for path in (tmp_path / "checkpoints").glob("step-*-s1*"):
        (path / MODEL).write_bytes(b"")
    said: list[str] = []
    third = trainer_at(tmp_path, said=said)
    control = train(third, 2)
    assert "resumed from step-00000002, as directive 7 says" in said
    assert (third.step, control.last_directive) == (2, 7)


def test_pivots_of_a_passed_over_item_stay_away(tmp_path: Path) -> None:
    """A rollback brings the pool of its checkpoint back, but not what has been passed over since."""
    trainer = trainer_at(tmp_path)
    pool = Pool((Pivot((9, 0, 8, 1), 7), Pivot((9, 1, 8, 1), 8)), 1)
    trainer.estimates = trainer.estimates._replace(pool=pool)
    control = train(trainer, 2)
    folder = tmp_path / "checkpoints" / "step-00000002"
    train(trainer, 3, control)
    procedures = Procedures(trainer)
    procedures.skip_data({"items": [7]})
    procedures.rollback({"checkpoint": str(folder), "digest": _digest(folder)})
    assert [pivot.item for pivot in trainer.estimates.pool.pivots] == [8]


def test_another_run_s_checkpoint_is_none(tmp_path: Path) -> None:
    """Under another seed its items are other prompts: said, and not gone on from."""
    first = trainer_at(tmp_path)
    train(first, 2)
    end(first)
    said: list[str] = []
    second = trainer_at(tmp_path, said=said, seed=9)
    train(second, 1)
    assert said[0].startswith("not resumed from") and "'seed': 0" in said[0]
    assert [step for step, _ in second.history.rewards] == [1]


def test_knobs_that_differ_from_what_was_asked_are_said(tmp_path: Path) -> None:
    """They stand as the checkpoint has them: a directive may have turned them. Nobody is left to guess."""
    first = trainer_at(tmp_path)
    train(first, 2)
    end(first)
    said: list[str] = []
    second = trainer_at(tmp_path, said=said, knobs=first.knobs._replace(kl_coef=0.01))
    train(second, 2)
    assert said == ["resumed from step-00000002", "knobs as the checkpoint has them: kl_coef 0, not 0.01"]


def test_a_spent_guard_stays_spent_over_a_restart(tmp_path: Path) -> None:
    """A restart must not give it three new skips; a rollback takes back those of the steps undone."""
    item = PromptData().first_item_of_step(1)
    first = trainer_at(tmp_path, guard=True, poison_item=item)
    train(first, 2)
    end(first)
    second = trainer_at(tmp_path, guard=True, poison_item=item)
    train(second, 3)
    assert second.guard is not None and second.guard.skips() == [1, 2, 3]
    folder = tmp_path / "checkpoints" / "step-00000002"
    Procedures(second).rollback({"checkpoint": str(folder), "digest": _digest(folder)})
    assert second.guard.skips() == [1, 2]


def test_the_noise_ends_after_fifty_steps_and_is_announced(tmp_path: Path) -> None:
    """A knob that turns by itself is told, or the next directive on it would be refused."""
    trainer = trainer_at(tmp_path)
    control = train(trainer, 1)
    trainer.knobs = trainer.knobs._replace(router_noise=0.5)
    trainer.estimates = trainer.estimates._replace(noise_since=3)  # its first step was the third
    trainer.step = 50
    train(trainer, 51, control)
    assert trainer.knobs.router_noise == 0.5
    train(trainer, 52, control)
    assert trainer.knobs.router_noise == 0.0
    told: list[object] = []
    control.announce = lambda: told.append(1)  # type: ignore[method-assign]
    train(trainer, 53, control)
    assert told == [1]


def test_the_last_step_is_kept(tmp_path: Path) -> None:
    """A run of three steps that keeps every fifth keeps its third too."""
    arguments = ["--steps", "3", "--checkpoint-every", "5", "--checkpoints", str(tmp_path / "c"), "--run-dir", ""]
    assert main(arguments) == 0
    assert (tmp_path / "c" / "step-00000003" / MANIFEST).exists()


def test_a_last_step_that_destroys_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    """Loss NaN, parameters NaN, and nobody went back from it: status 1."""
    assert main(["--steps", "2", "--poison-at-step", "2", "--patience", "0", "--run-dir", ""]) == DIED
    assert capsys.readouterr().err == "step 2, the last, left parameters that are not finite\n"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param({"time": 10**400}, "not a finite number", id="a number past float"),
        pytest.param({"segment": 10**30}, "2\\*\\*53", id="a number past all counting"),
        pytest.param({"identity": {"seed": -1}}, "2\\*\\*53", id="an identity that is none"),
    ],
)
def test_a_manifest_that_lies_is_refused(tmp_path: Path, change: dict[str, object], why: str) -> None:
    """Whatever somebody wrote into it, the reader says what is wrong."""
    raw = json.loads(Manifest(1, 0, 0, 1.0, Place(), {}, {}).encode())
    files = {name: {"bytes": 1, "digest": ""} for name in ("model.safetensors", "optimizer.safetensors", "state.json")}
    with pytest.raises(CheckpointError, match=why):
        Manifest.decode(json.dumps({**raw, "files": files, **change}).encode())


def test_passing_everything_over_is_refused(tmp_path: Path) -> None:
    """A checkpoint, or a rollback, that leaves less than a batch would be drawn from for ever."""
    data = PromptData()
    with pytest.raises(ValueError, match="less than a batch"):
        data.go_past(frozenset(range(500)))
    assert data.place == Place()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--workers", "-1"], ["--seed", "99999999999999"], ["--patience", "nan"], ["--patience", "inf"],
        ["--poison-item", "9999"], ["--summary", "/nowhere/at/all.json"], ["--set", "loop_times=8"],
        ["--set", "lr_scale=50"], ["--mode", "PPO"], ["--fault", "nothing"], ["--loop-times", "65"],
        ["--ref-model-path", "/nowhere.safetensors"], ["--fault", "nan_data", "--poison-item", "3"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_mistake_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2 and a line that names it, before anything is loaded or written."""
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "Traceback" not in capsys.readouterr().err


def test_a_checkpoint_folder_that_cannot_be_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file where the folder should be: status 2, no stack trace."""
    (tmp_path / "file").write_text("")
    assert main(["--steps", "1", "--checkpoints", str(tmp_path / "file" / "c"), "--run-dir", ""]) == WRONG
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_one_of_several_ranks_without_the_others_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """WORLD_SIZE without torchrun's other variables: status 2."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    assert main(["--steps", "1", "--run-dir", ""]) == WRONG
    assert "torchrun" in capsys.readouterr().err


def test_a_restart_is_the_run_that_never_stopped_with_pivots_too(tmp_path: Path) -> None:
    """Pool, band, flow and generator of a PivotRL run come back bit for bit."""
    unbroken = trainer_at(tmp_path / "a", mode="PivotRL")
    train(unbroken, 4)
    first = trainer_at(tmp_path / "b", mode="PivotRL")
    train(first, 2)
    end(first)
    second = trainer_at(tmp_path / "b", mode="PivotRL")
    train(second, 4)
    assert unbroken.estimates.pool.pivots
    assert fingerprint(second) == fingerprint(unbroken)
