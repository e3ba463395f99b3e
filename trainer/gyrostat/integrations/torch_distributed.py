"""Agreement over ranks by ``torch.distributed``: what Control and StepGuard need where a role has several ranks.

torch is not imported here: a process that has a process group has torch. Where a gloo group stands beside NCCL,
give it that one: tensors then stay on the host, and no stream is touched.
"""

import sys
from collections.abc import Sequence
from typing import Any


class TorchCollective:
    """A ``Collective`` over a process group, the default group when none is given.

    ``device`` is where the group's backend wants its tensors: ``"cpu"`` for gloo, ``"cuda"`` for NCCL. With
    NCCL ``finish`` reads one tensor from the device, which waits for the reduction begun a step before.
    """

    def __init__(self, group: Any = None, device: str = "cpu") -> None:
        self._group, self._device = group, device

    def begin(self, values: Sequence[int]) -> Any:
        """Start reducing ``values`` to their largest over all ranks; does not wait."""
        torch = sys.modules["torch"]
        tensor = torch.tensor(list(values), dtype=torch.int64, device=self._device)
        largest = torch.distributed.ReduceOp.MAX
        return torch.distributed.all_reduce(tensor, largest, self._group, async_op=True), tensor

    def finish(self, pending: Any) -> list[int]:
        """The largest values, all ranks alike; raises what ``torch.distributed`` raises when a rank is gone."""
        work, tensor = pending
        work.wait()
        return [int(v) for v in tensor.tolist()]

    def agree_max(self, value: float) -> float:
        """The largest of the ranks' values, for StepGuard's ``agree``. Waits for all ranks, as a step does."""
        torch = sys.modules["torch"]
        tensor = torch.tensor([value], dtype=torch.float64, device=self._device)
        torch.distributed.all_reduce(tensor, torch.distributed.ReduceOp.MAX, self._group)
        return float(tensor.tolist()[0])
