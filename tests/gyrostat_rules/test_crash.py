"""A process that died: begun anew from what is certified, once it is known that nothing graver explains its end."""

import pytest
from run_story import NAN, Story, healthy_run, states_of

from gyrostat.wire import Exit
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Died

LAST_WORDS = 2.0  # seconds


def dead(**how: object) -> Story:
    """A healthy run under a supervisor, whose trainer was killed at step 20."""
    story = healthy_run(**how).supervisor()
    story.died(-9)
    return story


def test_it_is_restarted_once_its_last_words_would_have_come() -> None:
    """From the newest certified checkpoint, two seconds after its end; and proved by the steps after."""
    story = dead()
    story.tick(LAST_WORDS - 0.5)
    assert story.sent() == [] and story.action.reason == "what it told last may still come"
    story.tick(0.5)
    assert story.sent() == ["restart"] and story.action.arguments["step"] == 15
    story.restarted("life-b")
    story.steps(16, 40)
    assert story.incident.state == "resolved" and story.sent() == ["restart"]


def test_its_supervisor_is_not_let_go_while_it_waits() -> None:
    """Whoever is to begin it anew must still be there in two seconds."""
    story = dead()
    assert not story.told(EntryKind.RUN, "released")
    story.tick(LAST_WORDS)
    assert not story.told(EntryKind.RUN, "released") and story.sent() == ["restart"]


def test_a_last_word_that_names_the_cause_leads() -> None:
    """The NaN that killed it was read after the news of its end: that incident mends it, and the death is only told."""
    story = dead()
    story.skipped(21)
    story.tick(LAST_WORDS)
    assert [(i.kind, [a.remedy for a in i.actions if a.number]) for i in story.incidents] == [
        ("crash", []), ("nonfinite", ["restart"])
    ]  # fmt: skip
    story.restarted("life-b")
    story.steps(16, 60)
    assert [i.state for i in story.incidents] == ["resolved", "resolved"]
    assert story.sent() == ["restart"] and not story.told(EntryKind.ACTION, "paged")


def test_what_dies_again_at_once_is_a_person_s() -> None:
    """A restart that did not hold is not repeated in its incident: it pages, and the exit is passed on."""
    story = dead()
    story.tick(LAST_WORDS)
    story.restarted("life-b")
    story.steps(16, 18)
    story.died(-9)
    story.tick(LAST_WORDS)
    assert story.sent() == ["restart"]
    assert len(story.told(EntryKind.ACTION, "paged")) == 1
    assert story.told(EntryKind.RUN, "released")


def test_what_dies_at_one_place_for_ever_is_not_restarted_for_ever() -> None:
    """Each time it gets past its proof and dies at the same step: after some incidents nothing more is begun."""
    story = dead()
    for life in range(8):
        story.tick(LAST_WORDS)
        if len(story.sent()) == life:
            break
        story.restarted(f"life-{life}")
        story.steps(16, 40)
        story.died(-9)
    assert 1 <= len(story.sent()) <= 3
    assert story.incidents[-1].state in ("stopped", "held")


def test_what_somebody_else_began_anew_is_left_alone() -> None:
    """The job above was quicker: nothing is sent, nobody is woken, and it is over when it is quiet."""
    story = dead(approvals=True)
    story.tick(LAST_WORDS)
    assert story.incident.state == "held" and "needs approval" in story.action.reason
    story.begin(life="life-b").steps(21, 30)
    story.command("approve", action=story.action.id, by="ada")
    assert "not done" in story.told(EntryKind.COMMAND)[-1].text and story.sent() == []
    story.steps(31, 60)
    assert story.incident.state == "resolved" and not story.told(EntryKind.ACTION, "paged")


def test_an_end_and_a_beginning_in_one_breath() -> None:
    """A launcher that restarts its worker by itself: told, and nothing else."""
    story = healthy_run().supervisor()
    story.life = "life-b"
    story.batch(Died("super-a", Exit("trainer", 0, 7, -9, False)), story.hello())
    story.tick(LAST_WORDS)
    assert story.sent() == [] and not story.told(EntryKind.ACTION, "paged")


def test_a_rollout_engine_that_died_is_paged() -> None:
    """Its trainer lives: restarting that would lose steps for nothing."""
    story = healthy_run().supervisor()
    story.batch(Died("super-a", Exit("rollout", 0, 8, -9, False)))
    story.tick(LAST_WORDS)
    assert story.sent() == []


def test_without_a_certified_checkpoint_nothing_is_restarted() -> None:
    """It would begin from nothing, or from what nobody has looked at."""
    story = Story().begin().supervisor().steps(1, 20)
    story.died(-9)
    story.tick(LAST_WORDS)
    assert story.sent() == [] and "no certified checkpoint" in story.incident.actions[0].reason
    assert story.told(EntryKind.ACTION, "paged")


@pytest.mark.parametrize("asked", [True, False], ids=["asked", "status 0"])
def test_an_end_in_order_is_none(asked: bool) -> None:
    """Preempted by a signal that went through the supervisor, or done."""
    story = healthy_run().supervisor()
    story.died(-15 if asked else 0, asked=asked)
    story.tick(LAST_WORDS)
    assert story.incidents == [] and states_of(story.told(EntryKind.ALERT)) == []


def test_in_shadow_it_says_what_it_would_do() -> None:
    """And does nothing."""
    story = dead(act=False)
    story.tick(LAST_WORDS)
    assert story.sent() == [] and story.action.remedy == "restart" and "mode is shadow" in story.action.reason


def test_numbers_that_were_not_finite_before_the_end_lead_at_once() -> None:
    """Known in the moment of its end: one incident."""
    story = healthy_run().supervisor()
    story.step(21, loss=NAN, step_applied=1.0)
    story.died(-9)
    story.tick(LAST_WORDS)
    assert {i.kind for i in story.incidents} == {"nonfinite"}


LOGGED = """
pack: logged
groups:
  - name: g
    rules:
      - alert: SaidSo
        detector: level
        with: {series: [mood], below: 0.5, needed: 1, of: 1}
        severity: critical
        incident: crash
playbooks:
  - {incident: crash, rungs: [{remedy: restart, horizon: 5, irreversible: true}, {remedy: page}]}
"""


def test_a_crash_that_no_end_was_seen_of_is_paged() -> None:
    """A rule of somebody's own, over what is told: whether anything lives again nobody can say."""
    story = healthy_run(pack=LOGGED).supervisor()
    story.step(21, mood=0.1)
    story.tick(LAST_WORDS)
    assert story.sent() == [] and story.told(EntryKind.ACTION, "paged") and story.incident.state == "held"


def test_a_clock_that_is_set_back_does_not_hold_it_for_hours() -> None:
    """Two seconds are waited for, and not until the old time comes again."""
    story = dead()
    story.at -= 5000.0
    story.tick(1.0)
    assert story.sent() == ["restart"]
