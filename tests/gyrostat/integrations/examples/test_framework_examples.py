"""The Megatron and OpenRLHF examples, called as those frameworks call them, by stand-ins of the same shape."""

import importlib.util
import math
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from sdk_runs import acks, directive, frames, records, send

from gyrostat.wire import Kind, KnobChange

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"


def _example(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["megatron_callback", "openrlhf_logger"])
def test_what_was_not_run_says_so_first(name: str) -> None:
    """An example that nobody has run where it is for says that in its first line."""
    first = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith('"""NOT RUN IN A REAL ')


def _iteration(callback: Any, moment: Any, loss: float, applied: bool) -> float:
    """One iteration as Megatron makes it; the learning rate that its optimizer saw."""
    callback.on_train_step_start(moment)
    seen: float = moment.optimizer.param_groups[0]["lr"]
    moment.loss_dict, moment.grad_norm, moment.skipped_iter = (
        ({"lm loss": loss}, 0.5, False) if applied else ({}, None, True)
    )
    if applied:
        moment.optimizer.param_groups[0]["lr"] = 1e-4  # as the scheduler does, whatever it finds there
    callback.on_train_step_end(moment)
    return seen


def test_megatron_is_told_and_steered(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses, norm, what was passed over; half the rate once, however many iterations are passed over."""
    monkeypatch.setenv("GYROSTAT_RUN_DIR", str(run))
    callback = _example("megatron_callback").GyrostatCallback(lambda: 40)
    moment = SimpleNamespace(
        optimizer=SimpleNamespace(param_groups=[{"lr": 1e-4}]), loss_dict=None, grad_norm=None, skipped_iter=None
    )
    callback.on_train_start(moment)
    rates = [_iteration(callback, moment, 2.5, True)]
    send(run, directive(callback._telemetry, 1, knobs=(KnobChange("lr_scale", 1.0, 0.5),)))
    rates += [_iteration(callback, moment, math.nan, applied) for applied in (False, False, True)]
    callback.on_train_end(moment)
    assert rates == [1e-4, 5e-5, 5e-5, 5e-5]
    told = {r.step: r.values for r in records(run)}
    assert list(told) == [41, 42, 43, 44]
    assert (told[41]["loss"], told[41]["grad_norm"], told[41]["learning_rate"]) == (2.5, 0.5, 1e-4)
    assert [told[step]["step_applied"] for step in told] == [1.0, 0.0, 0.0, 1.0]
    assert "loss" not in told[42]
    assert math.isnan(told[44]["loss"])
    assert [(a.result, a.step) for a in acks(run)] == [("applied", 42)]
    assert frames(run)[-1].kind == Kind.BYE


def test_openrlhf_is_told_beside_its_own_logger(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training and evaluation are told by names that keep them apart, and the logger that was there hears all."""
    monkeypatch.setenv("GYROSTAT_RUN_DIR", str(run))
    heard: list[Any] = []
    beside = SimpleNamespace(
        log_train=lambda *row: heard.append(row),
        log_eval=lambda *row: heard.append(row),
        close=lambda: heard.append("closed"),
    )
    logger = _example("openrlhf_logger").GyrostatLogger(beside)
    row = {"policy_loss": math.nan, "entropy_loss": 0.51, "kl": 0.004, "generated_samples": ["text", 0.4], "none": None}
    logger.log_train(40, row)
    logger.log_eval(40, {"eval_default_pass1": 0.25})
    logger.close()
    assert heard == [(40, row), (40, {"eval_default_pass1": 0.25}), "closed"]
    trained, evaluated = records(run)
    assert math.isnan(trained.values["loss"])
    assert {name: value for name, value in trained.values.items() if name != "loss"} == {"entropy": 0.51, "kl": 0.004}
    assert evaluated.values == {"eval/eval_default_pass1": 0.25}
    assert frames(run)[-1].kind == Kind.BYE
