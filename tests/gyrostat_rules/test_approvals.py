"""Approvals: one word for one action of one incident, once; whoever comes too late is told what for."""

from collections.abc import Callable

import pytest
from run_story import Story, healthy_run

from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import SourceWord

TWO = """
pack: two
groups:
  - name: g
    rules:
      - {alert: Poison, detector: nonfinite, with: {classes: [poison]}, severity: critical, incident: nonfinite}
      - {alert: Stalled, detector: stall, severity: critical, incident: stall}
playbooks:
  - incident: nonfinite
    rungs: [{remedy: rollback, horizon: 5, irreversible: true}, {remedy: stop, irreversible: true}]
  - {incident: stall, rungs: [{remedy: stop, irreversible: true}]}
"""
# A run that stands still is no news here.
ONE = "\n".join(line for line in TWO.splitlines() if "stall" not in line)


def waiting(**how: object) -> Story:
    """A run whose rollback waits for a word, as i0001.2: skip_data was passed by before it."""
    story = healthy_run(approvals=True, **how)
    story.applied(21)
    assert story.action.id == "i0001.2" and story.incident.state == "held"
    return story


def word(story: Story, verb: str = "approve", action: object = "i0001.2", by: str = "ada") -> str:
    """A person's word; returns the answer."""
    story.command(verb, action=action, by=by)
    return story.told(EntryKind.COMMAND)[-1].text


def none(action: str, why: str) -> str:
    return f"not done: no action {action!r} waits for a word: {why}"


def test_an_approval_sends_it_once() -> None:
    """The first word sends it; a second says when that was."""
    story = waiting()
    assert word(story) == "ada approved i0001.2"
    assert word(story) == none("i0001.2", "it was sent at step 21 already, as directive 1")
    story.ack(step=22)
    story.steps(16, 40)
    assert word(story) == none("i0001.2", "it was sent at step 21 already, as directive 1, and came to be done")
    assert story.sent() == ["rollback"]


def test_an_approval_that_comes_after_the_wait_is_refused() -> None:
    """Nothing is done in the morning on an alarm of the night before."""
    story = waiting()
    story.tick(3601.0)
    assert word(story) == none(
        "i0001.2",
        "the wait for it ended: i0001 is stopped: nobody answered: needs approval: gyrostat approve i0001.2",
    )
    assert story.sent() == []


def test_an_approval_for_what_is_over_is_refused() -> None:
    """The incident went away by itself."""
    story = waiting()
    story.steps(22, 45)
    assert story.incident.state == "resolved"
    assert "its incident is over: i0001 is resolved: over by itself" in word(story)
    assert story.sent() == []


def test_an_approval_for_another_incident_is_refused() -> None:
    """One of this name was never there; what does wait is named, and is not sent on that word."""
    story = waiting()
    assert word(story, action="i0002.2") == none("i0002.2", "there is none of that name; what waits: i0001.2")
    assert story.sent() == []


def test_an_approval_of_one_incident_is_not_another_s() -> None:
    """Two wait; the word for the second sends the second."""
    story = healthy_run(pack=TWO, approvals=True)
    story.applied(21)
    story.tick(910.0)
    assert [i.kind for i in story.incidents] == ["nonfinite", "stall"]
    word(story, action="i0002.1")
    assert story.sent() == ["stop"]
    assert [i.state for i in story.incidents] == ["held", "acting"]


def test_an_approval_for_another_rung_is_refused() -> None:
    """A word for the rung before counts for none after it."""
    story = healthy_run(pack=TWO, approvals=True)
    story.applied(21)
    word(story, action="i0001.1")
    story.checkpoint(10, fit="unfit", why="gone").checkpoint(15, fit="unfit", why="gone")
    story.ack("failed", step=22, reason="no memory")
    assert story.action.remedy == "stop"
    assert "came to be failed" in word(story, action="i0001.1")
    assert story.sent() == ["rollback"]


def test_an_approval_for_what_was_passed_by_names_what_waits() -> None:
    """skip_data did not fit, or a target is no longer fit: another action waits in its place, by another name."""
    story = waiting()
    first = story.incident.actions[0]
    assert word(story, action=first.id) == none("i0001.1", f"it was passed by: {first.reason}; i0001.2 waits now")
    story.checkpoint(15, fit="unfit", why="torn")
    assert word(story).startswith(none("i0001.2", "it was passed by: step 15: ")) and "; i0001.3 waits now" in word(
        story
    )
    assert story.sent() == []
    assert word(story, action="i0001.3") == "ada approved i0001.3" and story.sent() == ["rollback"]


def test_yes_after_no_is_refused() -> None:
    """And no after no."""
    story = waiting()
    assert word(story, "deny") == "ada denied i0001.2; i0001 is theirs now"
    assert word(story, by="bob") == none("i0001.2", "it was denied by ada")
    assert word(story, "deny", by="bob") == none("i0001.2", "it was denied by ada")
    assert story.sent() == []


def test_no_after_yes_is_too_late_or_counts() -> None:
    """Sent, it is too late; while it still waits for something else, the no counts."""
    story = waiting()
    story.command("pause")
    word(story)
    assert word(story, "deny", by="bob") == "bob denied i0001.2; i0001 is theirs now"
    story.command("resume")
    assert story.sent() == []


@pytest.mark.parametrize("action", ["i9", "", None, 7, "i0001", "i0001.2 ", "x" * 999], ids=str)
def test_an_id_that_never_was(action: object) -> None:
    """In one short line, with what waits."""
    story = waiting()
    said = word(story, action=action)
    assert said.endswith("there is none of that name; what waits: i0001.2") and len(said) < 200
    assert story.sent() == []


def test_nothing_waits() -> None:
    """Said as that."""
    assert word(healthy_run()) == none("i0001.2", "there is none of that name; nothing waits now")


def test_a_page_needs_no_word() -> None:
    """There is nothing in it to approve."""
    story = healthy_run()
    story.tick(910.0)
    assert word(story, action=story.action.id) == none(story.action.id, "it is a page and needs no word")


def paused(story: Story) -> None:
    story.command("pause")


def shadow(story: Story) -> None:
    story.command("configure", mode="shadow")


def saving(story: Story) -> None:
    story.step(22, checkpoint_busy=1.0)


@pytest.mark.parametrize(
    ("why", "said"),
    [(paused, "paused by a person"), (shadow, "mode is shadow"), (saving, "a checkpoint is being written")],
)
def test_an_approval_counts_while_something_else_holds(why: Callable[[Story], None], said: str) -> None:
    """It is taken, says what is waited for all the same, and is not asked for again."""
    story = waiting()
    why(story)
    assert word(story) == f"ada approved i0001.2; it still waits: {said}"
    assert word(story, by="bob") == f"bob approved i0001.2 again; it still waits: {said}"
    assert story.sent() == []
    story.command("resume")
    story.command("configure", mode="act")
    story.step(23)
    assert story.sent() == ["rollback"]


def test_an_approval_while_silenced_is_refused() -> None:
    """Two people say two things: the word that ends the silence is named, and a later yes counts."""
    story = waiting()
    story.command("silence", all="yes", seconds="7200", reason="new nodes", by="bob")
    said = word(story)
    assert (
        said.startswith("not done: i0001.2 is silenced until ")
        and "by bob: new nodes; gyrostat unsilence s0001" in said
    )
    story.command("unsilence", silence="s0001")
    assert story.sent() == []
    assert word(story) == "ada approved i0001.2" and story.sent() == ["rollback"]


def test_what_is_silenced_can_be_denied() -> None:
    """A no is no action."""
    story = waiting()
    story.command("silence", all="yes", seconds="7200", reason="new nodes", by="bob")
    assert "denied" in word(story, "deny") and story.incident.state == "stopped"


def test_an_approval_is_gone_with_what_it_was_for() -> None:
    """Approved while paused; the target is found torn meanwhile: what is planned instead asks anew."""
    story = waiting()
    story.command("pause")
    word(story)
    story.checkpoint(15, fit="unfit", why="torn")
    story.command("resume")
    assert story.sent() == [] and story.incident.why == "needs approval: gyrostat approve i0001.3"


def test_whoever_is_asked_has_the_whole_hour() -> None:
    """Held because its source was blind for most of an hour; asked then, a person has an hour from there."""
    story = healthy_run(pack=ONE, approvals=True)
    story.source(SourceWord.STALE)
    story.applied(21)
    assert story.incident.state == "held" and story.action.reason.startswith("blind")
    story.tick(3000.0)
    story.source(SourceWord.FRESH)
    assert story.action.reason == f"needs approval: gyrostat approve {story.action.id}"
    story.tick(3000.0)
    assert story.incident.state == "held"
    assert word(story, action=story.action.id) == f"ada approved {story.action.id}"
    assert story.sent() == ["rollback"]


def test_who_does_not_answer_in_that_hour_is_not_asked_for_ever() -> None:
    """The wait ends an hour after the question."""
    story = healthy_run(pack=ONE, approvals=True)
    story.source(SourceWord.STALE)
    story.applied(21)
    story.tick(3000.0)
    story.source(SourceWord.FRESH)
    story.tick(3601.0)
    assert story.incident.state == "stopped" and story.sent() == []
