import math
from collections.abc import Iterator

import pytest
import torch
from torch import Generator

from gyrostat_reference.advantage import group_advantages
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import Lesson, lesson, taken
from gyrostat_reference.model import LoopMoE
from gyrostat_reference.ranks import Alone
from gyrostat_reference.rollout import draw, scored
from gyrostat_reference.state import capture
from gyrostat_reference.task import draw_prompts
from gyrostat_reference.update import Allows, Learner, Update, update
from gyrostat_reference.warmup import base_policy


def lessons(poisoned: bool) -> list[Lesson]:
    """Two minibatches of 4 groups of 4; the last group's rewards are infinite where it is poisoned."""
    random = Generator().manual_seed(0)
    model = base_policy()
    drawn = draw(model, draw_prompts(4, random).repeat_interleave(4, 0), random)
    rollouts = scored(model, model, drawn, torch.zeros(16))
    rewards = torch.arange(16.0).view(4, 4)
    rewards[3] = math.inf if poisoned else rewards[3]
    advantages = group_advantages(rewards, 1e-4)
    ones = torch.ones_like(rollouts.mask)
    whole = lesson(rollouts, advantages.values, advantages.degenerate, torch.full((4,), 0.28), ones, 4)
    return taken(whole, torch.arange(16).chunk(2))


def learn(model: LoopMoE, optimizer: torch.optim.Optimizer, poisoned: bool, allows: Allows | None = None) -> Update:
    """One step's update."""
    learner = Learner(model, model, optimizer, Alone())
    return update(learner, lessons(poisoned), KnobValues(), 0.0, allows)


def is_finite(loss: float, grad_norm: float) -> bool:
    return math.isfinite(loss) and math.isfinite(grad_norm)


@pytest.mark.parametrize("steps_before", [0, 1])
def test_a_refused_step_changes_not_one_bit(steps_before: int) -> None:
    """The second minibatch is poisoned: what the first one changed is put back, moments too."""
    model = base_policy()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(steps_before):
        assert learn(model, optimizer, False, is_finite).applied
    before = capture(model, optimizer)
    done = learn(model, optimizer, True, is_finite)
    after = capture(model, optimizer)
    assert not done.applied and math.isnan(done.loss)
    assert before.moments.keys() == after.moments.keys()
    assert all(torch.equal(tensor, after.weights[name]) for name, tensor in before.weights.items())
    assert all(torch.equal(tensor, after.moments[name]) for name, tensor in before.moments.items())


def test_without_a_guard_poison_is_learnt() -> None:
    """Nothing is hidden: one poisoned group destroys the parameters."""
    model = base_policy()
    done = learn(model, torch.optim.AdamW(model.parameters()), True)
    assert done.applied and math.isnan(done.loss) and math.isnan(done.grad_norm)
    assert any(p.isnan().any() for p in model.parameters())


def test_the_guard_sees_each_minibatch_before_it_is_applied() -> None:
    """A step aside in the middle lets the rest through."""
    model = base_policy()
    answers: Iterator[bool] = iter([True, True])
    done = learn(model, torch.optim.AdamW(model.parameters()), False, lambda *_: next(answers))
    assert done.applied and next(answers, None) is None
