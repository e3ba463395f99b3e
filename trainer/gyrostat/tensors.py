"""Reading what a trainer hands over: floats, numpy scalars, torch tensors, expert counts.

torch and numpy are never imported here; they are found through the objects that come in. All torch scalars of
a step are read in one transfer. What lies on an accelerator goes by one non-blocking copy to pinned memory
and is collected when it has arrived: no synchronisation is added (PERFORMANCE §5 counts what others add).
"""

import sys
from array import array
from typing import Any, NamedTuple

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
    scalars: dict[str, Any] = {}
    unreadable = 0
    for name, value in values.items():
        if type(value) is float:
            host[name] = value
        elif value is None:
            continue
        elif _is_torch(value):
            if value.numel() == 1:
                scalars[name] = value
            else:
                unreadable += 1
        else:
            try:
                host[name] = float(value)
            except OverflowError:
                host[name] = float("inf") if value > 0 else float("-inf")
            except (TypeError, ValueError):
                unreadable += 1
    load, far_load, bad = _read_load(expert_load)
    far = {n: t for n, t in scalars.items() if t.device.type != "cpu"}
    near = {n: t for n, t in scalars.items() if t.device.type == "cpu"}
    if near:
        host.update(zip(near, _stack(list(near.values())).tolist(), strict=True))
    late = Late(list(far), list(far.values()), far_load) if far or far_load is not None else None
    return Read(host, load, late, unreadable + bad)


class Late:
    """One step's device values on their way to pinned host memory. CUDA only; guarded, not run on a CPU."""

    def __init__(self, names: list[str], scalars: list[Any], load: Any) -> None:
        torch = sys.modules["torch"]
        self._names = names
        self._values = _to_pinned(torch, _stack(scalars)) if scalars else None
        self._shape = _shape(load) if load is not None else None
        self._load = _to_pinned(torch, load.detach().to(torch.int32)) if load is not None else None
        self._event = torch.cuda.Event()
        self._event.record()

    def arrived(self) -> bool:
        """True once the copies are complete. Asks; does not wait."""
        return bool(self._event.query())

    def wait(self) -> None:
        """Wait for the copies: only at the end of a run, when no step is left to be late for."""
        self._event.synchronize()

    def collect(self) -> tuple[dict[str, float], bytes]:
        """The values and the payload of counts; call once ``arrived``."""
        values = dict(zip(self._names, self._values.tolist(), strict=True)) if self._values is not None else {}
        if self._load is None or self._shape is None:
            return values, b""
        return values, load_payload(*self._shape, memoryview(self._load.contiguous().numpy()).cast("B"))


def _to_pinned(torch: Any, source: Any) -> Any:
    target = torch.empty(source.shape, dtype=source.dtype, pin_memory=True)
    target.copy_(source, non_blocking=True)
    return target


def _stack(scalars: list[Any]) -> Any:
    torch = sys.modules["torch"]
    return torch.stack([s.detach().reshape(()).to(torch.float64) for s in scalars])


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _read_load(load: Any) -> tuple[bytes, Any, int]:
    """``(payload, device tensor, unreadable)`` of expert counts; exactly one of the three says something."""
    if load is None:
        return b"", None, 0
    try:
        if _is_torch(load):
            if load.device.type != "cpu":
                return b"", load, 0
            load = load.detach().numpy()
        shape = _shape(load)
        if hasattr(load, "astype"):
            return load_payload(*shape, memoryview(load.astype("<u4").reshape(-1)).cast("B")), None, 0
        counts = array("I", _flat(load))
        if sys.byteorder == "big":
            counts.byteswap()
        return load_payload(*shape, memoryview(counts).cast("B")), None, 0
    except (TypeError, ValueError, OverflowError, AttributeError, RuntimeError):
        return b"", None, 1


def _shape(load: Any) -> tuple[int, int, int]:
    """(layers, loops, experts) of counts with one, two or three dimensions; raises ValueError otherwise."""
    sizes = list(load.shape) if hasattr(load, "shape") else _nested(load)
    if len(sizes) == 1:
        return 1, 1, int(sizes[0])
    if len(sizes) == 2:
        return int(sizes[0]), 1, int(sizes[1])
    if len(sizes) == 3:
        return int(sizes[0]), int(sizes[1]), int(sizes[2])
    raise ValueError(f"expert counts have {len(sizes)} dimensions; one to three are read")


def _nested(load: Any) -> list[int]:
    sizes = []
    while isinstance(load, (list, tuple)):
        sizes.append(len(load))
        load = load[0] if load else None
    return sizes


def _flat(load: Any) -> list[int]:
    return [i for part in load for i in _flat(part)] if isinstance(load, (list, tuple)) else [int(load)]
