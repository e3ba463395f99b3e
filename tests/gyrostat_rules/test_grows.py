"""Counters: what is new is told, what was there before the run, or begins anew, is not."""

from typing import Any

import pytest
from number_run import Numbers, series

from gyrostat_rules.detectors.grows import Grows, grows


def run(values: list[float], **how: Any) -> Numbers:
    """A detector over a counter."""
    return Numbers(grows, Grows(("errors_total",), **how)).told(series("errors_total", values))


def test_one_more_is_told_for_as_many_steps_as_are_looked_at() -> None:
    """An error that was counted is no news after twenty steps, and its onset is the step that counted it."""
    story = run([3.0] * 10 + [4.0] * 40)
    assert story.alarms == dict.fromkeys(range(10, 30), 10)
    assert "1 more than within 20 steps before" in story.found[10][0].why
    assert story.found[10][0].evidence | {"value": 4.0, "grown": 1.0} == story.found[10][0].evidence


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([1e6] * 60, id="errors of before the run"),
        pytest.param([7.0] * 30 + [0.0] * 30, id="begins anew at nothing"),
        pytest.param([7.0] * 30 + [5.0] * 30, id="begins anew and has counted since"),
        pytest.param([0.0] * 60, id="nothing"),
    ],
)
def test_what_is_no_growth(values: list[float]) -> None:
    """A card that has had errors since it was made, a driver that was loaded anew."""
    assert not run(values).alarms


def test_what_is_counted_after_a_new_beginning_counts() -> None:
    """The count before it says nothing of it."""
    assert run([7.0] * 30 + [0.0] * 5 + [1.0] * 3).alarms == {35: 35, 36: 35, 37: 35}


def test_slow_growth_stays_below_the_limit() -> None:
    """An error a step is no burst, and a hundred within twenty steps are."""
    assert not run([float(i) for i in range(200)], more_than=100).alarms
    assert min(run([0.0] * 20 + [float(30 * i) for i in range(9)], more_than=100).alarms.items()) == (24, 21)


def test_a_number_that_is_told_for_the_first_time_has_grown_from_nothing() -> None:
    """Numbers of errors are not told before there is one; a counter that is merely told late is another matter."""
    rows = [{"loss": 1.0}] * 10 + [{"loss": 1.0, "gpu_xid/79": 1.0}] * 30
    story = Numbers(grows, Grows(("gpu_xid/79",), from_zero=True)).told(rows)
    assert min(story.alarms.items()) == (10, 10)
    assert max(story.alarms) == 29
    assert not Numbers(grows, Grows(("gpu_xid/79",))).told(rows).alarms


def test_it_is_told_again_where_it_was_left_off_and_comes_anew() -> None:
    """An agent that was begun anew counts from nothing, and a second error is a second one."""
    absent, present = {"loss": 1.0}, {"loss": 1.0, "gpu_xid/79": 1.0}
    story = Numbers(grows, Grows(("gpu_xid/79",), from_zero=True))
    story.told([*[absent] * 5, *[present] * 40, *[absent] * 50, present])
    assert 95 in story.alarms


def test_a_run_that_goes_back_forgets_what_was_counted_since() -> None:
    """The same error is not told twice, nor is what was undone."""
    story = run([0.0] * 20 + [1.0] * 5)
    story.back(14)
    assert not story.told(series("errors_total", [0.0] * 10)).last
