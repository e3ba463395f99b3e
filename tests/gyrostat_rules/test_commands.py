"""Commands: what people say is done, written down, and what is not understood changes nothing."""

import pytest
from run_story import Story, healthy_run

from gyrostat_rules.entries import EntryKind


@pytest.mark.parametrize("mode", ["Act", "", None, ["act"]], ids=str)
def test_a_mode_that_is_none_leaves_the_old_one(mode: object) -> None:
    """A misspelt mode must not arm a run, nor disarm one."""
    story = Story()
    story.command("configure", mode=mode)
    assert story.engine.state.settings.mode == "act"
    assert "act stays" in story.entries[-1].text


def test_an_unknown_command_is_written_down() -> None:
    """It changes nothing, and who looks for it finds it."""
    story = Story()
    story.command("explode")
    assert story.entries[-1].text == "command 'explode' is not known"


def test_configuring_the_same_again_says_nothing() -> None:
    """An agent that starts again tells no news."""
    story = Story()
    assert story.command("configure", mode="act", approvals=False) == []


def test_the_next_directive_is_never_set_back() -> None:
    """A folder that was emptied must not lead to a number that was used."""
    story = Story()
    story.command("configure", next_directive=9)
    story.command("configure", next_directive=2)
    assert story.engine.state.next_directive == 9


def test_a_word_names_who_said_it() -> None:
    """The history says who approved and who denied."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.command("approve", action=story.action.id, by="Ada")
    assert [e.text for e in story.told(EntryKind.COMMAND)][-1] == "Ada approved i0001.2"


def test_what_is_under_way_cannot_be_denied() -> None:
    """A no that comes after the directive was sent is too late, and says so."""
    story = healthy_run()
    story.applied(21)
    story.command("deny", action=story.action.id, by="Ada")
    assert "no action" in story.entries[-1].text
    assert story.incident.state == "acting"


def test_distrust_is_told_once() -> None:
    """The same reason at every start is no news."""
    story = Story()
    assert len(story.command("distrust", reason="so")) == 1
    assert story.command("distrust", reason="so") == []


def test_a_resume_without_a_pause_says_so() -> None:
    """Who resumes the wrong run, or one that somebody else has resumed, is not told that something was done."""
    story = Story()
    assert story.command("resume")[0].text == "it was not paused: nothing has changed"
    story.command("pause")
    assert story.command("resume")[0].text == "resumed"
