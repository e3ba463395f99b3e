"""The bound by which rewards are judged."""

import math
import random
from collections.abc import Sequence
from statistics import mean, stdev

import pytest
from bootstrap import lower_bound


@pytest.mark.parametrize(("given", "bound"), [([-0.02], -0.02), ([0.01] * 20, 0.01)], ids=["one", "all alike"])
def test_without_spread_the_bound_is_the_number_itself(given: Sequence[float], bound: float) -> None:
    """Nothing is taken off, or added, where there is no doubt."""
    assert lower_bound(given) == pytest.approx(bound)


def test_of_two_numbers_the_bound_is_the_lower_one() -> None:
    """A quarter of all samples holds the lower one twice, and that is more than the twentieth that may lie below."""
    assert lower_bound([0.0, 1.0]) == 0.0


def test_the_bound_is_that_of_theory() -> None:
    """Of many bell-shaped numbers it is the mean less 1.645 standard errors."""
    source = random.Random(1)
    given = [source.gauss(-0.01, 0.02) for _ in range(400)]
    wanted = mean(given) - 1.645 * stdev(given) / math.sqrt(len(given))
    assert lower_bound(given) == pytest.approx(wanted, abs=2e-4)


def test_the_bound_is_the_same_every_time() -> None:
    """A table that is checked in can be made again from its rows."""
    given = [0.01, -0.04, 0.02, 0.0, -0.01]
    assert lower_bound(given) == lower_bound(given)


def test_nothing_has_no_bound() -> None:
    """No number is made up."""
    with pytest.raises(ValueError, match="at least one"):
        lower_bound([])
