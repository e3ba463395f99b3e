"""Rises: steps that take a multiple of what they did, and not those that take longer for good reason."""

from typing import Any

import pytest
from number_run import Numbers, around, recorded, series

from gyrostat_rules.detectors.rise import Rise, rise


def run(values: list[float], **how: Any) -> Numbers:
    """A detector over the time of steps."""
    return Numbers(rise, Rise(("step_time",), **{"needed": 4, **how})).told(series("step_time", values))


def test_four_of_five_are_told_and_dated_back() -> None:
    """One slow step is a checkpoint, four are not."""
    story = run([*around(5.0, 40), *[15.0] * 5])
    assert story.alarms == {43: 40, 44: 40}


def test_what_has_become_usual_is_told_no_more() -> None:
    """It ends by itself; how slow the run has become since its start is another rule's word."""
    assert 50 < max(run([*around(5.0, 40), *[15.0] * 80]).alarms) < 90


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([*[5.0] * 9, 50.0] * 12, id="an evaluation every tenth step"),
        pytest.param([5.0 + 0.05 * i for i in range(200)], id="answers that become longer"),
        pytest.param([90.0, 60.0, *[5.0] * 60], id="the first steps compile"),
        pytest.param([*[5.0] * 12, *[15.0] * 12], id="too young to know what is usual"),
        pytest.param([0.0] * 40 + [1.0] * 10, id="nothing before"),
    ],
)
def test_what_is_no_rise(values: list[float]) -> None:
    """Hard negatives: none of these is a run that became slow."""
    assert not run(values).alarms


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_run_is_quiet(seed: int) -> None:
    """150 recorded steps, of a series that moves."""
    assert not Numbers(rise, Rise(("response_length",))).told(recorded(f"clean-{seed}")).alarms
