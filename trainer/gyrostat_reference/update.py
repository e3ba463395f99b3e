"""One step's update: a gradient and an optimizer step for each minibatch, all of them or none.

With a guard, loss and gradient norm of every minibatch are judged before its optimizer step. Where one is
refused, the weights and moments copied at the start are put back, so a skipped step changes not one bit, even
if an earlier minibatch of it had been applied. Without a guard nothing is judged and nothing copied. Several ranks
see the same loss and norm, and skip or apply as one.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.optim import Optimizer

from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import Lesson, Minibatch, loss_of
from gyrostat_reference.ranks import Ranks, clip
from gyrostat_reference.state import capture, put_back

Allows = Callable[[float, float], bool]


class Update(NamedTuple):
    """Means over the minibatches that were looked at; one that is not finite makes the mean so."""

    applied: bool
    loss: float
    grad_norm: float
    clip_fraction: float


class Learner(NamedTuple):
    """What an update works on: ``forward`` is the model as the ranks share it, ``model`` its bare self."""

    model: nn.Module
    forward: nn.Module
    optimizer: Optimizer
    ranks: Ranks


class _Part(NamedTuple):
    loss: float
    grad_norm: float
    clip_fraction: float


def update(
    learner: Learner, lessons: Sequence[Lesson], knobs: KnobValues, bonus: float, allows: Allows | None = None
) -> Update:
    """Learn from ``lessons``, one after the other. ``allows(loss, grad_norm)`` is the guard's judgement of each."""
    before = capture(learner.model, learner.optimizer) if allows is not None else None
    parts: list[_Part] = []
    for batch in _counted(lessons, learner.ranks):
        parts.append(_gradient(learner, batch, knobs, bonus))
        if allows is not None and before is not None and not allows(parts[-1].loss, parts[-1].grad_norm):
            put_back(before, learner.model, learner.optimizer)
            return _summed_up(False, parts)
        learner.optimizer.step()
    return _summed_up(True, parts)


def _counted(lessons: Sequence[Lesson], ranks: Ranks) -> list[Minibatch]:
    counts = [float(count) for lesson in lessons for count in (lesson.mask.sum(), lesson.learn.sum())]
    means = [total / ranks.world for total in ranks.sums(counts)]
    return [Minibatch(lesson, means[2 * i], means[2 * i + 1]) for i, lesson in enumerate(lessons)]


def _gradient(learner: Learner, batch: Minibatch, knobs: KnobValues, bonus: float) -> _Part:
    """Leave the clipped gradient of a minibatch in the model; the norm is the one before clipping."""
    learner.optimizer.zero_grad()
    loss = loss_of(learner.forward(batch.rows.sequences[:, :-1]), batch, knobs, bonus)
    torch.autograd.backward(loss.total)
    norm = clip(learner.model.parameters(), knobs.max_grad_norm)
    ranks = learner.ranks
    mean, clipped = (v / ranks.world for v in ranks.sums([float(loss.total.detach()), float(loss.clip_fraction)]))
    return _Part(mean, float(norm), clipped)


def _summed_up(applied: bool, parts: Sequence[_Part]) -> Update:
    return Update(applied, *(sum(values) / len(parts) for values in zip(*parts, strict=True)))
