"""What a person asks of checkpoints: back to one of their choice, in any mode, by the agent's own ways; and tags."""

import pytest
from run_story import Story, healthy_run

from gyrostat_rules.inputs import Fit
from gyrostat_rules.keeping import keep
from gyrostat_rules.ledger import facts, restore
from gyrostat_rules.requests import NOT_DONE
from gyrostat_rules.state import State


def asked(story: Story, to: str) -> str:
    """The answer to a wish to go back."""
    story.command("rollback", to=to, by="Ada")
    return story.told("command")[-1].text


def tagged(story: Story, step: int, tag: str = "stable", **more: str) -> str:
    """The answer to a wish for a tag."""
    story.command("tag", step=str(step), tag=tag, by="Ada", **more)
    return story.told("command")[-1].text


@pytest.mark.parametrize(
    ("to", "step"), [("last-stable", 15), ("15", 15), ("10", 10)], ids=["the newest", "a step", "an older step"]
)
@pytest.mark.parametrize("act", [True, False], ids=["act", "shadow"])
def test_a_wish_is_sent_at_once_in_any_mode(to: str, step: int, act: bool) -> None:
    """Who asks for it has approved it: shadow holds back the agent, not the person."""
    story = healthy_run(act=act)
    assert asked(story, to) == f"i0001: Ada asked to go back to step {step} ({to})"
    assert (story.sent(), story.action.arguments["step"]) == (["rollback"], step)
    assert story.incident.kind == "request"


def test_it_is_proved_like_any_other() -> None:
    """Answered, watched for its horizon, over: a person sees in the journal what came of the wish."""
    story = healthy_run(act=False)
    asked(story, "10")
    story.ack(step=11)
    assert story.incident.state == "probation"
    for step in range(11, 24):
        story.step(step)
    assert story.incident.state == "resolved"


def test_where_the_trainer_is_gone_it_is_started_anew_there() -> None:
    """The trainer's own way does not fit: the supervisor's does."""
    story = healthy_run(act=False).supervisor()
    story.died()
    asked(story, "10")
    assert story.sent()[-1] == "restart"
    assert story.action.arguments["step"] == 10


def test_a_checkpoint_that_is_not_certified_is_refused_with_the_reason() -> None:
    """A person may choose among those that are, and be wrong about the others."""
    story = healthy_run()
    story.checkpoint(18, fit=Fit.UNFIT, why="a parameter is not finite")
    said = asked(story, "18")
    assert said.startswith(NOT_DONE) and "step 18 not: a parameter is not finite" in said
    assert story.incidents == []


@pytest.mark.parametrize(
    ("to", "why"),
    [("17", "no checkpoint is known by '17'"), ("golden", "no checkpoint is known by 'golden'"), ("", "known by ''")],
    ids=["no such step", "no such tag", "nothing"],
)
def test_what_is_not_there_is_refused(to: str, why: str) -> None:
    """Nothing is opened, nothing is sent, and the answer says why."""
    story = healthy_run()
    assert why in asked(story, to)
    assert story.sent() == []


def test_nobody_who_could_is_said_at_once() -> None:
    """A run that has ended without a supervisor: no incident that waits for ever."""
    story = healthy_run()
    story.bye()
    said = asked(story, "10")
    assert said.startswith(NOT_DONE) and "trainer" in said and "supervisor" in said
    assert story.incidents == []


def test_a_second_wish_waits_for_the_first() -> None:
    """Two people at night: the second hears what is under way."""
    story = healthy_run()
    asked(story, "15")
    assert asked(story, "10").startswith(f"{NOT_DONE}i0001 is under way already")
    assert story.sent() == ["rollback"]


def test_distrust_and_pause_hold_even_a_wish() -> None:
    """Numbers of directives may be used up already where the history is lost; and one person's pause holds another."""
    for verb, arguments, why in (
        ("distrust", {"reason": "the chain is broken"}, "observe only: the chain is broken"),
        ("pause", {}, "paused by a person"),
    ):
        story = healthy_run()
        story.command(verb, **arguments)
        asked(story, "15")
        assert (story.sent(), story.action.reason) == ([], why)


def test_it_counts_against_no_budget_and_joins_no_incident() -> None:
    """A person's deeds do not use up what the agent may do, and a NaN in its probation is a NaN of its own."""
    story = healthy_run()
    asked(story, "15")
    story.ack(step=16)
    for step in range(16, 18):
        story.step(step)
    story.applied(18)
    assert [(i.kind, i.first_kind) for i in story.incidents] == [("request", "request"), ("nonfinite", "nonfinite")]


def test_last_stable_is_what_people_have_called_so() -> None:
    """A tag of theirs comes before the newest certified one."""
    story = healthy_run()
    assert tagged(story, 10) == "Ada tagged step 10 stable: it is kept from rotation"
    asked(story, "last-stable")
    assert story.action.arguments["step"] == 10


def test_a_tag_names_a_checkpoint_keeps_it_and_outlives_the_pod() -> None:
    """It is kept beside the newest ones, can be gone back to by name, and stands in the ledger."""
    story = healthy_run()
    tagged(story, 10, "before-the-long-run")
    for step in (20, 25, 30):
        story.steps(step - 4, step).checkpoint(step)
    kept = keep(story.engine.state, 2)
    assert "step-10-s0" in kept.names and "step-15-s0" not in kept.names
    assert "step-10-s0" in kept.names[: kept.sure]
    later = State()
    restore(later, facts(story.engine.state))
    assert later.tags == {"step-10-s0": ["before-the-long-run"]}
    asked(story, "before-the-long-run")
    assert story.action.arguments["step"] == 10


def test_a_tag_can_be_taken_away() -> None:
    """Then rotation has its way again."""
    story = healthy_run()
    tagged(story, 10)
    assert tagged(story, 10, off="yes") == "Ada took the tag stable away"
    assert story.engine.state.tags == {}
    assert tagged(story, 10, off="yes").startswith(NOT_DONE)


@pytest.mark.parametrize(
    "tag", ["", "12", "last-stable", "a\nb", "x" * 65], ids=["none", "a step", "ours", "two lines", "long"]
)
def test_what_is_no_tag_is_refused(tag: str) -> None:
    """A tag must not be taken for a step, nor for our own word."""
    story = healthy_run()
    assert tagged(story, 10, tag).startswith(NOT_DONE)
    assert story.engine.state.tags == {}


def test_only_what_is_verified_gets_a_tag() -> None:
    """Nobody is led to believe in what cannot be read."""
    story = healthy_run()
    story.checkpoint(18, fit=Fit.UNFIT, why="a parameter is not finite")
    assert tagged(story, 18) == f"{NOT_DONE}no verified checkpoint of step 18 is known"
