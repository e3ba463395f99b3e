"""Steps that are skipped, change nothing, or are not where they were: what looks like it and is none of it."""

from typing import Any

import pytest
from number_run import Numbers, around, series

from gyrostat_rules.detectors.frozen import Frozen, frozen
from gyrostat_rules.detectors.idle import Idle, idle
from gyrostat_rules.detectors.resumed import Resumed, resumed
from gyrostat_rules.detectors.skips import Skips, skips

NORMS = [*around(1.0, 20), *[0.0] * 10]


def learnt(**beside: float) -> dict[int, int]:
    """When a gradient that is gone from step 20 on is told, beside other values."""
    return Numbers(idle, Idle()).told({"grad_norm": v, **beside} for v in NORMS).alarms


@pytest.mark.parametrize(
    ("beside", "first"),
    [
        pytest.param({"reward": 0.5, "reward_std": 0.3}, 22, id="groups have spread"),
        pytest.param({"reward": 0.5, "frac_reward_zero_std": 0.5}, 22, id="half of the groups have"),
        pytest.param({"loss": 2.0}, 24, id="supervised: five"),
        pytest.param({"reward": 0.5}, None, id="nobody says whether groups have spread"),
        pytest.param({"reward": 0.5, "reward_std": 0.0}, None, id="no group has"),
        pytest.param({"reward": 0.9, "zero_advantage_fraction": 0.96}, None, id="nearly none has"),
        pytest.param({"loss": 2.0, "step_applied": 0.0}, None, id="the steps were skipped"),
    ],
)
def test_a_gradient_of_nothing(beside: dict[str, float], first: int | None) -> None:
    """It is told where there was something to learn, and nowhere else."""
    assert min(learnt(**beside), default=None) == first


def test_a_spread_told_every_second_step_is_enough() -> None:
    """Trainers that use a batch twice tell its reward once."""
    rows = [{"grad_norm": v, **({"reward_std": 0.3} if i % 2 == 0 else {})} for i, v in enumerate(NORMS)]
    assert min(Numbers(idle, Idle()).told(rows).alarms) == 22


def counted(values: list[int], every: int = 1) -> dict[int, int]:
    story = Numbers(skips, Skips())
    for value in values:
        story.tell({"skipped_steps": float(value)})
        story.step += every - 1
    return story.alarms


def test_a_counter_told_every_tenth_step() -> None:
    """Ten more since the row before are ten steps in a row, and one more is none."""
    assert counted([0, 0, 0, 10], every=10) == {30: 21}
    assert not counted([0, 0, 0, 1, 1, 2], every=10)


def test_a_search_that_does_not_end_is_told() -> None:
    """A scale that halves for forty steps will not be found any more."""
    assert not counted(list(range(40)))
    assert counted(list(range(60)))


def test_a_counter_that_begins_anew_has_not_gone_back() -> None:
    """A resumed trainer counts from 0."""
    assert not counted([0] * 10 + [1] * 30 + [0] * 30)


def taken_up(values: list[float], after: list[float], **how: Any) -> Numbers:
    story = Numbers(resumed, Resumed(("loss",), **how)).told(series("loss", values))
    story.back(len(values) - 6)
    return story.told(series("loss", after))


def test_a_loss_that_is_higher_behind_the_jump() -> None:
    """The onset is the first row behind it."""
    assert set(taken_up([*around(1.0, 40, share=0.02)], [1.4] * 5).alarms.values()) == {35}


def test_no_jump_is_told_of_what_came_later() -> None:
    """A loss that rises fifty rows behind a resumption has another cause."""
    story = taken_up([*around(1.0, 40, share=0.02)], [*around(1.0, 50, share=0.02), *[1.4] * 20])
    assert not story.alarms


def test_a_run_that_was_never_taken_up_has_no_such_jump() -> None:
    """The first values of the first life are before nothing."""
    assert not Numbers(resumed, Resumed(("loss",))).told(series("loss", [1.0] * 30 + [3.0] * 30)).alarms


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        pytest.param([*around(0.4, 40)], [0.0] * 15, True, id="it moved and stands"),
        pytest.param([*around(0.4, 40)], [0.0] * 14, False, id="not long enough"),
        pytest.param([0.0, 0.0, 0.0, 0.01] * 10, [0.0] * 30, False, id="it seldom moved"),
        pytest.param([*around(0.4, 40)], [0.95] * 30, False, id="the task is solved"),
        pytest.param([*around(0.4, 10)], [0.0] * 30, False, id="too young to tell"),
    ],
)
def test_a_reward_that_stops_moving(before: list[float], after: list[float], told: bool) -> None:
    """It is told where it had moved from step to step, below what counts as solved."""
    story = Numbers(frozen, Frozen(("reward",))).told(series("reward", [*before, *after]))
    assert bool(story.alarms) == told
    assert not told or set(story.alarms.values()) == {len(before)}
