"""A validation that goes back proposes the last stable checkpoint; a person decides, and nobody else."""

from collections.abc import Sequence

import pytest
from run_story import Story

from gyrostat_rules.keeping import keep
from gyrostat_rules.requests import NOT_DONE
from gyrostat_rules.snapshot import dump

CLIMB = (0.40, 0.45, 0.50, 0.55, 0.60, 0.61, 0.60)
EVERY = 10  # steps between two validations, each with a checkpoint


def validated(scores: Sequence[float], story: Story | None = None, first: int = 1, *, saved: bool = True) -> Story:
    """A run that validates every tenth step and saves what it has validated."""
    story = story or Story(act=True, approvals=False).begin()
    for place, score in enumerate(scores):
        last = first + (place + 1) * EVERY - 1
        story.steps(last - EVERY + 1, last - 1)
        if saved:
            story.checkpoint(last)
        story.step(last, **{"val/accuracy": score})
    return story


def said(story: Story) -> list[tuple[str, str]]:
    """What was proposed, in order."""
    return [(entry.state, entry.text) for entry in story.told("proposal")]


def test_the_last_one_before_it_went_back_is_proposed_once() -> None:
    """With the command, and nothing is done: not in mode act, not without approvals."""
    story = validated([*CLIMB, 0.35, 0.34, 0.33, 0.33])
    ((state, text),) = said(story)
    assert state == "proposed"
    assert "val/accuracy since step 80; the last stable checkpoint is that of step 70, certified" in text
    assert text.endswith("gyrostat checkpoints rollback --to last-stable")
    assert story.sent() == [] and story.incidents == []


def test_last_stable_is_what_was_proposed() -> None:
    """Newer ones are certified too, and are no way back from this; who wants one names its step."""
    story = validated([*CLIMB, 0.35, 0.34])
    story.command("rollback", to="last-stable", by="Ada")
    assert (story.sent(), story.action.arguments["step"]) == (["rollback"], 70)
    assert said(story)[-1] == ("over", "a person has asked to go back")


def test_what_a_person_has_tagged_stable_is_proposed_before_what_is_only_certified() -> None:
    """Their word counts for versions that are older than the trouble, and not for one that is in it."""
    story = validated(CLIMB)
    story.command("tag", step="50", tag="stable", by="Ada")
    story = validated([0.35], story, 71)
    story.command("tag", step="80", tag="stable", by="Ada")
    story = validated([0.34], story, 81)
    assert "step 50, tagged stable" in said(story)[-1][1]
    story.command("rollback", to="last-stable", by="Ada")
    assert story.action.arguments["step"] == 50


def test_it_is_over_when_the_best_is_there_again() -> None:
    """And last-stable is the newest certified once more."""
    story = validated([*CLIMB, 0.35, 0.34, 0.61])
    assert said(story)[-1] == ("over", "no validation is below its best any more")
    story.command("rollback", to="last-stable", by="Ada")
    assert story.action.arguments["step"] == 100


def test_a_run_that_went_back_is_proposed_nothing_more() -> None:
    """The rollback was done: the bad validations are of a stretch that was left."""
    story = validated([*CLIMB, 0.35, 0.34])
    story.command("rollback", to="last-stable", by="Ada")
    story.ack(step=71)
    story.steps(71, 95)
    assert [state for state, _ in said(story)] == ["proposed", "over"]
    assert story.engine.state.proposed == ""


def test_nothing_to_go_back_to_is_said_too() -> None:
    """Silence would read as if nothing were wrong; a wish is refused with the reason."""
    story = validated([*CLIMB, 0.35, 0.34], saved=False)
    assert "nothing of step 70 or before is certified" in said(story)[-1][1]
    story.command("rollback", to="last-stable", by="Ada")
    assert story.told("command")[-1].text.startswith(NOT_DONE)


@pytest.mark.parametrize("score", [0.60, 0.35], ids=["while all is well", "once it is proposed"])
def test_what_would_be_proposed_is_kept_from_rotation(score: float) -> None:
    """Two certified pins are newer than the last good validation by the time that a bad one is told."""
    story = validated([*CLIMB, score, score, score, score])
    names = keep(story.engine.state, 2).names
    assert ("step-70-s0" if score < 0.5 else "step-90-s0") in names
    assert len(names) == 3


def test_the_same_inputs_propose_the_same() -> None:
    """A replay tells what the journal has."""
    once, again = validated([*CLIMB, 0.35, 0.34]), validated([*CLIMB, 0.35, 0.34])
    assert once.told("proposal") == again.told("proposal")
    assert dump(once.engine.state) == dump(again.engine.state)
