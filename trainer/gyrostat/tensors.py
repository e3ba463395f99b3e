"""Reading what a trainer hands over: floats, numpy scalars, torch tensors.

torch and numpy are never imported here; they are found through the objects that come in. All torch scalars of
a step are read in one transfer. What lies on an accelerator goes by one non-blocking copy to pinned memory
and is collected when it has arrived: no synchronisation is added (`benchmarks/sync_count.py` counts).
"""

import sys
from typing import Any, NamedTuple

from gyrostat.loads import read_load, shape_of
from gyrostat.wire.records import load_payload


class Read(NamedTuple):
    """Host values, the payload of expert counts, what is still on its way, how many values made no sense."""

    values: dict[str, float]
    load: bytes
    late: "Late | None"
    unreadable: int


def read(values: dict[str, Any], expert_load: Any) -> Read:
    """Read a step's values; anything that is no number is counted, never an error."""
    host: dict[str, float] = {}
    tensors: dict[str, Any] = {}
    absent = 0
    for name, value in values.items():
        if type(value) is float:
            host[name] = value
        elif value is None:
            absent += 1
        elif _is_torch(value):
            tensors[name] = value
        elif (number := _number(value)) is not None:
            host[name] = number
    near, far = _by_place(tensors)
    host.update(_read_near(near))
    is_far = _is_torch(expert_load) and expert_load.device.type == "cuda"
    load = None if is_far or expert_load is None else read_load(expert_load)
    late = _send(far, expert_load if is_far else None)
    asked = len(values) - absent + (expert_load is not None)
    found = len(host) + (load is not None) + (late.carries if late is not None else 0)
    return Read(host, load or b"", late, asked - found)


class Late:
    """One step's device values on their way to pinned host memory: one copy a device and kind of number.

    CUDA and ROCm. Guarded, and tried against a stand-in for ``torch.cuda``: no GPU was at hand.
    """

    def __init__(self, names: list[str], scalars: list[Any], load: Any) -> None:
        torch = sys.modules["torch"]
        self._names = names
        self.carries = len(names) + (load is not None)
        self._values = _to_pinned(torch, _stack(scalars)) if scalars else None
        self._shape = shape_of(load) if load is not None else None
        self._load = _to_pinned(torch, load.detach().to(torch.int32)) if load is not None else None
        self._event = torch.cuda.Event()
        self._event.record(torch.cuda.current_stream((scalars[0] if scalars else load).device))

    def arrived(self) -> bool:
        """True once the copies are complete. Asks; does not wait."""
        return bool(self._event.query())

    def collect(self) -> tuple[dict[str, float], bytes]:
        """The values and the payload of counts; call once ``arrived``."""
        values = dict(zip(self._names, self._values.tolist(), strict=True)) if self._values is not None else {}
        if self._load is None or self._shape is None:
            return values, b""
        return values, load_payload(*self._shape, memoryview(self._load.contiguous().numpy()).cast("B"))


def _number(value: Any) -> float | None:
    """A host number as float, beyond float's range as infinity; None where it is no number."""
    if isinstance(value, (str, bytes, bytearray)):
        return None  # float("nan") would read a word as a number
    try:
        return float(value.item() if getattr(value, "ndim", 0) and value.size == 1 else value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except Exception:  # the trainer's own type: whatever it raises, it is no number
        return None


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _by_place(tensors: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tensors of one real number on the host and on a CUDA device. Others are left out, and so counted.

    A subclass is left out too: a sharded tensor's local part is not its value, and asking for the whole is a
    collective, which may wait. Of several CUDA devices the first one's values are read.
    """
    if not tensors:
        return {}, {}
    torch = sys.modules["torch"]
    plain = (torch.Tensor, torch.nn.Parameter)
    fit = {n: t for n, t in tensors.items() if type(t) in plain and t.numel() == 1 and not t.is_complex()}
    near = {n: t for n, t in fit.items() if t.device.type == "cpu"}
    far = {n: t for n, t in fit.items() if t.device.type == "cuda"}
    device = next(iter(far.values())).device if far else None
    return near, {n: t for n, t in far.items() if t.device == device}


def _read_near(tensors: dict[str, Any]) -> dict[str, float]:
    """Host tensors read in one go; none where torch refuses one of them."""
    if not tensors:
        return {}
    try:
        return dict(zip(tensors, _stack(list(tensors.values())).tolist(), strict=True))
    except Exception:  # torch's refusals have many types; the values count as unreadable
        return {}


def _send(scalars: dict[str, Any], load: Any) -> "Late | None":
    """Start the copies; None where there is nothing to copy or the device refuses."""
    if not scalars and load is None:
        return None
    try:
        return Late(list(scalars), list(scalars.values()), load)
    except Exception:  # out of memory, a graph being captured: the values count as unreadable
        return None


def _to_pinned(torch: Any, source: Any) -> Any:
    target = torch.empty(source.shape, dtype=source.dtype, pin_memory=True)
    target.copy_(source, non_blocking=True)
    return target


def _stack(scalars: list[Any]) -> Any:
    """One float64 tensor of all scalars. Of one type they are widened together: one kernel, not one each."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        flat = [s if s.dim() == 0 else s.reshape(()) for s in scalars]
        if len({s.dtype for s in flat}) > 1:
            flat = [s.to(torch.float64) for s in flat]
        return torch.stack(flat).to(torch.float64)
