"""Outcomes: what an answer, its absence, or the end of who should answer makes of an action. Nothing is done twice."""

from typing import Any

import pytest
from run_story import Story, healthy_run

from gyrostat.wire import Ack
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Answer


def sent(world: int = 1, **how: Any) -> Story:
    """A run with a rollback under way."""
    story = healthy_run(world=world, **how)
    story.applied(21)
    assert story.sent() == ["rollback"]
    return story


def test_applied_begins_probation() -> None:
    """From the answer on it must prove itself, until its horizon beyond the last bad step."""
    story = sent()
    story.ack(step=22)
    assert (story.incident.state, story.action.until_step, story.action.restores) == ("probation", 31, [])


@pytest.mark.parametrize(("result", "step"), [("refused", 15), ("failed", 10)])
def test_no_leads_on(result: str, step: int) -> None:
    """A no is told with its reason: what was refused says nothing of the checkpoint, what failed asks for an older."""
    story = sent()
    first = story.action
    story.ack(result, reason="no memory", step=22)
    assert (first.outcome, story.action.arguments["step"]) == ("failed", step)
    assert any("no memory" in e.text for e in story.told(EntryKind.ACTION, "failed"))


def test_a_person_at_the_knob_is_left_alone() -> None:
    """A knob that somebody else has turned is theirs: the incident waits for a person."""
    story = sent()
    story.ack("refused", reason="lr_scale reads 0.3, not 1: somebody else has turned it", step=22)
    assert (story.incident.state, story.sent()) == ("held", ["rollback"])


def test_all_ranks_must_answer() -> None:
    """Seven of eight are not all: nothing is settled until the last has spoken."""
    story = sent(world=8)
    story.ack(step=22, ranks=range(7))
    assert story.incident.state == "acting"
    story.segment = 1
    story.ack(step=22, ranks=[7])
    assert story.incident.state == "probation"


def test_a_split_answer_is_a_stop() -> None:
    """Ranks that disagree may no longer hold the same weights: a person's matter."""
    story = sent(world=2)
    story.ack("refused", step=22, ranks=[1], reason="no memory")
    story.ack(step=22, ranks=[0])
    assert story.incident.state == "stopped"
    assert "answered differently" in story.incident.why
    assert story.sent() == ["rollback"]


@pytest.mark.parametrize("way", ["twice", "another number", "another action", "another role", "late"])
def test_answers_that_are_not_his_are_ignored(way: str) -> None:
    """Duplicates, numbers of another life and answers after the end change nothing."""
    story = sent()
    action = story.action
    ack = Ack(action.number, action.id, Ack.APPLIED, 22, detail={"step": 15})
    answer = Answer("trainer", 0, story.life, ack)
    if way == "twice":
        story.batch(answer)
        before = len(story.entries)
        story.batch(answer)
        assert len(story.entries) == before
        assert story.incident.state == "probation"
        return
    if way == "late":
        story.tick(200.0)
        story.batch(answer)
        assert (action.outcome, story.incidents[0].state) == ("timed out", "held")
        return
    if way == "another number":
        story.batch(answer._replace(ack=ack._replace(number=99)))
    elif way == "another action":
        story.batch(answer._replace(ack=ack._replace(action="i0007.1")))
    else:
        story.batch(answer._replace(role="rollout"))
    assert (story.incident.state, action.outcome, action.answers) == ("acting", "", {})


def test_no_answer_is_held_and_never_repeated() -> None:
    """A directive that nobody answered may have been obeyed: it is not sent again, and an hour later it is given up."""
    story = sent()
    story.tick(89.0)
    assert story.incidents[0].state == "acting"
    story.tick(2.0)
    assert (story.incidents[0].actions[-1].outcome, story.incidents[0].state) == ("timed out", "held")
    for _ in range(5):
        story.tick(1000.0)
    assert story.incidents[0].state == "stopped"
    assert story.sent().count("rollback") == 1


def test_a_trainer_that_was_replaced_may_have_obeyed() -> None:
    """The new life says in its Hello what was applied last: the rollback was, so it must prove itself."""
    story = sent()
    story.segment = 1
    story.begin(life="life-b", last=story.action.number)
    assert (story.incident.state, story.action.outcome) == ("probation", "")
    story.steps(16, 31)
    assert story.incident.state == "resolved"


@pytest.mark.parametrize("again", [False, True], ids=["well", "bad again"])
def test_a_trainer_that_was_replaced_may_not_have(again: bool) -> None:
    """Unknown is unknown: nothing is repeated, the new life is watched, and what is bad in it counts at any step."""
    story = sent()
    first = story.action
    story.begin(life="life-b")
    assert (first.outcome, story.incident.state) == ("unknown", "probation")
    if again:
        story.step(16)
        story.applied(17)
        assert story.sent() == ["rollback", "rollback"]
        assert (story.incident.onset, story.action.arguments["step"]) == (17, 10)
    else:
        story.steps(16, 31)
        assert story.incident.state == "resolved"


def test_a_trainer_that_dies_before_it_answers_is_restarted() -> None:
    """Nobody will answer: the next rung, and the checkpoint is not held to have failed."""
    story = healthy_run().supervisor()
    story.applied(21)
    story.died(-9)
    assert story.incidents[0].actions[1].outcome == "unknown"
    assert (story.sent(), story.action.arguments["step"]) == (["rollback", "restart"], 15)


def test_a_refusal_that_lasts_comes_to_an_end() -> None:
    """A trainer that refuses whatever it is told is not told for ever."""
    story = sent()
    for step in range(22, 40):
        if story.incident.state == "acting":
            story.ack("refused", reason="busy", step=step)
        story.applied(step)
    assert (story.incident.state, len(story.incidents)) == ("stopped", 1)
    assert len(story.sent()) <= 4


@pytest.mark.parametrize("word", ["failed", "unknown"])
def test_what_could_not_be_delivered(word: str) -> None:
    """A directive that was not laid leads on; one that may lie there is never laid again."""
    story = sent()
    first = story.action
    story.delivery(word)
    assert first.outcome == word
    assert story.sent() == (["rollback", "rollback"] if word == "failed" else ["rollback"])
    assert story.incident.state == ("acting" if word == "failed" else "held")


def test_a_restart_is_done_when_the_new_trainer_has_loaded() -> None:
    """The supervisor's word that it began a process is not yet a mended run."""
    story = healthy_run().supervisor()
    story.skipped(21)
    story.died()
    action = story.action
    story.batch(Answer("supervisor", 0, "super-a", Ack(action.number, action.id, Ack.APPLIED, 0)))
    assert story.incident.state == "acting"
    story.restarted("life-b")
    assert story.incident.state == "probation"


def test_a_supervisor_that_cannot_restart_says_so() -> None:
    """A failed restart is settled by the supervisor's own answer."""
    story = healthy_run().supervisor()
    story.skipped(21)
    story.died()
    action = story.action
    story.batch(Answer("supervisor", 0, "super-a", Ack(action.number, action.id, Ack.FAILED, 0, "no such file")))
    assert action.outcome == "failed"


def test_a_recurrence_before_the_step_of_the_rollback_counts() -> None:
    """The rollback was applied at step 30 and went to 15: what is bad again at 18 is bad again."""
    story = sent()
    story.steps(22, 28)
    story.ack(step=30)
    story.steps(16, 17)
    story.applied(18)
    assert story.incident.actions[1].outcome == "ineffective"
    assert len(story.incidents) == 1
