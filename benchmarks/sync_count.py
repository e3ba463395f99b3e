"""How often telling a step would make the host wait for a device: counted at torch's dispatcher, on any machine.

    python benchmarks/sync_count.py [--quick] [--json]

What is counted are the calls that need a tensor's value on the host (``aten::_local_scalar_dense``, as behind
``.item()``, ``float()`` and ``bool()``, ``is_nonzero``, ``nonzero``, ``equal``). Beside ours stand the usual ways
to look for a NaN. The counts are exact, not measured. Exit status 1 where ours is not 0.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from figures import arguments, show
from torch.utils._python_dispatch import TorchDispatchMode

from gyrostat import Control, Knob, StepGuard, Telemetry

WAITING = ("_local_scalar_dense", "is_nonzero", "nonzero", "equal")


class Calls(TorchDispatchMode):
    """Counts the operators that reach the dispatcher."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen[func.overloadpacket._qualified_op_name.removeprefix("aten::")] += 1
        return func(*args, **(kwargs or {}))


def ways(folder: str, tensors: int) -> dict[str, Callable[[], object]]:
    """What is compared, each as one step of a trainer with ``tensors`` gradients and thirty scalars."""
    gradients = [torch.randn(10, 10) for _ in range(tensors)]
    scalars = {f"series_{i}": gradients[0][i // 10, i % 10] for i in range(30)}
    floats = dict.fromkeys(scalars, 0.5)
    load = torch.ones(4, 8, dtype=torch.int32)
    telemetry, guard = Telemetry(folder), StepGuard()
    control = Control(telemetry, [Knob("lr", lambda: 1.0, lambda value: None, 0.0, 2.0)])
    return {
        "gyrostat: record of 30 tensors and expert counts": lambda: telemetry.record(1, expert_load=load, **scalars),
        "gyrostat: record of 30 floats": lambda: telemetry.record(1, **floats),
        "gyrostat: StepGuard on host floats": lambda: guard.allows(1, 0.5, 1.0),
        "gyrostat: Control.apply": lambda: control.apply(1),
        "peer: 30 x item()": lambda: [value.item() for value in scalars.values()],
        f"peer: isfinite().all() of {tensors} gradients": lambda: [bool(torch.isfinite(g).all()) for g in gradients],
    }


def main() -> int:
    asked = arguments(__doc__)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, way in ways(folder, 20 if asked.quick else 100).items():
            with Calls() as calls:
                way()
            rows.append({"a step of": name, "waits": sum(calls.seen[op] for op in WAITING)})
    added = sum(int(row["waits"]) for row in rows if str(row["a step of"]).startswith("gyrostat"))
    show("sync_count", rows, {"added by gyrostat": added, "goal": 0}, asked.json)
    return 1 if added else 0


if __name__ == "__main__":
    sys.exit(main())
