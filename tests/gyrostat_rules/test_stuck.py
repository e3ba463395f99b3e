"""Rewards that stand still are told, those that are solved or only begin are not."""

from typing import Any

import pytest
from number_run import Numbers, around, recorded, series

from gyrostat_rules.detectors.stuck import Stuck, stuck


def run(values: list[float], **how: Any) -> Numbers:
    """A detector over a reward."""
    return Numbers(stuck, Stuck(("reward",), **how)).told(series("reward", values))


def test_six_that_are_alike_are_told_and_dated_back() -> None:
    """A verifier that says nearly the same of every batch; the onset is the first of them."""
    story = run([0.3, 0.26, 0.35, 0.2057, 0.2051, 0.2053, 0.2051, 0.2052, 0.2063])
    assert story.alarms == {8: 3}
    assert "0.2052" in story.last[0].why


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(around(0.5, 100), id="noise of a batch"),
        pytest.param([0.95] * 40, id="solved"),
        pytest.param([0.0] * 99, id="hard at first"),
        pytest.param([0.5] * 99, id="one number"),
        pytest.param([0.2, 0.2001, 0.2, 0.2002, 0.2], id="five"),
    ],
)
def test_what_is_not_stuck(values: list[float]) -> None:
    """Noise, a task that is solved, one whose first answers are all wrong or all alike."""
    assert not run(values).alarms


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_a_hundred_that_are_the_very_same_are_stuck(value: float) -> None:
    """At some time a reward that never came is one that does not come."""
    assert run([value] * 100).alarms == {99: 0}


def test_it_ends_when_the_reward_moves() -> None:
    """One value that is elsewhere ends it."""
    assert max(run([*[0.2, 0.2001] * 4, 0.3, 0.35]).alarms) == 7


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_run_is_quiet(seed: int) -> None:
    """150 recorded steps."""
    assert not Numbers(stuck, Stuck(("reward",), within=0.0001, of=30)).told(recorded(f"clean-{seed}")).alarms
