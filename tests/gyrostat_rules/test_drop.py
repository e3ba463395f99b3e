"""Drops: a reward that dies is told within three steps and for as long as it is dead."""

from random import Random
from typing import Any

import pytest
from number_run import Numbers, around, recorded, series

from gyrostat_rules.detectors.drop import Drop, drop


def run(values: list[float], **how: Any) -> Numbers:
    """A detector over a reward."""
    return Numbers(drop, Drop(("reward",), **how)).told(series("reward", values))


def test_a_dead_reward_is_found_in_three_steps_and_dated_back() -> None:
    """The mean of three is below 0.35 of what was usual; the onset is the first of the low values."""
    story = run([*around(0.8, 40), 0.1, 0.1, 0.1])
    assert story.alarms == {42: 40}
    assert "before step 40 it was usually 0.8" in story.last[0].why
    assert story.last[0].evidence["usual"] == pytest.approx(0.8, rel=0.1)


def test_it_is_told_for_as_long_as_it_is_dead() -> None:
    """A reward that has been dead for a hundred steps has not become usual."""
    story = run([*around(0.8, 40), *[0.01] * 150])
    assert set(story.alarms) >= set(range(43, 190))
    assert set(story.alarms.values()) == {40}


def test_the_first_good_value_clears_it() -> None:
    """A remedy that works must be seen to work."""
    story = run([*around(0.8, 40), *[0.0] * 30, 0.7, 0.8])
    assert max(story.alarms) == 69


def test_it_is_found_again_after_a_recovery() -> None:
    """A second fall has its own onset."""
    story = run([*around(0.8, 40), *[0.0] * 10, *around(0.8, 30), *[0.0] * 5])
    assert story.last[0].onset == 80


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([*around(0.03, 40), 0.0, 0.0, 0.0, 0.0], id="never high"),
        pytest.param([*around(0.8, 40), 0.0, 0.8, 0.7, 0.0, 0.8], id="single low values"),
        pytest.param([*around(0.8, 40), *[0.4] * 20], id="halved"),
        pytest.param([*[0.8] * 60, *[0.3] * 40, *[0.15] * 5], id="halved twice, long ago and now"),
        pytest.param([0.8 - 0.004 * i for i in range(150)], id="slow decline"),
        pytest.param([-1.0] * 40 + [-5.0] * 5, id="negative"),
        pytest.param([0.8] * 5 + [0.0] * 5, id="too young"),
        pytest.param([0.1, 0.0, 0.06, 0.12, 0.02, 0.08, 0.04, 0.1] * 5 + [0.0, 0.02, 0.0], id="few hits in a hundred"),
        pytest.param([0.9, -0.6, 0.4, 0.8, -0.3, 0.7] * 6 + [-0.6, -0.3, -0.5], id="a score that crosses 0"),
    ],
)
def test_what_is_no_drop(values: list[float]) -> None:
    """A reward that was never there, or is still there, or goes slowly, is not told as gone."""
    assert not run(values).alarms


def test_a_young_run_is_judged_by_what_there_is() -> None:
    """A fault at step 12 need not wait for 25 values."""
    assert run([*around(0.8, 12), 0.1, 0.1, 0.1]).alarms == {14: 12}


def test_a_jump_back_forgets_the_low_values() -> None:
    """After a rollback the reward is what it was."""
    story = run([*around(0.8, 40), *[0.0] * 5])
    story.back(35)
    story.told(series("reward", [0.8]))
    assert not story.last


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_run_is_quiet(seed: int) -> None:
    """150 recorded steps."""
    assert not Numbers(drop, Drop(("reward",))).told(recorded(f"clean-{seed}")).alarms


@pytest.mark.parametrize("run_name", [f"{fault}-{seed}" for fault in ("lr_bomb", "divergence") for seed in range(3)])
def test_a_policy_that_was_destroyed(run_name: str) -> None:
    """The fault strikes at step 19; the reward tells it at step 22, dated back to 20, as in"""
    story = Numbers(drop, Drop(("reward",))).told(recorded(run_name))
    assert next(iter(story.alarms.items())) == (22, 20)


@pytest.mark.parametrize("seed", range(3))
def test_a_score_whose_neighbours_are_alike_swings_and_is_not_gone(seed: int) -> None:
    """The mean of three such values goes further than that of three chances: by what such means did, not by theory."""
    chance, wave, values = Random(seed), 0.0, []
    for _ in range(1200):
        wave = 0.6 * wave + chance.gauss(0.0, 0.176)
        values.append(0.8 + wave)
    assert not run(values, least=0.1, clear=5.0).alarms


def test_a_noisy_reward_that_dies_is_gone_all_the_same() -> None:
    """It takes no more steps for it."""
    chance = Random(0)
    values = [0.8 + chance.gauss(0.0, 0.08) for _ in range(60)]
    assert min(run([*values, *[0.02] * 6], least=0.1, clear=5.0).alarms) <= 62
