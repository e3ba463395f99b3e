"""Expert counts arrive from whatever holds them, or cost only themselves."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sdk_runs import records

from gyrostat import Telemetry
from gyrostat.wire import ExpertLoad

COUNTS = np.arange(24).reshape(2, 3, 4)


LOADS: dict[str, object] = {
    "int64": COUNTS,
    "uint8": COUNTS.astype(np.uint8),
    "float32": COUNTS.astype(np.float32),
    "column-major": np.asfortranarray(COUNTS),
    "lists": COUNTS.tolist(),
    "torch": torch.from_numpy(COUNTS),
    "torch int32": torch.from_numpy(COUNTS).int(),
    "torch bfloat16": torch.from_numpy(COUNTS).bfloat16(),
    "torch permuted": torch.from_numpy(COUNTS.transpose(2, 1, 0).copy()).permute(2, 1, 0),
}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_expert_counts_arrive_from_whatever_holds_them(run: Path, load: object) -> None:
    """Two layers, three loops, four experts: each count under its own place."""
    telemetry = Telemetry(run)
    telemetry.record(1, expert_load=load, loss=1.0)
    assert records(run)[0].load == ExpertLoad(2, 3, 4, tuple(range(24)))
    assert telemetry.counts.unreadable == 0


@pytest.mark.parametrize(
    ("load", "shape"), [([1, 2, 3], (1, 1, 3)), ([[1, 2], [3, 4]], (2, 1, 2))], ids=["experts", "layers and experts"]
)
def test_fewer_dimensions_are_experts_then_layers(run: Path, load: object, shape: tuple[int, int, int]) -> None:
    """One dimension is the experts of one layer; two are layers of one loop."""
    telemetry = Telemetry(run)
    telemetry.record(1, expert_load=load)
    found = records(run)[0].load
    assert found is not None
    assert found[:3] == shape


NO_LOADS: dict[str, object] = {
    "ragged": [[1, 2], [3]],
    "empty": [],
    "negative": [-1, 2],
    "nan": [1.0, float("nan")],
    "np nan": np.array([0.5, np.nan]),
    "four dimensions": np.zeros((1, 1, 1, 1)),
    "text": "12",
    "number": 7,
    "enormous": np.zeros((1200, 1, 1000), dtype=np.int8),
    "no device": torch.zeros(2, device="meta"),
}


@pytest.mark.parametrize("load", NO_LOADS.values(), ids=NO_LOADS)
def test_counts_that_make_no_sense_cost_only_themselves(run: Path, load: object) -> None:
    """They are counted; the scalars of the step arrive."""
    telemetry = Telemetry(run)
    telemetry.record(1, expert_load=load, loss=1.0)
    assert (records(run)[0].values, records(run)[0].load) == ({"loss": 1.0}, None)
    assert telemetry.counts.unreadable == 1
