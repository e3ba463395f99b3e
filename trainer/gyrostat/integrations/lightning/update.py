"""The update as it was: the loss that was differentiated and the norm of its gradient, read before it is applied.

Loss, norm, and whether the weights were finite after the step before come to the host in one transfer: the guard
must know them before the optimizer moves anything.
"""

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple


class Seen(NamedTuple):
    """What one update looks like. ``sound``: the weights were finite after the step before."""

    loss: float | None
    grad_norm: float | None
    sound: bool


def look(optimizer: Any, loss: Any, finite: Any) -> Seen:
    """Read loss, gradient norm and ``finite``, 1 or 0, None where it was not looked at: one wait for the device.

    The norm is that of the gradients of this optimizer, before any clipping; of a sharded model that of this
    rank's part.
    """
    torch = sys.modules["torch"]
    asked = {"loss": loss, "norm": norm(optimizer), "finite": finite}
    asked = {name: value for name, value in asked.items() if value is not None}
    if not asked:
        return Seen(None, None, True)
    device = next(iter(asked.values())).device
    with torch.no_grad():
        read = torch.stack([v.detach().reshape(()).to(device, torch.float32) for v in asked.values()]).tolist()
    numbers = dict(zip(asked, read, strict=True))
    return Seen(numbers.get("loss"), numbers.get("norm"), numbers.get("finite", 1.0) == 1.0)


def norm(optimizer: Any) -> Any:
    """The 2-norm of all gradients, a tensor; None where there are none."""
    torch = sys.modules["torch"]
    kinds: dict[tuple[Any, Any], list[Any]] = {}
    for parameter in _parameters(optimizer):
        if parameter.grad is not None:
            gradient = parameter.grad
            gradient = gradient.to_local() if hasattr(gradient, "to_local") else gradient
            kinds.setdefault((gradient.device, gradient.dtype), []).append(gradient)
    if not kinds:
        return None
    with torch.no_grad():
        parts = [part for gradients in kinds.values() for part in torch._foreach_norm(gradients)]
        first = parts[0].device
        return torch.linalg.vector_norm(torch.stack([p.to(first, torch.float32) for p in parts]))


def drop(optimizer: Any) -> None:
    """Take the gradients away: an optimizer passes over a parameter that has none.

    Not set to zero: momentum and weight decay would move the weights all the same.
    """
    for parameter in _parameters(optimizer):
        parameter.grad = None


def scale_rates(optimizer: Any, factor: float) -> None:
    """Multiply the learning rates for the one step that comes now; a scheduler sees those it has set itself."""
    if factor == 1.0:
        return
    rates = [group["lr"] for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate * factor

    def back(*_: Any) -> None:
        hook.remove()
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    hook = optimizer.register_step_post_hook(back)


def _parameters(optimizer: Any) -> Iterator[Any]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])
