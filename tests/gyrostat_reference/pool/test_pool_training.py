import os
import signal
from pathlib import Path

import pytest
from reference_runs import end, fingerprint, train, trainer_at

from gyrostat_reference.engine import Pooled
from gyrostat_reference.trainer import Trainer


def _trained(folder: Path, workers: int, kill: bool = False) -> tuple[Trainer, dict[str, float]]:
    """Three steps with rollouts by workers, one of which is killed before the third; and what the pool told."""
    trainer = trainer_at(folder, workers=workers)
    try:
        control = train(trainer, 2)
        if kill:
            assert isinstance(trainer.engine, Pooled)
            os.kill(trainer.engine.pids[0], signal.SIGKILL)
        train(trainer, 3, control)
        return trainer, trainer.engine.measures()
    finally:
        trainer.engine.close()
        end(trainer)


def test_who_draws_changes_nothing(tmp_path: Path) -> None:
    """One worker, or two of which one is killed: the policy that comes of it is the same, bit for bit."""
    (alone, one_told), (two, told) = _trained(tmp_path / "one", 1), _trained(tmp_path / "two", 2, kill=True)
    assert fingerprint(alone) == fingerprint(two)
    assert (one_told["rollout_workers"], one_told["rollout_worker_restarts"]) == (1.0, 0.0)
    assert (told["rollout_worker_restarts"], told["policy_lag"]) == (1.0, 0.0)


def test_frozen_workers_say_how_far_behind_they_are(tmp_path: Path) -> None:
    """Rollouts of an old policy are learnt from, as in a real job, and the lag stands in the records."""
    trainer = trainer_at(tmp_path, workers=1, faults=("stale_rollouts@2",))
    try:
        train(trainer, 4)
        assert trainer.engine.measures()["policy_lag"] == pytest.approx(2.0)
    finally:
        trainer.engine.close()
        end(trainer)
