"""Weights: whether all parameters are finite, as one number on the device that nobody waits for.

One pass over the weights by ``torch._foreach_norm``: a norm is finite where all it is made of is. Of a sharded
model (FSDP, DeepSpeed) each rank looks at its own part, so no collective is added. torch comes in with the model.
Who asks between two steps is told what the end of the step before found, where nothing has been written since. Not
promised: that ``still`` sees what is written past autograd's counters, by ``.data`` or a kernel; ``finite`` does.
"""

import math
import sys
from collections.abc import Iterable
from typing import Any

from gyrostat.integrations.hf.notices import Notices


class Weights:
    """Looks at a model's parameters; after the first time at those alone that are trained."""

    def __init__(self, model: Any, notices: Notices) -> None:
        self._all = [p for p in model.parameters() if p.is_floating_point()]
        self._trained = [p for p in self._all if p.requires_grad]
        self._notices = notices
        self._unread: set[Any] = set()  # kinds of number that torch has no norm of
        self._found: Any = None  # by the last look at what is trained
        self._marks: tuple[tuple[int, int], ...] | None = None  # how the weights stood then

    def finite(self, *, frozen_too: bool = False) -> Any:
        """1.0 or 0.0 as a tensor on the first parameter's device; None where there is none that could be read."""
        if frozen_too:
            return self._pass_over(self._all)
        self._marks, self._found = self._stand(), self._pass_over(self._trained)
        return self._found

    def still(self) -> Any:
        """What ``finite`` found last, where no weight has been written since as far as can be told; else it looks."""
        return self._found if self._marks is not None and self._marks == self._stand() else self.finite()

    def _stand(self) -> tuple[tuple[int, int], ...] | None:
        """Where each weight lies and how often it was written; None where a shard's writes are not counted."""
        if any(_local(p) is not p for p in self._trained):
            return None
        try:
            return tuple((p.data_ptr(), p._version) for p in self._trained)
        except RuntimeError:  # an inference tensor counts nothing
            return None

    def _pass_over(self, parameters: Iterable[Any]) -> Any:
        torch = sys.modules["torch"]
        with torch.no_grad():
            groups = _groups(parameters)
            found = [f for kind, tensors in groups.items() if (f := self._look(torch, kind, tensors)) is not None]
            if not found:
                return None
            first = found[0].device
            together = torch.stack([f.to(first, non_blocking=True) for f in found]) if len(found) > 1 else found[0]
            return together.all().to(torch.float32)

    def _look(self, torch: Any, kind: tuple[Any, Any], tensors: list[Any]) -> Any:
        _, dtype = kind
        if dtype in self._unread:
            return None
        try:  # a sum of squares of half precision may be beyond its range where no weight is
            order = math.inf if dtype == torch.float16 else 2
            return torch.isfinite(torch.stack(torch._foreach_norm(tensors, order))).all()
        except (RuntimeError, NotImplementedError):
            self._unread.add(dtype)
            self._notices.say(
                f"weights {dtype}", f"weights of type {dtype} are not looked at: torch has no norm of them"
            )
            return None


def _groups(parameters: Iterable[Any]) -> dict[tuple[Any, Any], list[Any]]:
    """This rank's parts of the parameters, by device and kind of number."""
    groups: dict[tuple[Any, Any], list[Any]] = {}
    for parameter in parameters:
        tensor = _local(parameter)
        if tensor.numel():
            groups.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    return groups


def _local(parameter: Any) -> Any:
    """What of a parameter lies on this rank: of FSDP2's DTensor its shard, of DeepSpeed's stage 3 its partition."""
    partition = getattr(parameter, "ds_tensor", None)
    if partition is not None:
        return partition
    return parameter.to_local() if hasattr(parameter, "to_local") else parameter
