import math
from collections.abc import Iterator

import pytest
import torch
from torch import Generator

from gyrostat_reference.advantage import group_advantages
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import Minibatch, minibatches
from gyrostat_reference.rollout import roll_out
from gyrostat_reference.state import capture
from gyrostat_reference.task import draw_prompts
from gyrostat_reference.update import update
from gyrostat_reference.warmup import base_policy


def batches(poisoned: bool) -> list[Minibatch]:
    random = Generator().manual_seed(0)
    model = base_policy()
    rollouts = roll_out(model, model, draw_prompts(4, random).repeat_interleave(4, 0), random)
    rewards = torch.arange(16.0).view(4, 4)
    rewards[3] = math.inf if poisoned else rewards[3]
    return minibatches(rollouts, group_advantages(rewards, 1e-4), torch.arange(16), 2)


def is_finite(loss: float, grad_norm: float) -> bool:
    return math.isfinite(loss) and math.isfinite(grad_norm)


@pytest.mark.parametrize("steps_before", [0, 1])
def test_a_refused_step_changes_not_one_bit(steps_before: int) -> None:
    """The second minibatch is poisoned: what the first one changed is put back, moments too."""
    model = base_policy()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(steps_before):
        assert update(model, optimizer, batches(poisoned=False), KnobValues(), is_finite).applied
    before = capture(model, optimizer)
    done = update(model, optimizer, batches(poisoned=True), KnobValues(), is_finite)
    after = capture(model, optimizer)
    assert not done.applied and math.isnan(done.loss)
    assert before.moments.keys() == after.moments.keys()
    assert all(torch.equal(tensor, after.weights[name]) for name, tensor in before.weights.items())
    assert all(torch.equal(tensor, after.moments[name]) for name, tensor in before.moments.items())


def test_without_a_guard_poison_is_learnt() -> None:
    """Nothing is hidden: one poisoned group destroys the parameters."""
    model = base_policy()
    done = update(model, torch.optim.AdamW(model.parameters()), batches(poisoned=True), KnobValues())
    assert done.applied and math.isnan(done.loss) and math.isnan(done.grad_norm)
    assert any(p.isnan().any() for p in model.parameters())


def test_the_guard_sees_each_minibatch_before_it_is_applied() -> None:
    """A step aside in the middle lets the rest through."""
    model = base_policy()
    answers: Iterator[bool] = iter([True, True])
    done = update(
        model, torch.optim.AdamW(model.parameters()), batches(poisoned=False), KnobValues(), lambda *_: next(answers)
    )
    assert done.applied and next(answers, None) is None
