"""The Lightning callback in real fits: what is told, what is guarded, what is obeyed, and that it changes nothing."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sdk_runs import acks, frames, records

from gyrostat.integrations.lightning import GyrostatCallback
from gyrostat.wire import Kind

pytestmark = pytest.mark.lightning
HERE = Path(__file__).parent
Fits = tuple[Path, dict[str, Any]]


def test_a_healthy_fit_comes_to_the_same_weights(fits: Fits) -> None:
    """Bit for bit the weights without the callback: while a sidecar's run is told, and where there is none."""
    assert fits[1]["healthy"] == {"watched": True, "by_hand": True}


def test_each_optimizer_step_is_told(fits: Fits) -> None:
    """One record for each step of two micro-batches: loss, gradient, rate, weights, what was logged, experts."""
    told = records(fits[0] / "healthy")
    steps = [r for r in told if "loss" in r.values]
    assert [r.step for r in steps] == list(range(1, 9))
    assert {"grad_norm", "learning_rate", "params_finite", "step_seconds", "step_applied", "entropy"} <= set(
        steps[0].values
    )
    assert [r.values["learning_rate"] for r in steps] == [0.01] * 4 + [0.005] * 4
    assert steps[0].values["entropy"] != steps[1].values["entropy"]
    assert not any("entropy_step" in r.values or "val_loss" in r.values for r in steps)
    tokens = [sum(r.load.counts) if r.load else 0 for r in steps]
    assert tokens == [2 * 2 * 8] * 8, "layers, experts a token, tokens of two micro-batches of four"


def test_a_validation_is_told_once(fits: Fits) -> None:
    """What a validation logs is a record of its own, at the step it looked at, and never again."""
    told = [(r.step, set(r.values)) for r in records(fits[0] / "healthy") if "val_loss" in r.values]
    assert told == [(step, {"val_loss"}) for step in (2, 4, 6, 8)]


def test_a_clean_end_is_said(fits: Fits) -> None:
    """A fit that comes to its end says goodbye, so that its silence is no alarm."""
    assert frames(fits[0] / "healthy")[-1].kind == Kind.BYE


def test_a_nan_is_found_and_not_applied(fits: Fits) -> None:
    """A loss that is NaN is told as it is, and no weight moves, by momentum or decay either; the next step does."""
    told = {r.step: r.values for r in records(fits[0] / "poisoned") if "loss" in r.values}
    assert math.isnan(told[5]["loss"])
    assert math.isnan(told[5]["grad_norm"])
    assert [told[step]["step_applied"] for step in (4, 5, 6)] == [1.0, 0.0, 1.0]
    assert {values["params_finite"] for values in told.values()} == {1.0}
    assert fits[1]["poisoned"] == {"untouched": True, "moved": True}


def test_without_the_guard_the_ruin_is_told(fits: Fits) -> None:
    """A NaN that is left to the optimizer is told as applied, and the weights as not finite after it."""
    told = {r.step: r.values for r in records(fits[0] / "unguarded") if "loss" in r.values}
    assert [told[step]["step_applied"] for step in (2, 3, 4)] == [1.0, 1.0, 1.0]
    assert [told[step]["params_finite"] for step in (2, 3, 4)] == [1.0, 0.0, 0.0]


def test_knobs_are_obeyed_and_the_schedule_goes_on(fits: Fits) -> None:
    """Half the rate and half the clipping from the next step on; what the scheduler multiplies is its own rate."""
    told = [r for r in records(fits[0] / "steered") if "loss" in r.values]
    assert [r.values["lr_scale"] for r in told] == [1.0, 1.0, 0.5, 0.5, 0.5, 0.5]
    assert [r.values["max_grad_norm"] for r in told] == [1.0, 1.0, 0.5, 0.5, 0.5, 0.5]
    assert fits[1]["steered"] == {"steps": 6, "rate": 0.005, "clip": 0.5}


def test_checkpoint_and_stop_are_obeyed(fits: Fits) -> None:
    """A checkpoint is written where it was asked for, and a stop ends the fit at that very step."""
    answers = acks(fits[0] / "steered")
    assert [(a.result, a.step) for a in answers] == [("applied", 3), ("applied", 6), ("applied", 7)]
    assert answers[1].detail == {"path": str(fits[0] / "asked/checkpoint-5")}
    assert (fits[0] / "asked/checkpoint-5/lightning.ckpt").is_file()


def test_a_restart_goes_on_where_it_was_told_to(fits: Fits) -> None:
    """The checkpoint that the sidecar names is loaded with its knobs; a fit that does not take it says so."""
    assert fits[1]["resumed"]["newest"].endswith("left/checkpoint-6/lightning.ckpt")
    assert fits[1]["resumed"]["taken"].endswith("left/checkpoint-3/lightning.ckpt")
    taken, refused = acks(fits[0] / "resumed")
    assert (taken.number, taken.result, taken.step, taken.values["lr_scale"]) == (4, "applied", 3, 0.25)
    assert (refused.number, refused.result) == (9, "failed")
    assert "ckpt_path=callback.ckpt_path()" in refused.reason
    assert fits[1]["resumed"]["after"].endswith("left/checkpoint-3/lightning.ckpt"), "not the stretch that was left"


def test_items_are_passed_over_or_the_restart_is_refused(fits: Fits) -> None:
    """The data set hears which items never to serve again; a callback that cannot tell it says what is missing."""
    assert fits[1]["passed_over"] == {"items": [17, 30]}
    obeyed, refused = acks(fits[0] / "passed")
    assert (obeyed.number, obeyed.result) == (4, "applied")
    assert (refused.number, refused.result) == (9, "failed")
    assert "pass_over=" in refused.reason


def test_a_folder_that_cannot_be_written_is_said_once(fits: Fits) -> None:
    """Training goes on without checkpoints, and one line says which folder, why, and what to give instead."""
    assert fits[1]["unwritable"] == {"steps": 5}
    assert len(records(fits[0] / "unwritable")) == 6
    said = [line for line in fits[1]["said"].splitlines() if line.startswith("gyrostat:")]
    assert len(said) == 1
    assert "file/kept/.checkpoint-2.tmp cannot be made: Not a directory; give" in said[0]


def test_two_processes_pass_over_the_same_step(
    tmp_path: Path, run: Path, lightning_command: list[str], lightning_world: dict[str, str]
) -> None:
    """Under DDP one rank's NaN makes both pass the step over; each tells its own loss; checkpoints come once."""
    command = ["timeout", "180", *lightning_command, str(HERE / "fit_ddp.py"), str(tmp_path), str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=lightning_world)
    assert done.stdout.count("untouched=True steps=8") == 2, done.stdout[-2000:] + done.stderr[-3000:]
    told = {(r.rank, r.step): r.values for r in records(run)}
    assert [told[rank, 5]["step_applied"] for rank in (0, 1)] == [0.0, 0.0]
    assert [math.isnan(told[rank, 5]["loss"]) for rank in (0, 1)] == [False, True]
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["checkpoint-4", "checkpoint-8"]


def test_ruined_weights_are_mended_by_a_restart(
    tmp_path: Path, lightning_command: list[str], lightning_world: dict[str, str]
) -> None:
    """Weights that become NaN: the agent restarts from a certified checkpoint, and the training comes to its end."""
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    script = [*lightning_command, str(HERE / "train_ruined.py"), str(tmp_path), str(run)]
    options = ["--mode", "act", "--no-approvals", "--listen", "", "--run-dir", str(run)]
    command = [sys.executable, "-m", "gyrostat_agent", "run", *options, "--", *script]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=240, env=_with_agent(lightning_world)
    )
    assert "TRAINED 40 finite=True" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]
    assert "mended by restart" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "wrong", [{"every": -1}, {"every": 5}, {"keep": 0}, {"patience": math.nan}], ids=["every", "where", "keep", "nan"]
)
def test_settings_that_make_no_sense_are_named(wrong: dict[str, Any]) -> None:
    """A wrong setting is said when the callback is made, with what would be right."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GyrostatCallback(**wrong)


def _with_agent(world: dict[str, str]) -> dict[str, str]:
    """The training's environment, in which the agent can be imported too, from where it is here."""
    return {**world, "PYTHONPATH": world["PYTHONPATH"] + ":" + ":".join(p for p in sys.path if p)}
