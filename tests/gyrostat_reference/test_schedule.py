import pytest

from gyrostat_reference.schedule import Schedule
from gyrostat_reference.settings import RECIPE

SCHEDULE = Schedule(rate=2.0, warm_up=10, decay_from=100, horizon=150)


@pytest.mark.parametrize(
    ("step", "share"),
    [
        pytest.param(1, 0.19, id="first step: 0.1 + 0.9/10"),
        pytest.param(5, 0.55, id="half-way up"),
        pytest.param(10, 1.0, id="at the top"),
        pytest.param(100, 1.0, id="level"),
        pytest.param(125, 0.55, id="half-way down"),
        pytest.param(150, 0.1, id="at the horizon"),
        pytest.param(10_000, 0.1, id="long after it"),
    ],
)
def test_rate_by_hand(step: int, share: float) -> None:
    """Up, level, down to a tenth, and on at a tenth."""
    assert SCHEDULE.at(step, 0) == pytest.approx(2.0 * share)


def test_fresh_moments_are_warmed_up_again() -> None:
    """After a rollback to step 60 with a reset the rate rises from there; in the decay, both hold."""
    assert [SCHEDULE.at(step, 60) for step in (61, 65, 70, 71)] == pytest.approx([0.38, 1.1, 2.0, 2.0])
    assert SCHEDULE.at(125, 120) == pytest.approx(2.0 * 0.55 * 0.55)


def test_rate_is_never_nothing_and_never_above_its_level() -> None:
    """Not at the end, not in a warm-up behind the end: a rate of 0 would be a run that only looks alive."""
    rates = [RECIPE.at(step, warm_from) for warm_from in (0, 95, 149, 300) for step in range(warm_from + 1, 400)]
    assert 0 < min(rates) <= max(rates) <= RECIPE.rate


def test_decay_without_a_length_is_no_division_by_zero() -> None:
    """A horizon where the decay begins is a step down."""
    assert Schedule(1.0, 1, 10, 10).at(10, 0) == 1.0
    assert Schedule(1.0, 1, 10, 10).at(11, 0) == pytest.approx(0.1)
