"""Alerts: when they fire, when they clear, what mutes them, and that whoever heard one fire hears it end."""

import pytest
from run_story import CORE, NAN, Story, healthy_run, replay

from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Pack, SourceWord

SLOW = """\
pack: slow
groups:
  - name: g
    rules:
      - alert: NonFiniteValue
        detector: nonfinite
        with: {classes: [poison]}
        severity: warning
        %s
"""


def test_for_waits_so_many_steps() -> None:
    """An alert with `for` is pending until it has been breached that long, and then fires."""
    story = Story(pack=SLOW % "for: 2 steps").begin().steps(1, 3)
    story.skipped(4)
    story.skipped(5)
    assert story.alerts["NonFiniteValue/0"].state == "pending"
    story.skipped(6)
    assert story.alerts["NonFiniteValue/0"].state == "firing"


def test_pending_is_let_go_by_one_good_step() -> None:
    """What was pending and is well again never fired, so nobody is told that it resolved."""
    story = Story(pack=SLOW % "for: 2 steps").begin().steps(1, 3)
    story.skipped(4)
    story.step(5)
    story.skipped(6)
    assert story.alerts["NonFiniteValue/0"].since_step == 6
    assert not story.told(EntryKind.ALERT, "resolved")


def test_keep_firing_for_holds_on_over_a_gap() -> None:
    """An alert that flickers fires once, and ends once it has been quiet long enough."""
    story = Story(pack=SLOW % "keep_firing_for: 3 steps").begin().steps(1, 3)
    story.skipped(4)
    story.steps(5, 7)
    assert "NonFiniteValue/0" in story.alerts
    story.step(8)
    assert "NonFiniteValue/0" not in story.alerts
    assert [e.state for e in story.told(EntryKind.ALERT)] == ["firing", "resolved"]


def test_only_a_newer_record_of_the_same_process_clears() -> None:
    """Time, another rank's health and a message say nothing about this rank's NaN."""
    story = Story(world=2).begin().steps(1, 3)
    story.step(4, ranks=[1])
    story.batch(story.record(4, 0, loss=NAN, step_applied=0.0))
    for _ in range(3):
        story.tick(60.0)
    story.batch(story.record(5, 1))
    story.tick(10.0)
    assert "NonFiniteValue/0" in story.alerts
    story.batch(story.record(5, 0))
    story.tick(10.0)
    assert "NonFiniteValue/0" not in story.alerts


def test_consequences_are_muted_until_the_incident_is_over() -> None:
    """The warning is not news while its incident is open, and a death in its course neither."""
    story = healthy_run().supervisor()
    story.applied(21)
    assert story.alerts["NonFiniteValue/0"].muted_by
    story.ack(step=22)
    story.died()
    assert story.alerts["TrainerDied/0"].muted_by
    assert [i.kind for i in story.incidents] == ["nonfinite"]


def test_a_death_is_news_again_once_the_incident_is_over() -> None:
    """A trainer that stays dead after everything was tried is an incident of its own: somebody must hear of it."""
    story = healthy_run()
    story.applied(21)
    story.ack(step=22)
    story.died()
    story.tick()
    assert [(i.kind, i.state) for i in story.incidents] == [("nonfinite", "stopped"), ("crash", "held")]
    assert story.told(EntryKind.ACTION, "paged")


def test_silence_alarms_after_seconds_and_clears_with_a_record() -> None:
    """A trainer that says nothing for two minutes stalls, whatever its step count; one record ends it."""
    story = healthy_run()
    story.tick(899.0)
    assert not story.alerts
    story.tick(2.0)
    assert story.incident.kind == "stall"
    story.step(21)
    assert not story.alerts


def test_slow_steps_are_no_stall() -> None:
    """A run whose steps take two minutes is given twenty."""
    story = Story().begin()
    for step in range(1, 10):
        story.at += 119.0
        story.step(step)
    story.tick(1190.0)
    assert not story.alerts
    story.tick(20.0)
    assert "TrainerStalled/0" in story.alerts


@pytest.mark.parametrize("word", [SourceWord.GONE, SourceWord.FOREIGN])
def test_a_blind_source_is_no_stall(word: str) -> None:
    """Where the agent cannot see, silence means nothing."""
    story = healthy_run()
    story.source(word)
    story.tick(1000.0)
    assert not story.alerts
    story.source(SourceWord.FRESH)
    story.tick()
    assert "TrainerStalled/0" in story.alerts


@pytest.mark.parametrize("before", ["no record", "bye", "died"])
def test_who_cannot_speak_does_not_stall(before: str) -> None:
    """A trainer that is still starting, or has ended, is not silent."""
    story = Story().begin() if before == "no record" else healthy_run()
    if before == "bye":
        story.bye()
    if before == "died":
        story.died()
    story.tick(3600.0)
    assert not any(a.rule == "TrainerStalled" for a in story.engine.state.alerts.values())


def test_a_stall_that_lasts_is_told_once_and_a_replay_tells_the_same() -> None:
    """Ticks that change nothing are not journaled; what they saw must not leak into what is told later."""
    story = healthy_run()
    journal = list(story.inputs)
    for seconds in (910.0, 50.0, 50.0, 50.0):
        story.tick(seconds)
        if story.engine.changed:
            journal.append(story.inputs[-1])
    story.step(21)
    journal.append(story.inputs[-1])
    _, entries = replay(journal)
    assert entries == story.entries
    assert len([e for e in entries if e.subject.startswith("TrainerStalled")]) == 2


@pytest.mark.parametrize(
    ("status", "asked", "fires"),
    [
        pytest.param(1, False, True, id="failed"),
        pytest.param(-9, False, True, id="killed"),
        pytest.param(0, False, False, id="done"),
        pytest.param(-15, True, False, id="asked"),
    ],
)
def test_only_an_unasked_failure_is_a_death(status: int, asked: bool, fires: bool) -> None:
    """A process that was told to end, or ended well, did not die."""
    story = healthy_run().supervisor()
    story.died(status, asked=asked)
    assert ("TrainerDied/0" in story.alerts) is fires
    story.begin(life="life-b")
    assert "TrainerDied/0" not in story.alerts


@pytest.mark.parametrize("way", ["rollback", "new life", "step again", "bye"])
def test_whoever_heard_it_fire_hears_it_end(way: str) -> None:
    """A step that is undone takes its alert along, and says so: an Alertmanager outside must not page for ever."""
    story = healthy_run(act=way == "rollback")
    story.applied(21)
    if way == "rollback":
        story.ack(step=22)
    elif way == "new life":
        story.begin(life="life-b")
    elif way == "step again":
        story.step(16)
    else:
        story.bye()
    fired = {e.subject for e in story.told(EntryKind.ALERT, "firing")}
    assert fired == {e.subject for e in story.told(EntryKind.ALERT, "resolved")}
    assert not story.alerts


def test_an_alert_whose_rule_is_gone_does_not_stay() -> None:
    """Rules loaded anew without a rule that fires: nobody would ever clear it, so it ends there."""
    story = healthy_run(act=False)
    story.skipped(21)
    story.feed(Pack(story.at, "other", SLOW.replace("NonFiniteValue", "Another") % "for: 2 steps"))
    assert "NonFiniteValue/0" not in story.alerts
    assert story.told(EntryKind.ALERT, "resolved")
    story.feed(Pack(story.at, "digest", CORE))
    story.step(22)
    assert not story.alerts


def test_a_rank_that_goes_back_leaves_no_alert_behind() -> None:
    """A rank's NaN of an undone step must not fire until the run has come that far again."""
    story = healthy_run(world=2)
    story.batch(story.record(21, 0, loss=NAN))
    story.ack(step=22, ranks=[0])
    story.segment = 0
    story.batch(story.record(21, 1, loss=NAN))  # this rank's file is read later
    story.ack(step=22, ranks=[1], result="applied")
    story.segment = 1
    assert story.incident.state == "probation"
    for step in range(16, 40):
        story.step(step)
    assert not story.alerts
    assert story.incident.state == "resolved"
    assert story.sent() == ["rollback"]


def test_a_pause_that_the_run_has_made_before_is_no_stall() -> None:
    """An evaluation of twenty minutes now and then wakes nobody the second time."""
    story = healthy_run()
    story.at += 1200.0
    story.step(21)
    story.tick(2300.0)
    assert not story.alerts
    story.tick(200.0)
    assert "TrainerStalled/0" in story.alerts
