import math

import torch

from gyrostat_reference.advantage import group_advantages
from gyrostat_reference.faults import verify
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import Minibatch, loss_of
from gyrostat_reference.model import LoopMoE
from gyrostat_reference.task import END, EQUALS, FIRST_COUNT


def test_by_hand() -> None:
    """One success of four: mean 1/4, sigma 1/2, so 3/4 / 1/2 and -1/4 / 1/2 (eps aside)."""
    found = group_advantages(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), eps=1e-4)
    assert torch.allclose(found.values, torch.tensor([[0.75, -0.25, -0.25, -0.25]]) / (0.5 + 1e-4))
    assert found.spread.tolist() == [0.5]


def test_a_group_of_equals_is_degenerate() -> None:
    """Where all rewards are the same there is nothing to learn, and nothing is divided by zero."""
    found = group_advantages(torch.tensor([[1.0] * 4, [0.0] * 4, [1.0, 0.0, 0.0, 1.0]]), eps=1e-6)
    assert found.degenerate.tolist() == [True, True, False]
    assert found.values[:2].abs().sum() == 0.0


def test_a_poisoned_group_is_not_degenerate() -> None:
    """An infinite reward makes its own group NaN, not masked, and leaves the others alone."""
    found = group_advantages(torch.tensor([[math.inf, 0.0], [1.0, 0.0]]), eps=1e-4)
    assert found.degenerate.tolist() == [False, False]
    assert found.values[0].isnan().all()
    assert found.values[1].isfinite().all()


def test_the_loss_of_a_poisoned_minibatch_is_not_finite() -> None:
    """An item whose verifier divides by zero reaches loss and clip fraction as NaN."""
    sequences = torch.tensor([[FIRST_COUNT, 3, EQUALS, 3, END, END, END]] * 4)
    rewards = verify(sequences, torch.tensor([5, 5, 6, 6]), poison_item=5)
    assert rewards.tolist() == [math.inf, math.inf, 1.0, 1.0]
    advantages = group_advantages(rewards.view(2, 2), 1e-4).values.reshape(-1, 1).expand(4, 4)
    ones = torch.ones(4, 4)
    loss = loss_of(
        LoopMoE()(sequences[:, :-1]), Minibatch(sequences, ones, ones, advantages, -ones, -ones), KnobValues()
    )
    assert loss.total.isnan() and loss.clip_fraction.isnan()
