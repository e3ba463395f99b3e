"""Tensors: torch and numpy values arrive, all in one transfer, without making the host wait for a device."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sdk_runs import directive, records, send
from torch.utils._python_dispatch import TorchDispatchMode

from gyrostat import Control, Knob, StepGuard, Telemetry

WAITING = ("_local_scalar_dense", "is_nonzero", "_to_copy", "nonzero", "equal", "item")


class Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what reaches torch's dispatcher: on a device each of WAITING would stop the host."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen[func.overloadpacket._qualified_op_name.removeprefix("aten::")] += 1
        return func(*args, **(kwargs or {}))

    @property
    def waiting(self) -> int:
        return sum(self.seen[name] for name in WAITING)


def test_torch_scalars_are_read_in_one_transfer(run: Path) -> None:
    """Thirty tensors of a step are stacked and read once; none is asked for its item."""
    telemetry = Telemetry(run)
    values = {f"v{i}": torch.tensor(float(i), dtype=torch.float64) for i in range(30)}
    with Calls() as calls:
        telemetry.record(1, host=0.5, **values)
    assert calls.seen["stack"] == 1
    assert calls.waiting == 0
    assert records(run)[0].values == {"host": 0.5, **{f"v{i}": float(i) for i in range(30)}}


def test_what_a_step_calls_adds_no_synchronisation(run: Path) -> None:
    """record with floats and with tensors, StepGuard on host floats and Control.apply ask no tensor for its value."""
    telemetry, guard = Telemetry(run), StepGuard()
    value = torch.tensor(1.0)
    held = {"lr": 1.0}
    control = Control(telemetry, [Knob("lr", lambda: held["lr"], lambda v: held.update(lr=v), 0.0, 2.0)])
    send(run, directive(telemetry, 1))
    load = torch.ones(2, 4, dtype=torch.int32)
    with Calls() as calls:
        for step in range(3):
            allowed = guard.allows(step, 0.5, 1.0)
            telemetry.record(step, expert_load=load, loss=value, other=value, grad_norm=1.0, **guard.values())
            telemetry.record(step, loss=0.5)
            acks = control.apply(step)
            assert allowed
            assert len(acks) == (step == 0)
    assert {name: n for name, n in calls.seen.items() if name in WAITING and name != "_to_copy"} == {}
    assert calls.seen["_to_copy"] <= 3  # one widening to float64 a step, of the stacked values, where they lie


SCALARS: dict[str, object] = {
    "float32": torch.tensor(1.5),
    "one element": torch.tensor([1.5]),
    "one element in two dimensions": torch.tensor([[1.5]], dtype=torch.float64),
    "bfloat16": torch.tensor(1.5, dtype=torch.bfloat16),
    "with gradient": torch.tensor(1.5, requires_grad=True),
    "parameter": torch.nn.Parameter(torch.tensor(1.5)),
    "np.float32": np.float32(1.5),
    "np.float64": np.float64(1.5),
    "np 0-d": np.array(1.5),
    "np 1-d": np.array([1.5]),
}


@pytest.mark.parametrize("value", SCALARS.values(), ids=SCALARS)
def test_a_scalar_of_any_kind_arrives(run: Path, value: object) -> None:
    """Whatever holds one real number is that number."""
    telemetry = Telemetry(run)
    telemetry.record(1, loss=value, beside=2.0)
    assert records(run)[0].values == {"loss": 1.5, "beside": 2.0}
    assert telemetry.counts.unreadable == 0


def test_tensors_of_several_types_keep_their_precision(run: Path) -> None:
    """A count of 2**53 beside half-precision values is not rounded to their type."""
    telemetry = Telemetry(run)
    telemetry.record(1, tokens=torch.tensor(2**53), loss=torch.tensor(0.5, dtype=torch.float16), ok=torch.tensor(True))
    assert records(run)[0].values == {"tokens": 2.0**53, "loss": 0.5, "ok": 1.0}


@pytest.mark.parametrize("bits", [0x7FF8000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x8000000000000000, 1])
def test_odd_tensor_values_keep_their_bits(run: Path, bits: int) -> None:
    """NaN, infinities, minus zero and denormals come out of a tensor as they lay in it."""
    value = torch.tensor([bits - (1 << 64) if bits >> 63 else bits]).view(torch.float64)
    telemetry = Telemetry(run)
    telemetry.record(1, loss=value)
    assert np.float64(records(run)[0].values["loss"]).view(np.uint64) == bits


class Sharded(torch.Tensor):
    """Stands for a DTensor: a subclass whose whole value only a collective knows."""


@pytest.mark.parametrize(
    "value",
    [
        torch.ones(2),
        torch.tensor(1j),
        torch.tensor(1.0).as_subclass(Sharded),
        torch.tensor(1.0, device="meta"),
        torch.ones(0),
        np.ones(2),
        np.array("word"),
    ],
    ids=["two numbers", "complex", "subclass", "no device", "empty", "np two numbers", "np text"],
)
def test_a_tensor_that_is_no_number_costs_only_itself(run: Path, value: object) -> None:
    """It is counted; the step's other tensors and floats arrive."""
    telemetry = Telemetry(run)
    telemetry.record(1, odd=value, loss=torch.tensor(1.0), lr=0.5)
    assert records(run)[0].values == {"loss": 1.0, "lr": 0.5}
    assert telemetry.counts.unreadable == 1
