"""Release: a supervisor whose trainer will not be restarted may pass the exit on, and is told so once."""

import pytest
from run_story import Story, healthy_run

from gyrostat.wire import Directive
from gyrostat_rules.entries import Entry, EntryKind

PAGES = """
pack: pages
groups:
  - name: g
    rules:
      - {alert: Died, detector: exit, severity: critical, incident: crash}
playbooks:
  - {incident: crash, rungs: [{remedy: page}]}
"""


def released(story: Story) -> list[Entry]:
    """What the supervisor was told."""
    return story.told(EntryKind.RUN, "released")


def test_a_death_that_is_not_mended_is_released_once() -> None:
    """A crash is paged, not restarted: the supervisor may go."""
    story = healthy_run(pack=PAGES).supervisor()
    story.died()
    story.tick()
    story.tick()
    (entry,) = released(story)
    directive = Directive.decode(entry.data["orders"]["directive"].encode())
    assert (directive.role, directive.procedure, directive.incarnation) == ("supervisor", "release", "super-a")


def test_a_trainer_that_dies_before_its_hello_is_released_too() -> None:
    """An import error in the training script must not leave its supervisor waiting for ever."""
    story = Story().supervisor()
    story.died()
    assert len(released(story)) == 1


@pytest.mark.parametrize("why", ["under way", "waits for a word"])
def test_not_while_a_restart_may_come(why: str) -> None:
    """The supervisor that is to restart the trainer must still be there."""
    story = healthy_run(approvals=why == "waits for a word").supervisor()
    story.skipped(21)
    story.died()
    assert story.action.remedy == "restart"
    assert not released(story)
    if why == "waits for a word":
        story.command("deny", action=story.action.id, by="Ada")
        assert len(released(story)) == 1


@pytest.mark.parametrize("end", ["asked", "well", "bye"])
def test_an_end_in_order_needs_no_release(end: str) -> None:
    """Nobody waits after an exit that was asked for, or a good one."""
    story = healthy_run().supervisor()
    if end == "bye":
        story.bye()
    else:
        story.died(0 if end == "well" else -15, asked=end == "asked")
    assert not released(story)


def test_the_next_death_is_released_again() -> None:
    """A new life that dies too is a new exit to pass on."""
    story = healthy_run(pack=PAGES).supervisor()
    story.died()
    story.begin(life="life-b").steps(16, 60)
    story.died()
    assert len(released(story)) == 2
    assert len({e.data["orders"]["directive"] for e in released(story)}) == 2


def test_shadow_releases_nobody() -> None:
    """In shadow no directive is written, not even this one."""
    story = healthy_run(act=False).supervisor()
    story.died()
    assert not released(story)
