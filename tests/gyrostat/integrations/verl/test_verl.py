"""The verl backend, in a stand-in for verl's ``Tracking`` of the same shape, fed with rows that verl's logger wrote.

rows.jsonl is true output of the file logger of verl 0.9.1; where it has null, verl had a NaN.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from sdk_runs import frames, records

from gyrostat.integrations.verl import NAMES, GyrostatTracking, register, tell_experts, told, violations
from gyrostat.wire import Kind

ROWS = [json.loads(line) for line in Path(__file__).with_name("rows.jsonl").read_text().splitlines()]


def _as_verl_had_it(data: dict[str, Any]) -> dict[str, Any]:
    return {name: math.nan if value is None else value for name, value in data.items()}


def _tracking() -> Any:
    """A class of the shape of verl 0.9.1's: a list of names, a dict of loggers, a destructor that finishes."""

    class Tracking:
        supported_backend = ["console", "file"]  # noqa: RUF012 - verl's own is a plain list, and is appended to

        def __init__(
            self, project_name: str, experiment_name: str, default_backend: Any = "console", config: Any = None
        ) -> None:
            asked = [default_backend] if isinstance(default_backend, str) else default_backend
            for backend in asked:
                assert backend in self.supported_backend, f"{backend} is not supported"
            self.logger: dict[str, Any] = {}
            self._finished = False

        def log(self, data: dict[str, Any], step: int, backend: Any = None) -> None:
            for name, instance in self.logger.items():
                if backend is None or name in backend:
                    instance.log(data=data, step=step)

        def finish(self, exit_code: int = 0) -> None:
            self._finished = True

    return Tracking


def _trained(exit_code: int) -> None:
    tracking = _tracking()
    register(tracking)
    register(tracking)
    config = {"trainer": {"default_local_dir": "checkpoints/a/b"}}
    logger = tracking("a", "b", ["console", "gyrostat"], config=config)
    for row in ROWS:
        logger.log(data=_as_verl_had_it(row["data"]), step=row["step"])
    logger.finish(exit_code=exit_code)
    logger.finish()  # as its destructor does


def test_rows_are_told_as_verl_has_them(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number of every row by the name that rules read, a NaN as a NaN, and whether verl applied the step."""
    monkeypatch.setenv("GYROSTAT_RUN_DIR", str(run))
    monkeypatch.setenv("RANK", "5")
    _trained(0)
    found = records(run)
    assert [r.step for r in found] == [row["step"] for row in ROWS]
    for record, row in zip(found, ROWS, strict=True):
        written = {NAMES.get(name, name): value for name, value in row["data"].items()}
        assert set(written) <= set(record.values)
        assert all(record.values[name] == value for name, value in written.items() if value is not None)
        assert all(math.isnan(record.values[name]) for name, value in written.items() if value is None)
    assert {"loss", "grad_norm", "entropy", "reward", "truncated_fraction"} <= set(found[0].values)
    assert [r.values["step_applied"] for r in found] == [1.0, 1.0, 1.0, 0.0, 1.0]
    assert found[2].values["max_vio"] == ROWS[2]["data"]["rollout/moe/max_vio/max"]
    assert {r.rank for r in found} == {0}


@pytest.mark.parametrize(("exit_code", "clean"), [(0, True), (1, False)], ids=["done", "failed"])
def test_only_a_clean_end_is_said_to_be_one(
    run: Path, monkeypatch: pytest.MonkeyPatch, exit_code: int, clean: bool
) -> None:
    """A driver that says it failed does not say goodbye, though its destructor comes behind."""
    monkeypatch.setenv("GYROSTAT_RUN_DIR", str(run))
    _trained(exit_code)
    assert (frames(run)[-1].kind == Kind.BYE) is clean


def test_without_a_run_verl_is_let_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend may stand in a configuration that is also used without Gyrostat."""
    monkeypatch.delenv("GYROSTAT_RUN_DIR", raising=False)
    tracking = _tracking()
    register(tracking)
    assert tracking("a", "b", "gyrostat").logger == {}


def test_what_is_no_number_is_left_out() -> None:
    """Texts, flags and tables among the metrics cost no value beside them."""
    assert told({"note": "a", "on": True, "table": [1], "actor/entropy": 0.5, "step": 3}) == {"entropy": 0.5}


def test_a_backend_made_by_hand_never_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no run is, it does nothing."""
    monkeypatch.delenv("GYROSTAT_RUN_DIR", raising=False)
    tracking = GyrostatTracking(str(tmp_path))
    tracking.log({"actor/pg_loss": 0.5}, 1)
    tracking.finish()


def test_a_workers_experts_are_counted() -> None:
    """What a training step's forwards chose comes out of train_batch as verl measures it, and can be undone."""
    torch = pytest.importorskip("torch", reason="torch is not installed: no model to count in")

    class Router(torch.nn.Module):  # type: ignore[misc, name-defined]
        num_experts, top_k = 4, 1

        def forward(self, x: Any) -> Any:
            return x, torch.tensor([[0], [0], [0], [1]])

    class Layer(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.router = Router()

        def forward(self, x: Any) -> Any:
            return self.router(x)[0]

    class Engine:
        """Of the shape of verl's: a module, and a train_batch that returns metrics."""

        def __init__(self) -> None:
            self.module = torch.nn.Module()
            self.module.layers = torch.nn.ModuleList([Layer()])
            self.module.forward = lambda x: self.module.layers[0](x)

        def train_batch(self, data: Any, loss_function: Any) -> dict[str, Any]:
            self.module(data)
            return {"loss": [0.5], "metrics": {"pg_loss": [0.5]}}

    engine = Engine()
    undo = tell_experts(engine)
    metrics = engine.train_batch(torch.zeros(4, 2), loss_function=None)["metrics"]
    assert metrics == {"pg_loss": [0.5], "moe/max_vio/layer_0": [2.0], "moe/max_vio/max": [2.0]}
    undo()
    assert engine.train_batch(torch.zeros(4, 2), loss_function=None)["metrics"] == {"pg_loss": [0.5]}


def test_violations_of_even_and_of_no_load() -> None:
    """An even load violates nothing; a layer that saw no token is as far below even as can be."""
    torch = pytest.importorskip("torch", reason="torch is not installed: no counts to measure")
    counts = torch.tensor([[2, 2, 2, 2], [0, 0, 0, 0]])
    assert violations(counts) == {
        "moe/max_vio/layer_0": [0.0],
        "moe/max_vio/layer_1": [-1.0],
        "moe/max_vio/max": [0.0],
    }
    assert violations(None) == {}
