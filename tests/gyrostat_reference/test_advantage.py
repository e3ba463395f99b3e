import math

import pytest
import torch

from gyrostat_reference.advantage import batch_spread, group_advantages, is_degenerate

LONE = torch.tensor([[1.0, 0, 0, 0, 0, 0, 0, 0]])


def test_lone_success_of_eight_weighs_the_root_of_seven() -> None:
    """sigma is the population's: (1 - 1/8) / (sqrt(7)/8) = sqrt(7) by GRPO; over n - 1 it would be 2.47."""
    found = group_advantages(LONE, eps=0.0, eta=1.0, batch=0.5).values[0]
    assert found.tolist() == pytest.approx([math.sqrt(7)] + [-1 / math.sqrt(7)] * 7)


@pytest.mark.parametrize(
    ("eta", "divisor"),
    [
        pytest.param(0.0, 0.5, id="by the batch's alone"),
        pytest.param(0.25, 0.75 * 0.5 + 0.25 * math.sqrt(7) / 8, id="by a mixture"),
        pytest.param(1.0, math.sqrt(7) / 8, id="by its own alone"),
    ],
)
def test_eta_mixes_the_divisors(eta: float, divisor: float) -> None:
    """sigma_mix = (1 - eta) sigma_B + eta sigma_g, and eps is added to it."""
    found = group_advantages(LONE, eps=0.01, eta=eta, batch=0.5)
    assert float(found.values[0, 0]) == pytest.approx(0.875 / (divisor + 0.01))


def test_before_the_first_batch_spread_a_group_is_its_own() -> None:
    """A run whose first groups all agree has no sigma_B yet: no NaN comes of it, and nothing to learn."""
    found = group_advantages(torch.ones(2, 8), eps=1e-4, eta=0.0, batch=math.nan)
    assert found.values.tolist() == [[0.0] * 8] * 2
    assert found.degenerate.tolist() == [True, True]


def test_batch_spread_by_hand() -> None:
    """Root mean square of sigma_g, of which a tenth enters a step; no group leaves it as it was."""
    first = batch_spread(math.nan, 2, 0.25 + 0.11)
    assert first == pytest.approx(math.sqrt(0.18))
    assert batch_spread(first, 1, 0.25) == pytest.approx(0.9 * math.sqrt(0.18) + 0.1 * 0.5)
    assert batch_spread(first, 0, 0.0) == first


@pytest.mark.parametrize(
    ("spread", "degenerate"),
    [(0.0, True), (9e-7, True), (1.1e-6, False), (0.5, False), (math.nan, True), (math.inf, True)],
)
def test_group_is_degenerate_unless_its_spread_is_finite_and_seen(spread: float, degenerate: bool) -> None:
    """A NaN slips past a bare comparison, and would stay in sigma_B for ever."""
    assert is_degenerate(torch.tensor([spread])).tolist() == [degenerate]


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("bad", [math.inf, math.nan, -math.inf])
def test_poisoned_group_shows_and_leaves_the_others_alone(eta: float, bad: float) -> None:
    """All advantages of its group are NaN, whatever divides them; the next group's are as ever."""
    found = group_advantages(torch.tensor([[bad, 0.0], [1.0, 0.0]]), 1e-4, eta, batch=0.5)
    assert found.values[0].isnan().all()
    assert found.values[1].tolist() == pytest.approx([0.5 / 0.5001, -0.5 / 0.5001])
