import shutil
from pathlib import Path

import pytest
from reference_runs import digest, end, fingerprint, lay_resume, train, trainer_at

from gyrostat_reference.manifest import MODEL


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that ended after step 4, with checkpoints of steps 2 and 4."""
    folder = tmp_path_factory.mktemp("stopped")
    trainer = trainer_at(folder)
    train(trainer, 4)
    end(trainer)
    return folder


@pytest.fixture
def folder(stopped: Path, tmp_path: Path) -> Path:
    """A copy of that run's checkpoints, to go on from."""
    shutil.copytree(stopped / "checkpoints", tmp_path / "checkpoints")
    return tmp_path


def test_a_resumed_run_is_the_same_as_one_that_never_stopped(folder: Path, tmp_path: Path) -> None:
    """Weights, moments, generator, averages and data: equal bit for bit."""
    resumed, unbroken = trainer_at(folder), trainer_at(tmp_path / "unbroken")
    assert train(resumed, 6).segment == 0
    train(unbroken, 6)
    assert resumed.history.rewards == unbroken.history.rewards[4:]
    assert fingerprint(resumed) == fingerprint(unbroken)


def test_a_spoilt_newest_checkpoint_is_said_and_left_out(folder: Path) -> None:
    """Resuming falls back to the one before it, and says so."""
    (folder / "checkpoints" / "step-00000004" / MODEL).write_bytes(b"")
    said: list[str] = []
    trainer = trainer_at(folder, said=said)
    train(trainer, 2)
    assert trainer.step == 2
    assert said == ["not resumed from: step-00000004: model.safetensors has 0 bytes, not 1349016",
                    "resumed from step-00000002"]  # fmt: skip


def test_resume_json_is_obeyed(folder: Path) -> None:
    """Back to the checkpoint named, under the knobs named, forward in the data, under a new segment."""
    lay_resume(folder, folder / "checkpoints" / "step-00000002", 7, knobs={"lr_scale": 0.5}, pass_over=(3, 5))
    trainer = trainer_at(folder)
    control = train(trainer, 2)
    assert (trainer.step, trainer.knobs.lr_scale) == (2, 0.5)
    assert trainer.data.place == (64, 64, frozenset({3, 5}))
    assert trainer.policy.optimizer.state  # moments that are older than the fault hold none of it
    assert (control.segment, control.last_directive) == (1, 7)


def test_resume_json_is_obeyed_once(folder: Path) -> None:
    """It is written down at once: the next life goes on from there, and does not go back again."""
    lay_resume(folder, folder / "checkpoints" / "step-00000002", 7, pass_over=(3,))
    first = trainer_at(folder)
    train(first, 2)
    end(first)
    said: list[str] = []
    second = trainer_at(folder, said=said)
    control = train(second, 2)
    assert said == ["resumed from step-00000002-s1"]
    assert (control.segment, control.last_directive, second.history.rollbacks) == (1, 7, 0)
    assert fingerprint(second) == fingerprint(first)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"digest": "xxh3_128:0"}, "digest", id="another digest"),
        pytest.param({"step": 3}, "step", id="another step"),
        pytest.param({"knobs": {"lr_scale": 2.0}}, "bounds", id="knob out of bounds"),
        pytest.param({"pass_over": (-1,)}, "items", id="an item that is none"),
    ],
)
def test_a_resume_that_cannot_be_done_is_answered(folder: Path, change: dict[str, object], reason: str) -> None:
    """The trainer says why, goes on from its newest checkpoint and does not try again."""
    lay_resume(folder, folder / "checkpoints" / "step-00000002", 7, **change)
    said: list[str] = []
    trainer = trainer_at(folder, said=said)
    control = train(trainer, 4)
    assert (trainer.step, control.segment, control.last_directive) == (4, 0, 7)
    assert said[-1].startswith("resume 7 failed") and reason in said[-1]


def test_a_resume_that_is_not_newer_is_left_alone(folder: Path) -> None:
    """Number 0 has been done by every checkpoint there is."""
    lay_resume(folder, folder / "checkpoints" / "step-00000002", 0)
    trainer = trainer_at(folder)
    assert train(trainer, 4).segment == 0
    assert trainer.step == 4


def test_without_run_dir_and_checkpoints_the_trainer_is_the_same(tmp_path: Path, stopped: Path) -> None:
    """Telemetry and checkpoints change nothing that is learnt."""
    from gyrostat import Telemetry
    from gyrostat_reference.trainer import Settings, Trainer

    alone = Trainer(Settings(), Telemetry(), say=lambda line: None)
    watched = trainer_at(tmp_path)
    train(alone, 2)
    train(watched, 2)
    assert fingerprint(alone) == fingerprint(watched)
    assert digest(stopped / "checkpoints" / "step-00000002")
