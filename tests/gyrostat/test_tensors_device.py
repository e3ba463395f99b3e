"""Values on a device, as far as a machine without one can stand for it.

Not run on a GPU. The stand-in keeps what matters: a pinned copy holds nothing before its event has come.
"""

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sdk_runs import frames, missing, records

from gyrostat import Telemetry, tensors
from gyrostat.wire import ExpertLoad


class Device:
    """The stand-in's device: how many copies were begun, and whether they have arrived."""

    def __init__(self) -> None:
        self.done = False
        self.broken = False
        self.copies = 0
        self.waits = 0


class FarTensor:
    """A tensor on the stand-in's device. Reading it is the synchronisation that must not happen."""

    def __init__(self, device: Device, value: Any, index: int = 0) -> None:
        self._device, self.value = device, np.asarray(value)
        self.device = types.SimpleNamespace(type="cuda", index=index)
        self.dtype, self.shape = self.value.dtype, self.value.shape

    def numel(self) -> int:
        return self.value.size

    def dim(self) -> int:
        return self.value.ndim

    def is_complex(self) -> bool:
        return False

    def detach(self) -> "FarTensor":
        return self

    def reshape(self, shape: Any) -> "FarTensor":
        return FarTensor(self._device, self.value.reshape(shape))

    def to(self, dtype: Any) -> "FarTensor":
        return FarTensor(self._device, self.value.astype(dtype))

    def __float__(self) -> float:
        self._device.waits += 1
        return float(self.value)

    item = tolist = numpy = cpu = __bool__ = __float__


class Pinned:
    """Host memory that a copy is on its way to."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def copy_(self, source: FarTensor, non_blocking: bool) -> None:
        assert non_blocking
        self._device.copies += 1
        self._source = source

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def contiguous(self) -> "Pinned":
        return self

    def numpy(self) -> Any:
        assert self._device.done, "read before the copy had arrived"
        return self._source.value


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    """A torch whose tensors lie on a device that answers when the test says so."""
    device = Device()

    class Event:
        def record(self, stream: str) -> None:
            assert stream == "stream of cuda:0"

        def query(self) -> bool:
            if device.broken:
                raise RuntimeError("CUDA error: device-side assert triggered")
            return device.done

        def synchronize(self) -> None:
            device.waits += 1

    class Parameter(FarTensor):
        pass

    def empty(shape: Any, dtype: Any, pin_memory: bool) -> Pinned:
        assert pin_memory
        return Pinned(device)

    stand_in = types.SimpleNamespace(
        Tensor=FarTensor,
        nn=types.SimpleNamespace(Parameter=Parameter),
        no_grad=torch.no_grad,
        float64=np.float64,
        int32=np.int32,
        empty=empty,
        stack=lambda parts: FarTensor(device, np.stack([p.value for p in parts])),
        cuda=types.SimpleNamespace(Event=Event, current_stream=lambda d: f"stream of {d.type}:{d.index}"),
    )
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    return device


def test_device_values_come_a_step_late_under_their_own_step(run: Path, device: Device) -> None:
    """One copy a step, nothing waited for; the record is written when the copy is there, in the order of steps."""
    telemetry = Telemetry(run)
    telemetry.record(1, loss=FarTensor(device, 1.5), norm=FarTensor(device, [2.5]), lr=0.1)
    assert device.copies == 1
    telemetry.introduce((), (), 0, 1)
    telemetry.record(2, lr=0.2)
    assert not (run / "records").exists() or records(run) == []
    device.done = True
    telemetry.record(3, lr=0.3)
    assert [(r.step, r.values) for r in records(run)] == [
        (1, {"loss": 1.5, "norm": 2.5, "lr": 0.1}),
        (2, {"lr": 0.2}),
        (3, {"lr": 0.3}),
    ]
    assert [r.segment for r in records(run)] == [0, 1, 1]
    assert device.waits == 0
    assert telemetry.counts.dropped == 0


def test_device_counts_come_late_too(run: Path, device: Device) -> None:
    """Expert counts on a device go by a copy of their own, and arrive with their record."""
    telemetry = Telemetry(run)
    telemetry.record(1, expert_load=FarTensor(device, [[1, 2], [3, 4]]), loss=1.0)
    device.done = True
    telemetry.flush()
    assert records(run)[0].load == ExpertLoad(2, 1, 2, (1, 2, 3, 4))
    assert device.waits == 0


def test_a_device_that_does_not_answer_holds_nobody_up(run: Path, device: Device) -> None:
    """Eight records wait; more are dropped and counted, the end of the run waits a second at most."""
    telemetry = Telemetry(run)
    telemetry.record(0, lr=1.0)
    for step in range(1, 12):
        telemetry.record(step, loss=FarTensor(device, 1.0))
    assert telemetry.counts.dropped == 3
    assert "already wait for the device" in telemetry.counts.fault
    telemetry.close()
    assert device.waits == 0
    assert telemetry.counts.dropped == 11
    assert [r.step for r in records(run)] == [0]
    assert missing(frames(run)) == 11


def test_a_device_error_is_not_raised_here(run: Path, device: Device) -> None:
    """A device that fails loses the records that lay on it, counted; records of host values go on."""
    telemetry = Telemetry(run)
    telemetry.record(1, loss=FarTensor(device, 1.0))
    device.broken = True
    telemetry.record(2, lr=0.5)
    assert [r.step for r in records(run)] == [2]
    assert telemetry.counts.dropped == 1


def test_values_of_a_second_device_are_counted(run: Path, device: Device) -> None:
    """Values that lie on several devices of one process: the first device's are read, the others counted."""
    telemetry = Telemetry(run)
    telemetry.record(1, loss=FarTensor(device, 1.0), other=FarTensor(device, 2.0, index=1))
    device.done = True
    telemetry.flush()
    assert records(run)[0].values == {"loss": 1.0}
    assert telemetry.counts.unreadable == 1


def test_a_copy_that_cannot_begin_costs_only_the_device_values(
    run: Path, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No pinned memory left: host values arrive, device values are counted."""
    monkeypatch.setattr(tensors, "_to_pinned", lambda *_: (_ for _ in ()).throw(RuntimeError("out of memory")))
    telemetry = Telemetry(run)
    telemetry.record(1, loss=FarTensor(device, 1.0), lr=0.5)
    assert records(run)[0].values == {"lr": 0.5}
    assert telemetry.counts.unreadable == 1
