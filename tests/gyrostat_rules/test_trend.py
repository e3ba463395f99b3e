"""A loss that goes up from its first values on; noise and a loss that is learnt are quiet."""

import random

import pytest
from number_run import Numbers, recorded, series

from gyrostat_rules.detectors.trend import Trend, trend


def run(values: list[float], **how: object) -> Numbers:
    """A detector over a loss."""
    return Numbers(trend, Trend(("loss",), **how)).told(series("loss", values))  # type: ignore[arg-type]


RISING = [1.453, 1.406, 1.415, 1.426, 1.459, 1.436, 1.468, 1.503, 1.513]


def test_a_loss_that_rises_from_the_start_is_told_at_the_ninth() -> None:
    """The onset is the lowest of them."""
    story = run(RISING)
    assert story.alarms == {8: 1}
    assert "goes up from 1.406" in story.last[0].why


def test_later_it_is_no_longer_looked_at() -> None:
    """A slow rise in mid-run is drift's."""
    assert not run([1.5 - 0.01 * i for i in range(30)] + [1.2 + 0.01 * i for i in range(30)]).alarms


def test_a_nan_among_them_is_left_out_and_no_row_counts_twice() -> None:
    """What is not finite is another rule's, and does not make a long run young."""
    values = [1.0 + 0.001 * (i % 7) for i in range(40)] + [float("nan")] * 2 + RISING
    assert not run(values).alarms


def test_down_is_told_where_it_is_asked_for() -> None:
    """The other way round."""
    assert run(RISING[::-1], direction="down").alarms and not run(RISING[::-1]).alarms


def test_noise_is_seldom_called_a_trend() -> None:
    """Of 400 young runs of noise at most one in thirty."""
    chance = random.Random(1)
    told = sum(bool(run([chance.gauss(1.0, 0.2) for _ in range(10)]).alarms) for _ in range(400))
    assert 0 < told <= 400 / 30


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_run_is_quiet(seed: int) -> None:
    """150 recorded steps."""
    assert not Numbers(trend, Trend(("loss",))).told(recorded(f"clean-{seed}")).alarms
