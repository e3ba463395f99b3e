"""One step's update: a gradient and an optimizer step for each minibatch, all of them or none.

With a guard, loss and gradient norm of every minibatch are judged before its optimizer step. Where one is
refused, the weights and moments copied at the start are put back, so a skipped step changes not one bit, even
if an earlier minibatch of it had been applied. Without a guard nothing is judged and nothing copied.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch.optim import Optimizer

from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import Minibatch, loss_of
from gyrostat_reference.model import LoopMoE
from gyrostat_reference.state import capture, put_back

Allows = Callable[[float, float], bool]


class Update(NamedTuple):
    """Means over the minibatches that were looked at; one that is not finite makes the mean so."""

    applied: bool
    loss: float
    grad_norm: float
    clip_fraction: float


class _Part(NamedTuple):
    loss: float
    grad_norm: float
    clip_fraction: float


def update(
    model: LoopMoE,
    optimizer: Optimizer,
    batches: Sequence[Minibatch],
    knobs: KnobValues,
    allows: Allows | None = None,
) -> Update:
    """Learn from ``batches``. ``allows(loss, grad_norm)`` is the guard's judgement of a minibatch."""
    before = capture(model, optimizer) if allows is not None else None
    parts: list[_Part] = []
    for batch in batches:
        parts.append(_gradient(model, batch, knobs))
        if allows is not None and before is not None and not allows(parts[-1].loss, parts[-1].grad_norm):
            put_back(before, model, optimizer)
            return _summed_up(False, parts)
        optimizer.step()
    return _summed_up(True, parts)


def _gradient(model: LoopMoE, batch: Minibatch, knobs: KnobValues) -> _Part:
    """Leave the clipped gradient of a minibatch in the model; the norm is the one before clipping."""
    model.zero_grad()
    loss = loss_of(model(batch.sequences[:, :-1]), batch, knobs)
    torch.autograd.backward(loss.total)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), knobs.max_grad_norm)
    return _Part(float(loss.total.detach()), float(norm), float(loss.clip_fraction))


def _summed_up(applied: bool, parts: Sequence[_Part]) -> Update:
    return Update(applied, *(sum(values) / len(parts) for values in zip(*parts, strict=True)))
