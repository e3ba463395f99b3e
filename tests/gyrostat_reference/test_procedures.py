import math
import threading
from pathlib import Path

import pytest
from reference_runs import digest, fingerprint, ring, train, trainer_at, wait_for

from gyrostat_reference.data import PromptData
from gyrostat_reference.procedures import Procedures
from gyrostat_reference.trainer import Trainer


def checkpoint_of(trainer: Trainer, step: int) -> Path:
    assert trainer.settings.checkpoints is not None
    return trainer.settings.checkpoints / f"step-{step:08d}"


@pytest.mark.parametrize("reset", [False, True], ids=["moments kept", "moments afresh"])
def test_rollback_goes_back_in_all_but_the_data(tmp_path: Path, reset: bool) -> None:
    """Weights, moments unless afresh, knobs, generator and averages are the checkpoint's; the cursor goes forward."""
    trainer = trainer_at(tmp_path)
    control = train(trainer, 2)
    tensors, random, _, knobs, estimates, _ = fingerprint(trainer)
    train(trainer, 3, control)
    trainer.knobs = trainer.knobs._replace(lr_scale=0.25)
    folder = checkpoint_of(trainer, 2)
    done = Procedures(trainer).rollback(
        {"checkpoint": str(folder), "digest": digest(folder), "step": 2, "pass_over": [7], "reset_moments": reset}
    )
    after = fingerprint(trainer)
    kept = {name: data for name, data in tensors.items() if not (reset and "/" in name)}  # type: ignore[attr-defined]
    assert done == {"step": 2, "passed_over": [7], "cursor": 48}
    assert after[0] == kept
    assert isinstance(estimates, dict)
    estimates["warm_from"] = 2 if reset else 0  # fresh moments are warmed up
    assert after[1:] == (random, (48, 48, frozenset({7})), knobs, estimates, 2)


def test_rollback_to_where_the_run_stands_changes_nothing(tmp_path: Path) -> None:
    """With the moments kept and no data passed over, the run is the one that never went back, bit for bit."""
    trainer, unbroken = trainer_at(tmp_path / "a"), trainer_at(tmp_path / "b")
    control = train(trainer, 2)
    folder = checkpoint_of(trainer, 2)
    ring(trainer, control, 1, "rollback", checkpoint=str(folder), digest=digest(folder))
    train(trainer, 4, control)
    train(unbroken, 4)
    assert (trainer.history.rollbacks, control.segment, control.last_directive) == (1, 1, 1)
    assert fingerprint(trainer) == fingerprint(unbroken)


def test_a_rollback_is_written_down_at_once(tmp_path: Path) -> None:
    """The restored step is saved under the new segment before another step is taken."""
    trainer = trainer_at(tmp_path)
    control = train(trainer, 4)
    folder = checkpoint_of(trainer, 2)
    ring(trainer, control, 1, "rollback", checkpoint=str(folder), digest=digest(folder))
    train(trainer, 5, control)
    names = sorted(path.name for path in folder.parent.iterdir())
    assert names[:3] == ["step-00000002", "step-00000002-s1", "step-00000004"]
    assert [step for step, _ in trainer.history.rewards] == [1, 2, 3, 4, 3, 4, 5]


def test_a_poisoned_item_is_skipped_and_passed_over(tmp_path: Path) -> None:
    """The guard holds the step back, the batch returns, skip_data lets the run go on without the item."""
    item = PromptData().first_item_of_step(2)
    trainer = trainer_at(tmp_path, guard=True, poison_item=item)
    control = train(trainer, 1)
    before, *_ = fingerprint(trainer)
    train(trainer, 3, control)
    assert fingerprint(trainer)[0] == before
    assert trainer.data.place.cursor == 16
    ring(trainer, control, 1, "skip_data", items=[item])
    train(trainer, 4, control)
    assert trainer.history.skipped == 2
    assert trainer.data.place == (48, 48, frozenset({item}))
    assert fingerprint(trainer)[0] != before


def test_skip_data_by_cursor(tmp_path: Path) -> None:
    """The items at the places named are passed over."""
    trainer = trainer_at(tmp_path)
    expected = [trainer.data.item_at(place) for place in (16, 17)]
    done = Procedures(trainer).skip_data({"cursor": [16, 18]})
    assert done == {"passed_over": sorted(expected), "cursor": 0}


@pytest.mark.parametrize(
    "arguments", [{}, {"items": [1], "cursor": [0, 1]}, {"cursor": [2, 1]}, {"cursor": [0, 9999]}, {"items": ["1"]}]
)
def test_skip_data_refuses_nonsense(tmp_path: Path, arguments: dict[str, object]) -> None:
    """After a refusal the data are served as before."""
    trainer = trainer_at(tmp_path)
    with pytest.raises(ValueError):
        Procedures(trainer).skip_data(arguments)
    assert trainer.data.place == (0, 0, frozenset())


def test_checkpoint_and_stop(tmp_path: Path) -> None:
    """A checkpoint of the last finished step is written; then no further step is begun."""
    trainer = trainer_at(tmp_path)
    control = train(trainer, 1)
    ring(trainer, control, 1, "checkpoint")
    train(trainer, 2, control)
    assert (checkpoint_of(trainer, 1) / "manifest.json").exists()
    ring(trainer, control, 2, "stop")
    train(trainer, 4, control)
    assert (trainer.stopping, trainer.step) == (True, 2)


def test_pause_holds_until_resume(tmp_path: Path) -> None:
    """No step is begun in a pause; resume ends it, and the run is the one that never paused, bit for bit."""
    trainer, unbroken = trainer_at(tmp_path / "a"), trainer_at(tmp_path / "b")
    control = train(trainer, 1)
    ring(trainer, control, 1, "pause", seconds=3600)
    thread = threading.Thread(target=train, args=(trainer, 2, control))
    thread.start()
    wait_for(lambda: control.last_directive == 1)
    assert trainer.step == 1
    ring(trainer, control, 2, "resume")
    thread.join(60)
    train(unbroken, 2)
    assert (trainer.step, control.last_directive) == (2, 2)
    assert fingerprint(trainer) == fingerprint(unbroken)


def test_pause_ends_by_itself(tmp_path: Path) -> None:
    """A sidecar that died in the meantime leaves no run standing."""
    trainer = trainer_at(tmp_path)
    control = train(trainer, 1)
    ring(trainer, control, 1, "pause", seconds=0.05)
    train(trainer, 2, control)
    assert (trainer.step, control.last_directive) == (2, 1)


@pytest.mark.parametrize("seconds", [0, -1, "5", True, math.nan, math.inf])
def test_pause_refuses_nonsense(tmp_path: Path, seconds: object) -> None:
    """A pause without an end is none."""
    trainer = trainer_at(tmp_path)
    with pytest.raises(ValueError, match="seconds"):
        Procedures(trainer).pause({"seconds": seconds})
    assert not trainer.paused_until


def test_without_checkpoints_none_is_offered(tmp_path: Path) -> None:
    """A run without a checkpoint root offers what it can do, and no more."""
    trainer = trainer_at(tmp_path, checkpoints=None)
    assert sorted(Procedures(trainer).offered()) == ["pause", "resume", "skip_data", "stop"]
