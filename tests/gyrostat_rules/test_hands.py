"""Hands: what a person turns in the midst of an incident is theirs; what came before it, and schedules, are not."""

import math
from collections.abc import Callable

import pytest
from run_story import Story, healthy_run, replay

from gyrostat.wire import KnobChange, KnobState
from gyrostat_rules.entries import Entry, EntryKind

PACK = """
pack: hands
groups:
  - name: one
    rules:
      - alert: MoodLow
        detector: level
        with: {series: [mood], below: 0.5, needed: 1, of: 1}
        severity: critical
        incident: entropy
playbooks:
  - incident: entropy
    cooldown: 0
    rungs:
      - {remedy: turn, settle: 5, horizon: 3, knobs: [{name: push, to: 0.4}, {name: pull, times: 2}]}
      - {remedy: turn, settle: 5, horizon: 3, knobs: [{name: push, to: 0.8}]}
"""
PUSH = KnobState("push", 0.1, 0.0, 1.0, None)
PULL = KnobState("pull", 0.2, 0.0, 1.0, 2.0)


def told(story: Story, step: int, mood: float, push: float = 0.1, **values: float) -> Story:
    """A step, with its knob told."""
    story.step(step, mood=mood, push=push, **values)
    return story


def low(step: int = 6, **how: object) -> Story:
    """A run whose mood is low at ``step``; its knobs are told, and announced."""
    story = Story(pack=PACK, **how).begin(knobs=(PUSH, PULL))  # type: ignore[arg-type]
    for before in range(1, step):
        told(story, before, 1.0)
    return told(story, step, 0.1)


def waiting() -> Story:
    """The same, where nothing is done yet: a person has paused."""
    story = Story(pack=PACK).begin(knobs=(PUSH, PULL))
    story.command("pause")
    for step in range(1, 6):
        told(story, step, 1.0)
    return told(story, 6, 0.1)


def announce(story: Story, **values: float) -> None:
    """The trainer says its knobs again."""
    story.batch(story.hello(last=0, knobs=(PUSH._replace(value=values.get("push", 0.1)), PULL)))


def by_records(story: Story, value: float) -> None:
    """A hand turns ``push``: the records of two steps show it."""
    told(told(story, 7, 0.1, value), 8, 0.1, value)


def by_hello(story: Story, value: float) -> None:
    """A hand turns ``push``, and the trainer announces it."""
    told(story, 7, 0.1)
    announce(story, push=value)
    told(story, 8, 0.1, value)


BOTH = pytest.mark.parametrize("turn", [by_records, by_hello])
Turn = Callable[[Story, float], None]


def turned(story: Story) -> list[Entry]:
    """What was written down of hands."""
    return story.told(EntryKind.RUN, "turned")


# -- a planned action --------------------------------------------------------------------------------------


def obeyed(story: Story, step: int, *, hello: bool = True) -> None:
    """The trainer sets both knobs to 0.4, announces them, as the SDK does, and answers."""
    if hello:
        story.batch(story.hello(last=1, knobs=(PUSH._replace(value=0.4), PULL._replace(value=0.4))))
    story.ack(step=step)


@BOTH
def test_a_planned_action_on_it_waits_and_says_why(turn: Turn) -> None:
    """The hold names the knob, the step and the word that lets the agent turn it all the same."""
    story = waiting()
    turn(story, 0.3)
    story.command("resume")
    assert story.sent() == []
    step = 7  # the record that first shows it, or the one before it was announced
    assert story.incident.why == (
        f"push was turned by hand at step {step}, mid-incident: it is theirs; gyrostat approve {story.action.id} lets "
        "the agent turn it"
    )
    assert [e.data["knob"] for e in turned(story)] == ["push"]


@BOTH
def test_an_approval_lets_it_be_turned_from_where_it_is(turn: Turn) -> None:
    """The directive expects what the hand has set; afterwards the knob goes back there, not to where it once was."""
    story = waiting()
    turn(story, 0.3)
    story.command("resume")
    story.command("approve", action=story.action.id, by="ada")
    assert story.action.knobs == [KnobChange("push", 0.3, 0.4), KnobChange("pull", 0.2, 0.4)]
    assert story.sent() == ["turn"]
    obeyed(story, 9)
    for step in range(9, 25):
        told(story, step, 1.0, 0.4)
    assert story.action.remedy == "undo"
    assert [(c.name, c.value) for c in story.action.knobs] == [("push", 0.3), ("pull", 0.2)]


def test_the_approval_is_for_that_action_alone() -> None:
    """The next rung on the same knob asks anew."""
    story = waiting()
    by_records(story, 0.3)
    story.command("resume")
    first = story.action.id
    story.command("approve", action=first, by="ada")
    story.ack("failed", step=9, reason="no")
    told(story, 9, 0.1, 0.3)
    assert story.action.id != first and "push was turned by hand" in story.incident.why
    assert story.sent() == ["turn"]


def test_a_person_s_deny_ends_it() -> None:
    """Theirs for good."""
    story = waiting()
    by_records(story, 0.3)
    story.command("resume")
    story.command("deny", action=story.action.id, by="ada")
    assert (story.incident.state, story.sent()) == ("stopped", [])


# -- what is taken back ------------------------------------------------------------------------------------


def second_hand(story: Story) -> None:
    """After the agent has turned push to 0.4 and pull to 0.4, a person sets push to 0.6."""
    obeyed(story, 7)
    told(told(told(story, 7, 0.1, 0.4), 8, 0.1, 0.6), 9, 0.1, 0.6)


@pytest.mark.parametrize(("mood", "then"), [(1.0, "resolved"), (0.1, "open")], ids=["mended", "did not hold"])
def test_what_is_taken_back_leaves_it_where_it_was_put(mood: float, then: str) -> None:
    """The other knobs of the same action go back; this one stays, and so says the history."""
    story = low()
    second_hand(story)
    for step in range(10, 30):
        if story.action.remedy != "undo":
            told(story, step, mood, 0.6)
    assert [(c.name, c.value) for c in story.action.knobs] == [("pull", 0.2)]
    assert story.action.then == then
    assert "push was turned by hand from 0.4 to 0.6 at step 8, while i0001 is open" in turned(story)[0].text


def test_put_back_by_hand_it_is_theirs_too() -> None:
    """A person who takes the agent's turn back has decided: it is not turned again without their word."""
    story = low()
    obeyed(story, 7)
    story.batch(story.hello(last=1, knobs=(PUSH, PULL._replace(value=0.4))))
    assert [e.data["value"] for e in turned(story)] == [0.1]
    step = 8
    while story.incident.state != "held":
        told(story, step, 0.1)
        if story.incident.state == "acting":
            story.ack(step=step)
        step += 1
    assert story.sent() == ["turn", "undo"] and "push was turned by hand at step 6" in story.incident.why


def test_where_nothing_is_left_to_take_back_nothing_is_sent() -> None:
    """A rung of that one knob: the incident is over, and the knob is the person's."""
    pack = PACK.replace(", {name: pull, times: 2}", "")
    story = Story(pack=pack).begin(knobs=(PUSH, PULL))
    for step in range(1, 6):
        told(story, step, 1.0)
    told(story, 6, 0.1)
    second_hand(story)
    for step in range(10, 25):
        told(story, step, 1.0, 0.6)
    assert (story.incident.state, story.sent()) == ("resolved", ["turn"])


def test_turned_while_the_answer_was_on_its_way() -> None:
    """Between the directive's being obeyed and its answer's being read: it is left where it is all the same."""
    story = low()
    told(story, 7, 0.1, 0.4)
    story.batch(story.hello(last=1, knobs=(PUSH._replace(value=0.4), PULL._replace(value=0.4))))
    story.batch(story.hello(last=1, knobs=(PUSH._replace(value=0.6), PULL._replace(value=0.4))))
    story.ack(step=7)
    assert [c.name for c in story.action.restores] == ["pull"]


# -- what is no hand -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hello", [True, False], ids=["announced", "told alone"])
def test_the_agent_s_own_turns_are_no_hand(hello: bool) -> None:
    """Its directive, its answer, its undo, and the Hellos that show them, late ones too."""
    story = low()
    obeyed(story, 7, hello=hello)
    step = 7
    while story.action.remedy != "undo":
        told(story, step, 1.0, 0.4)
        step += 1
    story.batch(story.hello(last=1, knobs=(PUSH._replace(value=0.4), PULL._replace(value=0.4))))
    told(story, step, 1.0, 0.1)
    if hello:
        story.batch(story.hello(last=2, knobs=(PUSH, PULL)))
    story.ack(step=step)
    assert (story.incident.state, turned(story)) == ("resolved", [])


def test_rounding_is_no_hand() -> None:
    """A trainer that keeps its knobs as float32 reads back what we set, and a little more."""
    story = low()
    story.batch(story.hello(last=1, knobs=(PUSH._replace(value=0.4000000059604645), PULL._replace(value=0.4))))
    story.ack(step=7)
    for step in (7, 8, 9):
        told(story, step, 0.1, 0.4000000059604645)
    assert not turned(story)
    assert [c.name for c in story.incident.actions[0].restores] == ["push", "pull"]


def test_a_change_just_before_the_incident_is_put_back() -> None:
    """It may be the cause: the rule for that goes on as ever."""
    story = healthy_run(last=0)
    eps = KnobState("eps", 1e-4, 0.0, 1.0, None)
    story.begin(knobs=(eps,))
    for step in range(1, 21):
        story.step(step, eps=1e-4)
    story.skipped(21, eps=0.0)
    assert (story.incident.kind, story.action.remedy, story.sent()) == ("knobs", "put_back", ["put_back"])
    story.ack(step=22)
    assert not turned(story)


def test_what_broke_the_run_is_put_back_though_another_incident_was_open() -> None:
    """Whoever slips while they look into one thing is helped out of the other: that hand is no decision about it."""
    pack = f"""{PACK.partition("playbooks:")[0]}
      - {{alert: Drift, detector: knob_drift, severity: warning, joins: knobs}}
      - {{alert: LossGone, detector: nonfinite, severity: critical, incident: nonfinite}}
playbooks:
  - {{incident: knobs, rungs: [{{remedy: put_back, horizon: 5}}]}}
  - {{incident: entropy, rungs: [{{remedy: page}}]}}
  - {{incident: nonfinite, rungs: [{{remedy: page}}]}}
"""
    story = Story(pack=pack).begin(knobs=(PUSH, PULL))
    for step in range(1, 6):
        told(story, step, 1.0)
    for step in range(6, 18):
        told(story, step, 0.1)
    told(story, 18, 0.1, 0.9)
    told(story, 19, 0.1, 0.9, loss=math.nan, step_applied=0.0)
    assert [i.kind for i in story.incidents] == ["entropy", "knobs"]
    assert len(turned(story)) == 1 and story.action.knobs == [KnobChange("push", 0.9, 0.1)]
    assert story.sent() == ["put_back"]


def decay(step: int) -> float:
    return 0.1 * 0.9 ** (step - 1)


def stairs(step: int) -> float:
    return 0.1 * 0.5 ** (step // 5)


def starts_late(step: int) -> float:
    return 0.1 if step < 32 else 0.1 * 0.9 ** (step - 31)


@pytest.mark.parametrize("schedule", [decay, stairs, starts_late])
@pytest.mark.parametrize("hello", [False, True], ids=["records", "announced too"])
def test_a_schedule_of_the_trainer_s_is_no_hand(schedule: Callable[[int], float], hello: bool) -> None:
    """A knob that moves by itself, before the incident and in it, is nobody's."""
    story = Story(pack=PACK).begin(knobs=(PUSH, PULL))
    story.command("pause")
    for step in range(1, 45):
        if hello and schedule is not starts_late:
            announce(story, push=schedule(step))
        told(story, step, 1.0 if step < 30 else 0.1, schedule(step))
    assert story.incident.open and not turned(story)


@pytest.mark.parametrize("name", ["lr", "learning_rate"])
@pytest.mark.parametrize(("after", "hand"), [(1.0, False), (20.0, True)], ids=["falls as scheduled", "leaps"])
def test_a_rate_is_somebody_s_only_where_it_leaps(name: str, after: float, hand: bool) -> None:
    """Rates fall and rise by schedules: in steps, too."""
    rate = KnobState(name, 1.0, 0.0, 100.0, None)
    story = Story(pack=PACK).begin(knobs=(rate, PUSH))
    story.command("pause")
    for step in range(1, 30):
        value = 1.0 if step < 24 else 0.5 * after
        story.step(step, mood=1.0 if step < 20 else 0.1, **{name: value})
    assert [e.data["knob"] for e in turned(story)] == ([name] if hand else [])


def test_what_gathered_before_is_not_dated_into_the_incident() -> None:
    """A knob that is told nowhere is shown when the trainer answers us: nobody knows since when it reads so."""
    story = Story(pack=PACK).begin(knobs=(PUSH, PULL, KnobState("deep", 1.0, 0.0, 9.0)))
    for step in range(1, 6):
        told(story, step, 1.0)
    told(story, 6, 0.1)
    after = (PUSH._replace(value=0.4), PULL._replace(value=0.4), KnobState("deep", 2.0, 0.0, 9.0))
    story.batch(story.hello(last=1, knobs=after))
    assert not turned(story)
    story.ack(step=7)
    told(story, 7, 0.1, 0.4)
    story.batch(story.hello(last=1, knobs=(*after[:2], KnobState("deep", 3.0, 0.0, 9.0))))
    assert [e.data["knob"] for e in turned(story)] == ["deep"]


def test_going_back_is_no_hand() -> None:
    """A rollback puts the checkpoint's knobs back, and takes a hand with it that was laid on after it."""
    story = Story(approvals=True).begin().checkpoint(10).checkpoint(15)
    for step in range(1, 21):
        story.step(step, max_grad_norm=2.0)
    story.applied(21, max_grad_norm=2.0)
    for step in (22, 23):
        story.step(step, max_grad_norm=1.0)
    assert [e.data["knob"] for e in turned(story)] == ["max_grad_norm"]
    story.command("approve", action=story.action.id, by="ada")
    story.segment = 1
    story.batch(story.hello(last=1))
    story.segment = 0
    story.ack(step=24)
    story.step(16, max_grad_norm=2.0)
    story.step(17, max_grad_norm=2.0)
    assert len(turned(story)) == 1
    story.step(18, max_grad_norm=0.7)
    story.step(19, max_grad_norm=0.7)
    assert [e.data["value"] for e in turned(story)] == [1.0, 0.7]


@pytest.mark.parametrize("odd", [math.nan, math.inf], ids=str)
def test_a_knob_that_is_no_number_is_no_decision(odd: float) -> None:
    """A NaN in a knob's series is poison, and told as that."""
    story = waiting()
    by_records(story, odd)
    assert not turned(story)


def test_a_new_life_is_a_new_beginning() -> None:
    """Whoever starts the run anew with other knobs has said so by that; what they had turned before counts no more."""
    story = waiting()
    by_records(story, 0.3)
    story.begin(life="life-b", knobs=(PUSH, PULL))
    story.command("resume")
    told(story, 9, 0.1)
    assert story.sent() == ["turn"] and len(turned(story)) == 1


def test_when_the_incident_is_over_the_knob_is_free() -> None:
    """The next incident may turn it, from where the person left it."""
    story = waiting()
    by_hello(story, 0.3)
    for step in range(9, 32):
        told(story, step, 1.0, 0.3)
    assert story.incidents[0].state == "resolved"
    story.command("resume")
    told(story, 32, 0.1, 0.3)
    assert story.action.knobs[0] == KnobChange("push", 0.3, 0.4) and story.sent() == ["turn"]


def test_turned_twice_is_told_twice() -> None:
    """The newest value is the one that is left alone."""
    story = waiting()
    for place, value in enumerate((0.3, 0.5, 0.6, 0.7)):
        for step in (7 + 2 * place, 8 + 2 * place):
            told(story, step, 0.1, value)
    assert [e.data["value"] for e in turned(story)] == [0.3, 0.5, 0.6, 0.7]


def test_a_replay_is_the_same() -> None:
    """Hands are in the snapshot, and found again from the same inputs."""
    story = waiting()
    by_records(story, 0.3)
    story.command("resume")
    engine, entries = replay(story.inputs)
    assert entries == story.entries and engine.snapshot() == story.engine.snapshot()
