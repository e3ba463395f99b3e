"""Checkpoints that are due and do not come, and those that must not be gone back to, as the rules tell them."""

import pytest
from run_story import Story

from gyrostat.wire import Record
from gyrostat_rules.inputs import Fit


def firing(story: Story, rule: str) -> dict[str, int]:
    """The alerts of a rule that fire now, and their onsets."""
    return {key: a.onset for key, a in story.engine.state.alerts.items() if a.rule == rule and a.state == "firing"}


def saving(story: Story, every: int, until: int, last: int) -> Story:
    """A run that saves every so many steps up to one, and goes on to the last."""
    for step in range(1, last + 1):
        story.step(step)
        if step % every == 0 and step <= until:
            story.checkpoint(step)
    return story


@pytest.mark.parametrize(
    ("every", "until", "due"),
    [
        pytest.param(40, 120, 240, id="three times its spacing"),
        pytest.param(5, 60, 110, id="never before fifty steps"),
        pytest.param(150, 450, 900, id="rare ones"),
    ],
)
def test_it_is_due_by_the_runs_own_spacing(every: int, until: int, due: int) -> None:
    """The onset is the step at which it was due."""
    story = saving(Story().begin(), every, until, due)
    assert not firing(story, "CheckpointOverdue")
    story.step(due + 1)
    assert list(firing(story, "CheckpointOverdue").values()) == [due]


def test_a_new_one_ends_it() -> None:
    """What was late and has come is over."""
    story = saving(Story().begin(), 10, 50, 110)
    assert firing(story, "CheckpointOverdue")
    story.checkpoint(110)
    story.step(111)
    assert not firing(story, "CheckpointOverdue")


def test_a_run_with_a_folder_and_nothing_in_it() -> None:
    """A thousand steps that could not be gone back to are told; without a folder nobody expects any."""
    with_folder, without = Story().begin().steps(1, 1002), Story().begin(checkpoint_root="").steps(1, 1002)
    assert firing(with_folder, "CheckpointOverdue")
    assert not firing(without, "CheckpointOverdue")


def test_what_a_log_or_the_host_tells_of_saves_counts() -> None:
    """A trainer whose checkpoints nobody here can read saves none the less."""
    story = Story().begin()
    for step in range(1, 401):
        story.step(step, **({"checkpoint_seconds": 9.0} if step % 50 == 0 else {}))
    assert not firing(story, "CheckpointOverdue")
    assert firing(story.steps(401, 551), "CheckpointOverdue")


def test_checkpoints_of_a_stretch_that_was_left_are_none() -> None:
    """After a step back it is the one gone back to that ages."""
    story = saving(Story().begin(), 10, 100, 100)
    story.segment = 1
    story.steps(51, 100)
    assert not firing(story, "CheckpointOverdue")
    assert firing(story.steps(101, 101), "CheckpointOverdue")


def test_one_that_is_ill_is_told_after_half_a_minute() -> None:
    """One that is looked at while it is written is whole a moment later."""
    story = Story().begin().steps(1, 20)
    story.checkpoint(10).checkpoint(20, fit=Fit.UNFIT, why="model.bin is cut off")
    assert not firing(story.steps(21, 40), "CheckpointIll")
    story.steps(41, 60)
    assert list(firing(story, "CheckpointIll").values()) == [20]
    assert (
        "model.bin is cut off" in next(a for a in story.engine.state.alerts.values() if a.rule == "CheckpointIll").why
    )


@pytest.mark.parametrize("why", ["gone", "changed after it was verified"])
def test_one_that_was_taken_away_or_is_looked_at_again_is_not_ill(why: str) -> None:
    """Rotation is no damage."""
    story = Story().begin().steps(1, 20)
    story.checkpoint(10, fit=Fit.UNFIT, why=why).checkpoint(20)
    assert not firing(story.steps(21, 80), "CheckpointIll")


def test_an_old_one_that_is_ill_is_news_no_more() -> None:
    """Three that are fit have come since: it will never be chosen."""
    story = Story().begin().steps(1, 20)
    story.checkpoint(5, fit=Fit.UNFIT, why="model.bin is cut off")
    assert firing(story.steps(21, 60), "CheckpointIll")
    for step in (30, 40, 50):
        story.checkpoint(step)
    assert not firing(story.steps(61, 62), "CheckpointIll")


def test_an_engine_behind_the_trainer_is_told_and_one_ahead_is_not() -> None:
    """The trainer's newest version is the measure, whoever speaks first in a step."""
    story = Story().begin()
    for step in range(1, 20):
        story.at += 1.0
        told = (
            Record("rollout", r, f"r{r}", 0, step, step, story.at, {"policy_version": version})
            for r, version in enumerate((1.0, step - 2.0, step + 50.0))
        )
        story.batch(*told, story.record(step, policy_version=float(step)))
    assert list(firing(story, "WeightsBehind")) == ["WeightsBehind{rank=0,role=rollout,series=policy_version}"]
