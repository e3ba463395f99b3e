"""Expert balance: what is even, what is dead, and that few tokens are not taken for imbalance."""

import random

import pytest

from gyrostat.wire import ExpertLoad
from gyrostat_rules.experts import Balance, balance, worst


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        pytest.param((), Balance(1.0, 0.0, 0.0), id="no experts"),
        pytest.param((0, 0), Balance(1.0, 0.0, 0.0), id="no tokens"),
        pytest.param((50, 50), Balance(1.0, 0.0, 0.5), id="even"),
        pytest.param((10**9, 10**9), Balance(1.0, 0.0, 0.5), id="huge"),
        pytest.param((7,), Balance(1.0, 0.0, 1.0), id="one expert"),
    ],
)
def test_what_is_even_is_whole(counts: tuple[int, ...], wanted: Balance) -> None:
    """Even loads, and loads of which nothing is known, are perfect."""
    assert balance(counts) == wanted


def test_a_collapse_is_seen() -> None:
    """One expert of four that takes all leaves a quarter in use and three dead."""
    found = balance((4000, 0, 0, 0))
    assert found.rho_eff == pytest.approx(0.25, rel=1e-3)
    assert (found.dead_share, found.top_share) == (0.75, 1.0)


def test_it_is_the_formula() -> None:
    """1 / (1 + CV^2), CV^2 less what even routing of so few tokens gives."""
    dice = random.Random(7)
    for _ in range(50):
        counts = [dice.randrange(0, 900) for _ in range(64)]
        total = sum(counts)
        mean = total / 64
        cv2 = sum((c - mean) ** 2 for c in counts) / 64 / mean**2 - 63 / total
        assert balance(counts).rho_eff == pytest.approx(1 / (1 + max(0.0, cv2)))
        assert balance(counts).dead_share == sum(c < 0.1 * mean for c in counts) / 64


def test_perfect_routing_of_few_tokens_is_near_perfect() -> None:
    """The correction for small samples: chance alone must not read as imbalance."""
    dice = random.Random(3)
    found = []
    for _ in range(30):
        counts = [0] * 32
        for _ in range(320):
            counts[dice.randrange(32)] += 1
        found.append(balance(counts).rho_eff)
    assert sum(found) / len(found) > 0.97


def test_the_worst_layer_counts() -> None:
    """One bad loop of one layer is not averaged away."""
    load = ExpertLoad(2, 2, 2, (500, 500, 500, 500, 1000, 0, 500, 500))
    assert worst(load).rho_eff == pytest.approx(0.5, rel=1e-2)
    assert worst(ExpertLoad(0, 0, 0, ())).rho_eff == 1.0
