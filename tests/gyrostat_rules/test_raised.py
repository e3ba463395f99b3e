"""A value that has risen above its own usual: at once or slowly, never by its noise, never where it lies around 0."""

import random

import pytest
from number_run import Numbers, around, series

from gyrostat_rules.detectors.raised import Raised, raised


def run(values: list[float], **how: float | int) -> Numbers:
    return Numbers(raised, Raised(("z_loss",), **how)).told(series("z_loss", values))  # type: ignore[arg-type]


def test_the_third_of_five_is_told_since_the_first() -> None:
    """One value says nothing."""
    assert run([*around(1.0, 60, share=0.02), 2.0, 1.0, 2.0, 2.0]).alarms == {63: 60}


def test_a_slow_rise_is_seen_too() -> None:
    """Each row is hardly above the one before, and a spike would learn the way up."""
    story = run([*around(1.0, 100, share=0.01), *(1.0 + 0.03 * i for i in range(40))])
    assert story.alarms and min(story.alarms) < 130


def test_one_that_has_risen_for_good_is_usual_in_the_end() -> None:
    """Another stage of the data is no alarm for ever."""
    story = run([*around(1.0, 100, share=0.02), *around(2.0, 200, share=0.02)])
    assert story.alarms and max(story.alarms) < 230


def test_both_limits_and_the_least_must_be_passed() -> None:
    """``by`` comes on top of ``times``, and below ``beyond`` nothing counts."""
    values = [*around(0.5, 60, share=0.02), *[2.0] * 9]
    assert run(values, times=1, by=1).alarms
    assert not run(values, times=1, by=2).alarms
    assert not run(values, times=2, beyond=2.5).alarms


@pytest.mark.parametrize("name", ["a loss around 0", "one that is always 0"])
def test_no_multiple_of_nothing(name: str) -> None:
    """A policy loss swings around 0, and a share of it would be an alarm at every swing."""
    dice = random.Random(4)
    scale = 1.0 if name == "a loss around 0" else 0.0
    assert not run([scale * dice.gauss(0.0, 0.02) for _ in range(100)] + [0.4] * 9).alarms


def test_noise_is_no_rise() -> None:
    """Values that swing by half of themselves are half above their usual one time in six."""
    assert not run([*around(1.0, 600, share=0.4, seed=8)]).alarms
