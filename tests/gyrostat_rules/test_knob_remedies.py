"""Remedies that turn knobs: they have time to take effect, are turned back where they had none, and ask first."""

from typing import Any

import pytest
from run_story import Story

from gyrostat.wire import ExpertLoad, KnobChange, KnobState
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.packfile import parse

PACK = """
pack: knobs
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
      - {remedy: turn, settle: 5, horizon: 3, knobs: [{name: push, to: 0.4KEEP}]}
      - {remedy: turn, settle: 5, horizon: 3, knobs: [{name: pull, times: 2}]}
      - {remedy: page}
"""
PUSH = KnobState("push", 0.1, 0.0, 1.0, None)
PULL = KnobState("pull", 0.2, 0.0, 1.0, 2.0)


def low_mood(*, keep: bool = False, knobs: tuple[KnobState, ...] = (PUSH, PULL)) -> Story:
    """A run whose mood is low from step 6 on."""
    story = Story(pack=PACK.replace("KEEP", ", keep: true" if keep else "")).begin(knobs=knobs)
    for step in range(1, 6):
        story.step(step, mood=1.0)
    story.step(6, mood=0.1)
    return story


def moods(story: Story, first: int, last: int, mood: float) -> None:
    for step in range(first, last + 1):
        story.step(step, mood=mood)


def test_what_still_fires_while_it_settles_says_nothing() -> None:
    """A mood that comes back within the steps to settle, and stays, is mended; the knob goes back."""
    story = low_mood()
    assert story.action.knobs == [KnobChange("push", 0.1, 0.4)]
    story.ack(step=7)
    moods(story, 7, 11, 0.1)
    assert story.incident.state == "probation"
    moods(story, 12, 15, 1.0)
    assert story.action.remedy == "undo" and story.action.knobs[0][:3] == ("push", 0.4, 0.1)
    story.ack(step=16)
    assert story.incident.state == "resolved"


def test_without_effect_it_is_turned_back_and_the_next_rung_follows() -> None:
    """An inert knob: after the steps to settle it still fires, so it is undone, and another is tried."""
    story = low_mood()
    story.ack(step=7)
    moods(story, 7, 12, 0.1)
    assert [a.outcome for a in story.incident.actions[:1]] == ["ineffective"]
    assert story.action.remedy == "undo"
    story.ack(step=13)
    assert story.action.knobs == [KnobChange("pull", 0.2, 0.4)]
    assert story.sent() == ["turn", "undo", "turn"]


def test_what_is_kept_stays() -> None:
    """A control that should have been on is not switched off again because the incident is over."""
    story = low_mood(keep=True)
    story.ack(step=7)
    moods(story, 7, 8, 0.1)
    moods(story, 9, 16, 1.0)
    assert (story.incident.state, story.sent()) == ("resolved", ["turn"])


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        pytest.param((PULL,), "does not offer push", id="not offered"),
        pytest.param((PUSH._replace(value=0.4), PULL), "are where this would put them", id="there already"),
    ],
)
def test_a_knob_that_cannot_help_is_passed_by(knobs: tuple[KnobState, ...], why: str) -> None:
    """The history says why, and the next rung is taken at once."""
    story = low_mood(knobs=knobs)
    assert why in story.told(EntryKind.ACTION, "passed by")[0].text
    assert story.action.knobs == [KnobChange("pull", 0.2, 0.4)]


def test_turn_without_knobs_is_a_mistake_in_the_pack() -> None:
    """A rung that turns nothing would be passed by for ever."""
    with pytest.raises(ValueError, match="'turn' turns knobs"):
        parse(PACK.replace("KEEP", "").replace(", knobs: [{name: pull, times: 2}]", ""))


# -- a knob that a hand has turned ---------------------------------------------------------------------

EPS = KnobState("eps", 1e-4, 0.0, 1.0, None)
RATE = KnobState("lr_scale", 1.0, 0.01, 1.0, 2.0)


def drifting(last: int = 20, **how: Any) -> Story:
    """A run that tells its knobs, healthy up to ``last``."""
    story = Story(**how).begin(knobs=(EPS, RATE)).checkpoint(10).checkpoint(15)
    for step in range(1, last + 1):
        story.step(step, eps=1e-4, lr_scale=1.0, reward=0.8)
    return story


def test_a_turned_knob_by_itself_is_a_person_s_business() -> None:
    """It is told, and nothing is done about it."""
    story = drifting()
    story.step(21, eps=0.5, lr_scale=1.0, reward=0.8)
    assert [a for a in story.alerts if a.startswith("KnobDrift")] and not story.incidents


def test_the_first_poison_after_a_turned_knob_is_its_fault() -> None:
    """No second poisoned row is waited for; the knob leads, and is put back before anything is lost."""
    story = drifting()
    story.skipped(21, eps=0.0, lr_scale=1.0)
    assert (story.incident.kind, story.incident.onset) == ("knobs", 21)
    assert (story.action.remedy, story.action.knobs) == ("put_back", [KnobChange("eps", 0.0, 1e-4)])


def test_all_turned_knobs_go_back_and_a_leaping_rate_is_not_mistaken_for_one() -> None:
    """Each knob from its own numbers: the learning rate that leapt beside them is no knob, and lends them none."""
    story = Story().begin(knobs=(EPS, RATE, PUSH)).checkpoint(15)
    for step in range(1, 21):
        story.step(step, eps=1e-4, lr_scale=1.0, push=0.1, learning_rate=1e-3)
    story.skipped(21, eps=0.0, lr_scale=1.0, push=0.9, learning_rate=0.5)
    assert story.action.remedy == "put_back"
    assert story.action.knobs == [KnobChange("eps", 0.0, 1e-4), KnobChange("push", 0.9, 0.1)]


def test_a_knob_turned_long_ago_explains_nothing() -> None:
    """More than ten steps before the trouble it neither confirms nor leads."""
    story = drifting()
    for step in range(21, 33):
        story.step(step, eps=0.5, lr_scale=1.0, reward=0.8)
    story.skipped(33, eps=0.5, lr_scale=1.0)
    assert not story.incidents
    story.skipped(34, eps=0.5, lr_scale=1.0)
    assert (story.incident.kind, story.action.remedy) == ("nonfinite", "skip_data")


def test_what_was_applied_is_not_mended_by_a_knob() -> None:
    """Putting it back comes too late: the run goes back, and the knob with it."""
    story = drifting()
    story.applied(21, eps=0.0, lr_scale=1.0)
    assert (story.incident.kind, story.action.remedy) == ("knobs", "rollback")
    assert story.action.arguments["step"] == 15


def test_a_finite_death_is_one_incident_led_by_its_cause() -> None:
    """Rate a hundredfold, reward gone, no NaN: one incident, its onset the knob's, mended by going back."""
    story = drifting()
    story.step(21, eps=1e-4, lr_scale=100.0, reward=0.8, grad_norm=900.0)
    for step in (22, 23):
        story.step(step, eps=1e-4, lr_scale=100.0, reward=0.0)
    story.step(24, eps=1e-4, lr_scale=100.0, reward=0.0)
    assert [(i.kind, i.onset) for i in story.incidents] == [("knobs", 21)]
    assert story.sent() == ["rollback"]
    story.ack(step=25)
    story.batch(story.hello(knobs=(EPS, RATE)))
    for step in range(16, 40):
        story.step(step, eps=1e-4, lr_scale=1.0, reward=0.8)
    assert (story.incident.state, len(story.incidents), story.sent()) == ("resolved", 1, ["rollback"])


# -- experts -------------------------------------------------------------------------------------------


def skewed(story: Story, step: int, **values: float) -> None:
    """A step in which a quarter of sixteen experts get nearly nothing."""
    counts = (4000,) * 3 + (900,) * 9 + (10,) * 4
    story.at += 1.0
    story.batch(story.record(step, load=ExpertLoad(1, 1, 16, counts), **values))


AUX = KnobState("router_aux_coef", 0.0, 0.0, 0.1, 3.0)


def test_the_router_is_asked_where_the_load_is_what_is_wrong() -> None:
    """True imbalance: the weight of the balance loss is raised."""
    story = Story().begin(knobs=(AUX,))
    for step in range(1, 16):
        skewed(story, step)
    assert (story.incident.kind, story.action.remedy) == ("experts", "turn")
    assert story.action.knobs == [KnobChange("router_aux_coef", 0.0, 0.1)]


def test_the_router_is_never_asked_where_rollouts_route_apart() -> None:
    """A mismatch: raising the balance loss would degrade a policy whose router is not at fault."""
    story = Story().begin(knobs=(AUX,))
    for step in range(1, 16):
        skewed(story, step, mismatch_kl=0.005 if step < 3 else 0.5)
    for step in range(16, 30):
        skewed(story, step, mismatch_kl=0.5)
    changed = {change.name for incident in story.incidents for a in incident.actions for change in a.knobs}
    assert "router_aux_coef" not in changed


# -- what is another cause's ---------------------------------------------------------------------------

TWO = PACK.replace("KEEP", "").replace(
    "playbooks:",
    """      - alert: LossGone
        detector: nonfinite
        severity: critical
        incident: nonfinite
playbooks:
  - incident: nonfinite
    rungs: [{remedy: skip_data, horizon: 12, irreversible: true}, {remedy: stop, irreversible: true}]""",
)


def test_another_kind_that_comes_later_is_another_incident() -> None:
    """It neither joins nor decides whether the remedy of the first has held, and its onset moves no rollback."""
    story = Story(pack=TWO).begin(knobs=(PUSH, PULL)).steps(1, 5)
    story.step(6, mood=1.0, loss=float("nan"), step_applied=0.0)
    story.ack(step=7)
    moods(story, 7, 17, 1.0)
    moods(story, 18, 19, 0.1)
    first, second = story.incidents
    assert (first.kind, first.state, first.onset, first.alerts) == ("nonfinite", "resolved", 6, first.alerts[:1])
    assert (second.kind, story.sent()) == ("entropy", ["skip_data", "turn"])


@pytest.mark.parametrize("last", [8, 20], ids=["soon after it was acted on", "long after"])
def test_a_graver_cause_does_not_wait_for_a_milder_one_s_proof(last: int) -> None:
    """While a turned knob has its steps to take effect, a NaN is acted on at once, as an incident of its own."""
    story = Story(pack=TWO.replace("settle: 5", "settle: 40")).begin(knobs=(PUSH, PULL)).steps(1, 5)
    story.step(6, mood=0.1)
    story.ack(step=7)
    moods(story, 7, last, 0.1)
    story.step(last + 1, mood=0.1, loss=float("nan"), step_applied=0.0)
    assert [i.kind for i in story.incidents] == ["entropy", "nonfinite"]
    assert story.sent() == ["turn", "skip_data"]


# -- what is set higher stays, and what another version wrote is read -----------------------------------


@pytest.mark.parametrize(
    ("plan", "now", "value"),
    [
        ("at_least: 0.4", 0.1, 0.4),
        ("at_least: 0.4", 0.6, None),
        ("at_most: 0.4", 0.6, 0.4),
        ("at_most: 0.4", 0.1, None),
    ],
)
def test_a_rung_that_raises_never_lowers(plan: str, now: float, value: float | None) -> None:
    """A knob that a person or an earlier rung has set beyond is left where it is, and the next rung is taken."""
    knobs = (PUSH._replace(value=now), PULL)
    story = Story(pack=PACK.replace("to: 0.4KEEP", plan)).begin(knobs=knobs)
    for step in range(1, 7):
        story.step(step, mood=1.0 if step < 6 else 0.1)
    [change] = story.action.knobs
    assert change == (KnobChange("push", now, value) if value is not None else KnobChange("pull", 0.2, 0.4))


def test_keep_of_a_whole_rung_is_still_understood() -> None:
    """A pack of before says it once for all knobs of a rung."""
    [rung, *_] = parse(PACK.replace("settle: 5", "settle: 5, keep: true").replace("KEEP", "")).playbooks[0].rungs
    assert [plan.keep for plan in rung.knobs] == [True]


def test_a_floor_is_not_raised_where_its_control_is_off() -> None:
    """It would count for nothing, and thirty steps would be spent on waiting for it."""
    pack = PACK.replace("KEEP", "").replace("{name: push, to: 0.4}", "{name: min_entropy_floor, times: 1.25}")
    floor = KnobState("min_entropy_floor", 0.3, 0.0, 1.0, None)
    off = (KnobState("token_entropy_flow_control", 0.0, 0.0, 1.0, None), KnobState("alpha_max", 0.0, 0.0, 1.0, None))
    story = Story(pack=pack).begin(knobs=(floor, *off, PULL))
    for step in range(1, 7):
        story.step(step, mood=1.0 if step < 6 else 0.1)
    assert "counts for nothing" in story.told(EntryKind.ACTION, "passed by")[0].text
    assert story.action.knobs == [KnobChange("pull", 0.2, 0.4)]
