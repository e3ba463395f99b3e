"""Levels: so many of the last values beyond a limit that is a number, a share of the run's beginning, or both."""

from typing import Any

import pytest
from number_run import Numbers, around, recorded, series

from gyrostat_rules.detectors.level import Level, level


def run(values: list[float], name: str = "entropy", **how: Any) -> Numbers:
    """A detector over one series."""
    return Numbers(level, Level((name,), **how)).told(series(name, values))


def test_three_of_five_date_back_to_the_first() -> None:
    """One value beyond is chance; the third of five is told, since the first."""
    story = run([1.0] * 10 + [0.1, 1.0, 0.1, 0.1, 1.0], below=0.3)
    assert story.alarms == {13: 10}
    (reading,) = story.found[13]
    assert reading.evidence | {"value": 0.1, "limit": 0.3, "side": "below", "beyond": 3, "of": 5} == reading.evidence
    assert "entropy is 0.1 at step 13, below 0.3 in 3 of the last 5 values, since step 10" in reading.why


def test_the_onset_goes_back_over_a_long_stretch() -> None:
    """Found late, as after a pause of the agent, it is still dated to where it began."""
    story = run([1.0] * 10 + [0.1] * 60, below=0.3)
    assert set(story.alarms.values()) == {10}


def test_five_of_five() -> None:
    """Groups that all have one reward, for five steps."""
    story = run([0.5] * 20 + [0.95] * 4 + [0.5] + [0.95] * 5, "zero_advantage_fraction", above=0.9, needed=5)
    assert story.alarms == {29: 25}


def test_a_limit_itself_is_not_beyond_it() -> None:
    """0.3 is not above 0.3."""
    assert not run([0.3] * 20, "clip_fraction", above=0.3).alarms


@pytest.mark.parametrize(
    ("start", "limit"), [pytest.param(1.5, 0.3, id="the number"), pytest.param(0.4, 0.2, id="the share")]
)
def test_both_limits_must_be_passed(start: float, limit: float) -> None:
    """The entropy floor is min(0.3, half of the first): a base with little entropy does not alarm from its birth."""
    how = {"below": 0.3, "below_times": 0.5}
    assert not run([start] * 30 + [limit + 0.01] * 10, **how).alarms
    story = run([start] * 30 + [limit - 0.01] * 10, **how)
    assert story.alarms
    assert story.last[0].evidence["limit"] == pytest.approx(limit)


def test_above_both_limits() -> None:
    """The other way round the larger of the two counts."""
    how = {"above": 1.0, "above_times": 1.5}
    assert not run([1.0] * 30 + [1.4] * 10, **how).alarms
    assert run([1.0] * 30 + [1.6] * 10, **how).alarms
    assert not run([0.1] * 30 + [0.9] * 10, **how).alarms


def test_the_first_values_are_left_out_of_the_beginning() -> None:
    """A warm-up is not what the run is measured by."""
    assert not run([9.0] * 15 + [1.0] * 50, below_times=0.5, skip=15).alarms
    assert run([9.0] * 15 + [1.0] * 50, below_times=0.5, skip=0).alarms


def test_before_the_beginning_is_known_nothing_is_said_of_it() -> None:
    """A share needs its 25 values; a plain limit beside it for the other side does not."""
    assert not run([1.0] * 10 + [0.1] * 10, below_times=0.5).alarms
    assert run([1.0] * 10 + [5.0] * 3, below_times=0.5, above=2.0).last[0].labels["side"] == "above"


def test_least_keeps_a_young_run_quiet() -> None:
    """``least`` values must have been told."""
    assert min(run([0.1] * 30, below=0.3, least=20).alarms) == 19


def test_a_share_of_nothing_is_no_limit() -> None:
    """A series that began at or below zero has no relative level."""
    assert not run([0.0] * 30 + [5.0] * 10, above_times=2.0).alarms
    assert not run([-1.0] * 30 + [-5.0] * 10, below_times=0.5).alarms


def test_the_first_good_value_clears_it() -> None:
    """A remedy that works must be seen to work, though three of the last five are bad."""
    assert max(run([1.0] * 10 + [0.1] * 5 + [1.0] * 3, below=0.3).alarms) == 14


def test_zero_for_fifty_steps() -> None:
    """A clip that never clips is inert: a level can say so too."""
    story = run([0.1] * 30 + [0.0] * 60, "clip_fraction", below=1e-9, needed=50, of=50)
    assert min(story.alarms.items()) == (79, 30)


def test_without_a_limit_nothing_is_said() -> None:
    """A rule that forgot its limit is silent rather than loud."""
    assert not run(list(around(1.0, 50))).alarms


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_run_is_quiet(seed: int) -> None:
    """150 recorded steps against the limits of the core pack."""
    for name, above in (("clip_fraction", 0.3), ("mismatch_kl", 1e-2), ("kl", 1.0)):
        assert not Numbers(level, Level((name,), above=above)).told(recorded(f"clean-{seed}")).alarms


@pytest.mark.parametrize("seed", range(3))
def test_stale_rollouts_show_in_the_mismatch(seed: int) -> None:
    """The fault strikes at step 19; its KL is above a hundredth in three of five within nine steps."""
    story = Numbers(level, Level(("mismatch_kl",), above=1e-2)).told(recorded(f"stale_rollouts-{seed}"))
    assert 21 <= min(story.alarms) <= 28
