"""Every turned knob is an experiment: found inert, harmful or misread, it makes way for the next rung, soon."""

import math
from collections.abc import Iterable

import pytest
from run_story import NAN, Story

from gyrostat.wire import KnobChange, KnobState
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import EntryKind

PACK = """
pack: experiments
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
      - {remedy: turn, settle: 20, horizon: 4, knobs: [KNOBS]LOOK}
      - {remedy: turn, settle: 20, horizon: 4, knobs: [{name: pull, times: 2}]}
      - {remedy: page}
"""
PUSH = KnobState("push", 0.1, 0.0, 1.0, None)
PULL = KnobState("pull", 0.2, 0.0, 1.0, 2.0)
LAST = KnobState("last", 0.5, 0.0, 1.0, None)
EFFECT = ", effects: [{series: flow, above: 0, within: 3}]"
BELOW = ", effects: [{series: flow, below: 1, within: 3}]"
BOTH = ", effects: [{series: flow, above: 0, within: 3}, {series: tide, above: 0, within: 5}]"
HARM = ", harm: {series: reward, falls: 0.125, over: 3}"
ONE, TWO = "{name: push, to: 0.4}", "{name: push, to: 0.4, keep: true}, {name: last, to: 0.75}"
APPLIED = 7


def turned(look: str = "", knobs: str = ONE, *, world: int = 1, **values: float) -> Story:
    """A run whose mood is low from step 6 on; ``values`` are told in all of its steps. A knob has been turned."""
    story = Story(pack=PACK.replace("LOOK", look).replace("KNOBS", knobs), world=world).begin(knobs=(PUSH, PULL, LAST))
    for step in range(1, APPLIED):
        story.step(step, mood=1.0 if step < 6 else 0.1, **values)
    assert story.sent() == ["turn"]
    return story


def applied(look: str = "", knobs: str = ONE, *, world: int = 1, **values: float) -> Story:
    """The same, answered; what is told from step 8 on is what the knob has made of it."""
    story = turned(look, knobs, world=world, **values)
    story.ack(step=APPLIED)
    story.step(APPLIED, mood=0.1, **values)
    return story


def tell(story: Story, series: str, values: Iterable[float], *, mood: float = 0.1) -> Story:
    """A step for each value."""
    for value in values:
        story.step(story.engine.state.step + 1, mood=mood, **{series: value})
    return story


def moods(story: Story, count: int, mood: float = 1.0) -> None:
    """So many steps of a mood."""
    tell(story, "mood_told", [1.0] * count, mood=mood)


def is_tried(story: Story) -> bool:
    """True while the first rung has neither held nor failed."""
    return story.incident.state == "probation" and story.sent() == ["turn"]


def why(story: Story) -> str:
    """Why the first rung was given up."""
    return story.told(EntryKind.ACTION, "ineffective")[0].text


# -- inert -----------------------------------------------------------------------------------------------


def test_an_inert_knob_is_found_within_its_steps_and_undone() -> None:
    """Three steps suffice, of the twenty that a working one would have; then the next rung is taken."""
    story = tell(applied(EFFECT, flow=0.0), "flow", [0.0, 0.0])
    assert is_tried(story)
    tell(story, "flow", [0.0])
    assert (story.action.remedy, story.action.knobs[0][:3]) == ("undo", ("push", 0.4, 0.1))
    assert "inert: flow was never above 0 in 3 steps" in why(story)
    story.ack()
    assert (story.sent(), story.action.knobs) == (["turn", "undo", "turn"], [KnobChange("pull", 0.2, 0.4)])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_effect_that_was_seen_once_suffices(place: int) -> None:
    """A control that touches the limit and lets go again has worked: the knob keeps its steps to settle."""
    seen = [0.0] * 3
    seen[place] = 0.01
    story = tell(applied(EFFECT, flow=0.0), "flow", [*seen, *[0.0] * 10])
    assert is_tried(story)
    moods(story, 11)
    story.ack()
    assert (story.incident.state, story.sent()) == ("resolved", ["turn", "undo"])


@pytest.mark.parametrize(("values", "found"), [([1.0] * 3, True), ([1.0, 0.9, 1.0], False)], ids=["at it", "below"])
def test_an_effect_may_be_one_that_falls(values: list[float], found: bool) -> None:
    """Below a limit is told as that; a value at the limit is not beyond it."""
    story = tell(applied(BELOW, flow=2.0), "flow", values)
    assert is_tried(story) is not found
    assert not found or "inert: flow was never below 1 in 3 steps" in why(story)


@pytest.mark.parametrize(
    ("flow", "tide", "after"), [(0.0, 0.1, 3), (0.1, 0.0, 5), (0.1, 0.1, 0)], ids=["first", "second", "neither"]
)
def test_each_part_must_show_its_effect(flow: float, tide: float, after: int) -> None:
    """Of two knobs the one that does nothing is found, each in its own steps; the other does not speak for it."""
    story = applied(BOTH)
    while is_tried(story) and story.engine.state.step < 20:
        story.step(story.engine.state.step + 1, mood=0.1, flow=flow, tide=tide)
    assert story.engine.state.step == (APPLIED + after if after else 20)
    assert not after or f"inert: {'tide' if flow else 'flow'} was never above 0 in {after} steps" in why(story)


def test_what_was_seen_before_the_knob_was_turned_is_not_its_effect() -> None:
    """A series that moved before, and stands still since, is an inert knob's."""
    assert "inert" in why(tell(applied(EFFECT, flow=5.0), "flow", [0.0] * 3))


@pytest.mark.parametrize("value", [None, NAN, math.inf], ids=["not told", "NaN", "infinite"])
def test_what_is_not_told_proves_nothing(value: float | None) -> None:
    """A trainer that lacks the series, or tells no number, is not called one that ignores its knobs."""
    story = applied(EFFECT)
    tell(story, "other" if value is None else "flow", [1.0 if value is None else value] * 12)
    assert is_tried(story)


def test_a_nan_among_numbers_hides_no_inert_knob() -> None:
    """What there is of numbers is judged, under whatever name it is told."""
    assert "in 3 steps" in why(tell(applied(EFFECT), "actor/flow", [0.0, NAN, 0.0, 0.0]))


def test_where_nothing_is_called_for_nothing_proves_a_knob_inert() -> None:
    """A control that is at rest because entropy is above the trainer's own floor works; below it, it must move."""
    called_for = EFFECT.replace("above: 0", "above: 0, when: [mean, least]")
    assert called_for != EFFECT
    story = applied(called_for)
    for step in range(APPLIED + 1, APPLIED + 5):
        story.step(step, mood=0.1, flow=0.0, mean=0.5, least=0.3)
    assert is_tried(story)
    for step in range(APPLIED + 5, APPLIED + 8):
        story.step(step, mood=0.1, flow=0.0, mean=0.2, least=0.3)
    assert story.action.remedy == "undo"


WHEN_LOW = ", effects: [{series: flow, above: 0, within: 3, when: [average, floor]}]"


def found_inert_late() -> Story:
    """Quiet for longer than an incident stays open without a reason; then the knob was called for and did nothing."""
    story = applied(WHEN_LOW, flow=0.0, average=1.0, floor=0.5)
    for average, count in ((1.0, 19), (0.1, 4)):
        for _ in range(count):
            story.step(story.engine.state.step + 1, mood=1.0, flow=0.0, average=average, floor=0.5)
    assert story.sent() == ["turn", "undo"]
    story.ack()
    return story


def test_quiet_under_a_remedy_that_was_taken_back_proves_nothing() -> None:
    """The incident is not called over, and the next rung comes with the first bad step, in the same incident."""
    story = found_inert_late()
    assert (story.incident.state, story.sent()) == ("open", ["turn", "undo"])
    moods(story, 2)
    assert (story.incident.state, story.sent()) == ("open", ["turn", "undo"])
    moods(story, 1, mood=0.1)
    assert (story.sent(), len(story.engine.state.incidents)) == (["turn", "undo", "turn"], 1)


def test_after_an_undo_it_is_over_by_itself_when_nothing_comes_back() -> None:
    """Twenty quiet steps from the undo on close it, and nothing more is tried."""
    story = found_inert_late()
    moods(story, 19)
    assert story.incident.state == "open"
    moods(story, 3)
    assert (story.incident.state, story.sent()) == ("resolved", ["turn", "undo"])


def test_a_knob_that_was_never_turned_is_not_called_inert() -> None:
    """The trainer was replaced before it answered: what is told since is no word on the knob, and the run is well."""
    story = turned(EFFECT, flow=0.0)
    story.begin(life="life-b", knobs=(PUSH, PULL, LAST))
    tell(story, "flow", [0.0] * 30, mood=1.0)
    assert (story.incident.state, story.sent()) == ("resolved", ["turn"])


# -- misread ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("found", [0.1, 0.3, NAN], ids=["as it was", "clamped", "NaN"])
def test_an_answer_that_reads_another_value_is_no_turn(found: float) -> None:
    """Acknowledged and not done: given up at once, not a step lost."""
    story = turned()
    story.ack(step=APPLIED, values={"push": found, "pull": 0.2})
    assert f"acknowledged, and push reads {found:g} instead of 0.4" in why(story)


def test_what_was_not_moved_is_not_undone() -> None:
    """The knob is where it was: the next rung follows in the same moment."""
    story = turned()
    story.ack(step=APPLIED, values={"push": 0.1})
    assert (story.sent(), story.action.knobs) == (["turn", "turn"], [KnobChange("pull", 0.2, 0.4)])


@pytest.mark.parametrize("values", [{"push": 0.4000000059604645}, {}, {"pull": 0.7}], ids=["float32", "none", "other"])
def test_what_reads_as_asked_is_tried(values: dict[str, float]) -> None:
    """A knob kept as float32, and an answer that does not say what it reads, are no lies."""
    story = turned()
    story.ack(step=APPLIED, values=values)
    assert is_tried(story)


@pytest.mark.parametrize("values", [{"push": 0.1, "last": 0.75}, {"push": 0.3}], ids=["the other", "in part"])
def test_what_a_misread_answer_has_moved_goes_back(values: dict[str, float]) -> None:
    """No change is left behind that nobody would undo: the rung has failed, and half of it was done."""
    story = turned(knobs=TWO if "last" in values else ONE)
    story.ack(step=APPLIED, values=values)
    undone = [(c.name, c.value) for a in story.incident.actions if a.remedy == "undo" for c in a.knobs]
    assert undone == ([("last", 0.5)] if "last" in values else [("push", 0.1)])


@pytest.mark.parametrize("read", [(0.1, 0.4), (0.4, 0.1)], ids=["the first", "the last"])
def test_ranks_that_read_back_different_values_are_stopped(read: tuple[float, float]) -> None:
    """They no longer train alike, whichever has answered last: nothing more is tried, a person is asked."""
    story = turned(world=2)
    for rank, found in enumerate(read):
        story.ack(step=APPLIED, ranks=[rank], values={"push": found})
    assert story.incident.state == "stopped" and "different values" in story.incident.why


def test_an_undo_is_read_back_too() -> None:
    """An incident is not called undone while the knob is where the remedy put it."""
    story = tell(applied(EFFECT), "flow", [0.0] * 3)
    assert story.action.remedy == "undo"
    story.ack(step=APPLIED + 4, values={"push": 0.4})
    assert [e.state for e in story.told(EntryKind.ACTION) if e.subject.endswith(".2")][-1] == "failed"


# -- harmful ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        pytest.param(0.8, 0.65, True, id="more than the share"),
        pytest.param(4.0, 3.75, False, id="less than the share"),
        pytest.param(1.0, 0.875, False, id="the share itself"),
        pytest.param(-1.0, -1.25, True, id="negative, more"),
        pytest.param(-1.0, -1.0625, False, id="negative, less"),
        pytest.param(0.0, 0.0, False, id="nothing to lose"),
        pytest.param(0.0, -0.25, True, id="below nothing"),
    ],
)
def test_harm_is_a_fall_by_more_than_the_share(before: float, after: float, found: bool) -> None:
    """What the run pays for the knob is measured by what it had, whatever its sign."""
    story = tell(applied(HARM, reward=before), "reward", [after] * 3)
    assert is_tried(story) is not found
    if found:
        assert f"harmful: reward fell from {before:.3g} to {after:.3g}, means of 3 steps" in why(story)
        assert story.action.remedy == "undo"
        story.ack()
        assert story.sent() == ["turn", "undo", "turn"]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [([0.8] * 3, 0.1, True), ([0.8] * 2, 0.1, False), ([9.0, 0.8, 0.8, 0.8], 0.75, False)],
    ids=["three", "two", "the last three"],
)  # fmt: skip
def test_the_last_steps_before_are_what_harm_is_measured_by(before: list[float], after: float, found: bool) -> None:
    """Where the reward has only begun to be told, nothing is known to have been lost."""
    story = tell(turned(HARM), "reward", before)
    story.ack(step=story.engine.state.step)
    assert is_tried(tell(story, "reward", [after] * 8)) is not found


@pytest.mark.parametrize(
    ("since", "found"),
    [
        pytest.param([0.1] * 2, False, id="two steps are too few"),
        pytest.param([0.1] * 3, True, id="the third is enough"),
        pytest.param([0.8] * 6 + [0.1], False, id="one bad step"),
        pytest.param([0.8] * 6 + [0.1] * 3, True, id="late"),
        pytest.param([NAN, 0.1, NAN, 0.1], False, id="too few numbers"),
        pytest.param([NAN, 0.1, NAN, 0.1, 0.1], True, id="numbers enough"),
        pytest.param([NAN] * 9, False, id="no numbers"),
    ],
)
def test_the_newest_numbers_are_judged(since: list[float], found: bool) -> None:
    """Harm that comes late is harm, and a NaN is no fall: it has its own alarm."""
    look = HARM.replace("0.125", "0.4")
    assert is_tried(tell(applied(look, reward=0.8), "reward", since)) is not found


# -- keep, of each knob ------------------------------------------------------------------------------------


def test_of_two_knobs_one_stays_and_the_other_goes_back() -> None:
    """When it is over, what should have been there all along is left."""
    story = applied(knobs=TWO)
    moods(story, 24)
    assert (story.action.remedy, [c[:3] for c in story.action.knobs]) == ("undo", [("last", 0.75, 0.5)])
    story.ack()
    assert (story.incident.state, story.sent()) == ("resolved", ["turn", "undo"])


def test_both_go_back_where_it_did_not_hold() -> None:
    """A knob is kept for having helped."""
    story = applied(knobs=TWO)
    moods(story, 21, mood=0.1)
    assert (story.action.remedy, [c.name for c in story.action.knobs]) == ("undo", ["push", "last"])


# -- a restart of the sidecar ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "mood"), [({"flow": 0.0}, 0.1), ({"flow": 1.0, "reward": 0.1}, 0.1), ({"flow": 1.0}, 1.0)],
    ids=["inert", "harmful", "holds"],
)  # fmt: skip
def test_a_sidecar_that_began_anew_decides_the_same(values: dict[str, float], mood: float) -> None:
    """What is looked at in probation is in the snapshot, and so is what is kept."""
    story = applied(EFFECT + HARM, TWO, flow=0.0, reward=0.8)
    second = Engine.restore(story.engine.snapshot())
    assert second.state == story.engine.state
    assert second.state.incidents[0].actions[0].effects and second.state.incidents[0].actions[0].harm
    told, given = len(story.entries), len(story.inputs)
    for _ in range(24):
        story.step(story.engine.state.step + 1, mood=mood, **{"reward": 0.8, **values})
    assert [e for one in story.inputs[given:] for e in second.feed(one)] == story.entries[told:]
    assert story.sent() == ["turn", "undo"]
