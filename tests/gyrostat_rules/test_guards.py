"""Guards: what each allows, holds and denies, with its reason, and that a hold ends when its reason does."""

import pytest
from run_story import Story, healthy_run

from gyrostat_rules.guards import GUARDS, RUN_ACTIONS
from gyrostat_rules.inputs import SourceWord
from gyrostat_rules.state import Deed


def held(story: Story) -> str:
    """The reason of the newest action, which must be held."""
    assert (story.action.verdict, story.incident.state) == ("hold", "held"), story.action
    return story.action.reason


def test_each_guard_is_tested_here() -> None:
    """A guard that is added needs its own story below."""
    assert [g.__name__ for g in GUARDS] == [
        "mode", "capability", "blind", "sound", "approval", "cooldown", "budget", "ceiling", "busy",
    ]  # fmt: skip


def test_all_well_is_allowed() -> None:
    """With mode act and no guard's reason the action is sent in the moment of its alarm."""
    story = healthy_run()
    story.applied(21)
    assert (story.action.verdict, story.sent()) == ("allow", ["rollback"])


def test_mode_holds_until_it_is_act() -> None:
    """Shadow and observe hold; a person who sets act lets the waiting action go."""
    story = healthy_run(act=False)
    story.command("configure", mode="observe", approvals=False)
    story.applied(21)
    assert held(story) == "mode is observe"
    story.command("configure", mode="act")
    assert story.sent() == ["rollback"]


def test_pause_holds_until_resumed() -> None:
    """A pause stops new actions at once and for all incidents, and says so."""
    story = healthy_run()
    story.command("pause")
    story.applied(21)
    assert held(story) == "paused by a person"
    story.command("resume")
    assert story.sent() == ["rollback"]


def test_distrust_holds_until_trusted() -> None:
    """A run whose history cannot be read is only observed, whatever its mode."""
    story = healthy_run()
    story.command("distrust", reason="the chain is broken")
    story.applied(21)
    assert held(story) == "observe only: the chain is broken"
    story.command("trust", by="Ada")
    assert story.sent() == ["rollback"]


@pytest.mark.parametrize("word", [SourceWord.STALE, SourceWord.FOREIGN])
def test_blind_holds_until_it_sees(word: str) -> None:
    """No action on the word of a stale source."""
    story = healthy_run()
    story.source(word)
    story.applied(21)
    assert held(story) == f"blind: records: it is {word}"
    story.source(SourceWord.FRESH)
    assert story.sent() == ["rollback"]


def test_damage_that_was_passed_over_is_no_blindness() -> None:
    """One torn frame must not stop the healing."""
    story = healthy_run()
    story.source(SourceWord.DAMAGED)
    story.applied(21)
    assert story.sent() == ["rollback"]


def test_capability_needs_somebody_there() -> None:
    """An action whose hands have gone is not sent into the void: it is planned anew for who is left."""
    story = healthy_run(approvals=True).supervisor()
    story.applied(21)
    story.died()
    story.command("approve", action=story.action.id)
    assert story.sent() == ["restart"]


@pytest.mark.parametrize("remedy", ["rollback", "skip_data"])
def test_approval_is_for_what_cannot_be_undone(remedy: str) -> None:
    """A rollback waits for a person; one item of data does not."""
    story = healthy_run(approvals=True)
    if remedy == "rollback":
        story.applied(21)
        assert held(story) == f"needs approval: gyrostat approve {story.action.id}"
        story.command("approve", action=story.action.id, by="Ada")
    else:
        story.skipped(21)
        story.skipped(22)
    assert story.sent() == [remedy]


def test_an_approval_is_for_one_action_and_once() -> None:
    """What was approved has been used up: the next rung asks again, and the old word does not count."""
    story = healthy_run(approvals=True)
    story.applied(21)
    first = story.action.id
    story.command("approve", action=first, by="Ada")
    story.ack("failed", reason="no memory", step=22)
    assert "needs approval" in held(story)
    assert story.action.id != first
    story.command("approve", action=first, by="Ada")
    assert story.sent() == ["rollback"]
    assert "no action" in story.entries[-1].text


@pytest.mark.parametrize("action", ["i0001.9", "", None, 7], ids=str)
def test_an_approval_of_nothing_does_nothing(action: object) -> None:
    """A word for an action that does not wait is written down, and that is all."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.command("approve", action=action)
    assert story.sent() == []


def test_denied_stays_denied() -> None:
    """A person's no ends it: the same alarm going on asks nobody again, and no later yes turns it."""
    story = healthy_run(approvals=True)
    story.applied(21)
    action = story.action
    story.command("deny", action=action.id, by="Ada")
    assert (story.incident.state, story.incident.why) == ("stopped", "rollback was denied by Ada")
    story.applied(22)
    story.command("approve", action=action.id, by="Bob")
    story.applied(23)
    assert (len(story.incidents), story.sent()) == (1, [])


def recurrent(story: Story) -> Story:
    """An incident mended by rollback, and the next one three steps after its end: skip_data does not fit in either."""
    story.applied(21)
    story.ack(step=22)
    story.steps(16, 33)
    assert story.incident.state == "resolved"
    story.applied(34)
    return story


def test_cooldown_holds_the_same_remedy_and_ends() -> None:
    """The same remedy for the same cause waits out the playbook's cooldown, counted in steps."""
    story = recurrent(healthy_run())
    assert held(story) == "rollback ended at step 31; cooldown is 5 steps"
    story.step(35)
    assert story.sent() == ["rollback"]
    story.step(36)
    assert story.sent() == ["rollback", "rollback"]


def test_cooldown_lets_worse_through() -> None:
    """A rollback for entropy does not hold up a rollback for NaN."""
    story = healthy_run()
    story.engine.state.closed.append(Deed("entropy", "rollback", 19, story.at))
    story.applied(21)
    assert story.sent() == ["rollback"]


def test_cooldown_is_for_the_first_action_of_an_incident() -> None:
    """The next rung of the same incident is not held up by an earlier one's end."""
    story = healthy_run()
    story.engine.state.closed.append(Deed("nonfinite", "rollback", 20, story.at))
    story.skipped(21)
    story.skipped(22)
    assert story.sent() == ["skip_data"]
    story.ack(step=23)
    story.applied(23)
    assert story.sent() == ["skip_data", "rollback"]


@pytest.mark.parametrize("age", [10, 250], ids=["lately", "long ago"])
def test_budget_denies_what_is_too_often(age: int) -> None:
    """Three actions in two hundred steps for one cause are enough; older ones are forgotten."""
    story = healthy_run(last=300)
    story.engine.state.deeds += [Deed("nonfinite", "skip_data", 300 - age, 0.0)] * 3
    story.applied(301)
    if age == 10:
        assert (story.action.verdict, story.incident.state) == ("deny", "stopped")
        assert story.incident.why == "3 actions in 200 steps: the budget is spent"
    else:
        assert story.sent() == ["rollback"]


def test_the_run_has_a_budget_of_its_own() -> None:
    """Whatever the playbooks allow each, so many actions of all kinds together are too many."""
    story = healthy_run()
    story.engine.state.deeds += [Deed("entropy", "skip_data", 5, 0.0)] * RUN_ACTIONS
    story.applied(21)
    assert "of this run: its budget is spent" in story.incident.why


@pytest.mark.parametrize("count", [2, 3])
def test_ceiling_denies_the_same_cause_again_and_again(count: int) -> None:
    """Three mended incidents of one cause in a thousand steps are no accident that a remedy mends."""
    story = healthy_run(last=40)
    story.engine.state.closed += [Deed("nonfinite", "skip_data", 5, 0.0)] * count
    story.applied(41)
    if count == 3:
        assert story.incident.why == "3 nonfinite incidents in 1000 steps"
    else:
        assert story.sent() == ["rollback"]


def test_busy_holds_while_a_checkpoint_is_written() -> None:
    """Nothing is done in the middle of a save; the next record that says it is over lets it go."""
    story = healthy_run()
    story.applied(21, checkpoint_busy=1.0)
    assert held(story) == "a checkpoint is being written"
    story.step(22)
    assert story.sent() == ["rollback"]


def test_busy_holds_while_another_incident_is_acted_on() -> None:
    """One experiment at a time."""
    pack = """\
pack: two
groups:
  - name: g
    rules:
      - alert: P
        detector: nonfinite
        with: {classes: [poison], confirmed: true}
        severity: critical
        incident: nonfinite
      - {alert: S, detector: stall, severity: critical, incident: stall}
playbooks:
  - {incident: nonfinite, rungs: [{remedy: rollback, horizon: 5, irreversible: true}]}
  - {incident: stall, rungs: [{remedy: stop, irreversible: true}]}
"""
    story = healthy_run(pack=pack)
    story.applied(21)
    story.ack(step=22)
    story.tick(910.0)
    assert story.incident.kind == "stall"
    assert held(story) == "incident i0001 is in probation"
    assert story.sent() == ["rollback"]


@pytest.mark.parametrize("why", ["probation", "blind", "saving"])
def test_a_page_is_held_by_nothing(why: str) -> None:
    """A page touches nothing: a run that hangs in the middle of a probation must wake somebody."""
    story = healthy_run()
    if why == "probation":
        story.applied(21)
        story.ack(step=22)
    elif why == "blind":
        story.source(SourceWord.STALE)
    else:
        story.step(21, checkpoint_busy=1.0)
    story.tick(910.0)
    assert (story.incident.kind, story.action.remedy, story.action.outcome) == ("stall", "page", "done")


def test_a_hold_that_nobody_ends_expires() -> None:
    """What waits for a person is given up after an hour, and told; nothing is done later on an old alarm."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.tick(3590.0)
    assert story.incidents[0].state == "held"
    story.tick(20.0)
    assert story.incidents[0].state == "stopped"
    assert story.incidents[0].why.startswith("nobody answered: needs approval")
    story.command("approve", action="i0001.2")
    assert story.sent() == []


def test_the_reason_shown_is_the_reason_that_holds() -> None:
    """When one reason to wait ends and another begins, the incident says the new one."""
    story = healthy_run(approvals=True)
    story.command("pause")
    story.applied(21)
    assert story.incident.why == "paused by a person"
    story.command("resume")
    assert story.incident.why.startswith("needs approval")
