"""Shares: a part that takes too much of its whole, step after step, and of the same process."""

from typing import Any

import pytest
from number_run import Numbers

from gyrostat_rules.detectors.share import Share, share


def run(parts: list[float], wholes: list[float], name: str = "data_time", **how: Any) -> Numbers:
    """A detector over two series of one process."""
    params = Share(("data_time",), ("step_time",), 0.2, **how)
    return Numbers(share, params).told(
        {name: part, "step_time": whole} for part, whole in zip(parts, wholes, strict=True)
    )


def test_three_of_five_date_back_to_the_first() -> None:
    """Two steps that wait are chance."""
    story = run([0.0] * 10 + [3.0, 0.0, 3.0, 3.0, 0.0], [10.0] * 15)
    assert story.alarms == {13: 10}
    assert "data_time is 30.0% of step_time at step 13, more than 20.0% in 3 of the last 5" in story.found[13][0].why


def test_a_share_is_of_the_same_step() -> None:
    """A long wait in a long step is no larger a share than a short one in a short one."""
    assert not run([1.0, 10.0] * 20, [10.0, 100.0] * 20).alarms


@pytest.mark.parametrize("whole", [0.0, -1.0])
def test_a_share_of_nothing_is_none(whole: float) -> None:
    """A step time that is not known must not divide by zero."""
    assert not run([5.0] * 20, [whole] * 20).alarms


def test_without_a_whole_nothing_is_said() -> None:
    """A part alone has no measure."""
    assert not Numbers(share, Share(("data_time",), ("step_time",), 0.2)).told([{"data_time": 9.0}] * 20).alarms


def test_the_first_whole_that_is_told_counts() -> None:
    """Two names for a step's time are one time."""
    params = Share(("data_time",), ("step_time", "iteration_time"), 0.2)
    rows = [{"data_time": 3.0, "step_time": 10.0, "iteration_time": 100.0}] * 5
    assert Numbers(share, params).told(rows).last
    assert not Numbers(share, params).told([{**row, "step_time": 100.0} for row in rows]).last


def test_names_are_read_as_those_of_other_rules() -> None:
    """``train/data_time`` is a data_time."""
    assert run([3.0] * 5, [10.0] * 5, "train/data_time").last
