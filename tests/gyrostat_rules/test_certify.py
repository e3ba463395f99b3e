"""Checkpoints: which one may be gone back to, and that every refusal has its reason."""

from typing import Any

import pytest
from run_story import NAN, Story, healthy_run, path_of

from gyrostat_rules.certify import CLEAN_STEPS, choose
from gyrostat_rules.inputs import CheckpointSeen, Fit
from gyrostat_rules.remembered import Jump
from gyrostat_rules.state import Incident, State


def troubled(**values: Any) -> Story:
    """A run that is poisoned at step 21 and only shadowed, so that nothing is done."""
    story = healthy_run(act=False)
    story.applied(21, **values)
    return story


def refusal(story: Story, step: int, segment: int = 0) -> str:
    """What is said of one checkpoint."""
    _, said = choose(story.engine.state, story.incident)
    return next((s for s in said if s.startswith(f"step {step} ")), "")


def test_the_newest_before_the_onset_is_chosen() -> None:
    """The least work is lost."""
    target, said = choose(troubled().engine.state, troubled().incident)
    assert target is not None and target.step == 15
    assert said == ["step 15 chosen: verified, before the onset at step 21"]


@pytest.mark.parametrize("step", [21, 22])
def test_at_or_after_the_onset_it_is_poisoned(step: int) -> None:
    """A checkpoint written once the poison was in holds the poison."""
    story = troubled().checkpoint(step)
    assert refusal(story, step) == f"step {step} not: saved at or after the onset, step 21"


@pytest.mark.parametrize(
    ("fit", "why", "told"),
    [
        pytest.param(Fit.UNFIT, "model.safetensors: digest differs", "digest differs", id="unfit"),
        pytest.param(Fit.ATTESTED, "", "attested", id="attested"),
        pytest.param(Fit.ATTESTED, "it cannot be read without unpickling", "unpickling", id="attested with a reason"),
    ],
)
def test_only_what_was_verified_is_certified(fit: str, why: str, told: str) -> None:
    """What could not be read number by number is not gone back to unattended."""
    story = troubled().checkpoint(18, fit=fit, why=why)
    target, _ = choose(story.engine.state, story.incident)
    assert target is not None and target.step == 15
    assert told in refusal(story, 18)


def test_a_stretch_that_was_left_is_not_gone_back_to() -> None:
    """A checkpoint of steps that a rollback undid belongs to no history of this run."""
    story = troubled().checkpoint(18)
    story.engine.state.jumps.append(Jump(0, 15))
    assert "of a stretch that the run has left" in refusal(story, 18)
    assert "chosen" in refusal(story, 15)


def test_one_that_led_back_here_is_not_tried_again() -> None:
    """The same checkpoint twice would be a loop."""
    story = troubled()
    story.incident.tried_targets.append(path_of(15))
    target, said = choose(story.engine.state, story.incident)
    assert target is not None and target.step == 10
    assert "already led back to this incident" in said[1]


@pytest.mark.parametrize(
    ("state", "resolved", "bad", "refused"),
    [
        pytest.param("held", -1, 12, True, id="open"),
        pytest.param("resolved", 16, 12, True, id="resolved later"),
        pytest.param("resolved", 14, 12, False, id="resolved before"),
        pytest.param("stopped", -1, 15, True, id="stopped, bad at its step"),
        pytest.param("stopped", -1, 13, False, id="stopped, well again before it"),
    ],
)
def test_another_incident_at_its_step_spoils_it(state: str, resolved: int, bad: int, refused: bool) -> None:
    """What was saved in the middle of other trouble is not known to be good."""
    story = troubled()
    other = Incident("i0009", "nonfinite", state, 12, 12, 0.0, [], bad, resolved_step=resolved)
    story.engine.state.incidents.insert(0, other)
    assert ("incident i0009 was open at its step" in refusal(story, 15)) is refused


@pytest.mark.parametrize(("kind", "target"), [("experts", 15), ("nonfinite", None)])
def test_a_milder_cause_that_was_at_work_all_along_keeps_no_graver_one_from_going_back(
    kind: str, target: int | None
) -> None:
    """Experts that were uneven from the first step on are no reason to let the run die of a NaN; and it is said."""
    story = troubled()
    other = Incident("i0009", kind, "probation", 1, 12, 0.0, [], 20)
    story.engine.state.incidents.insert(0, other)
    chosen, said = choose(story.engine.state, story.incident)
    assert (chosen.step if chosen else None) == target
    assert ("chosen: verified, before the onset" in said[0]) is (target is not None)
    assert "incident i0009 was open at its step" in said[0]


def test_one_without_any_incident_is_preferred() -> None:
    """What is overlooked is the last resort: an older checkpoint from before the milder trouble is taken first."""
    story = troubled()
    story.engine.state.incidents.insert(0, Incident("i0009", "experts", "probation", 12, 13, 0.0, [], 20))
    chosen, said = choose(story.engine.state, story.incident)
    assert chosen is not None and chosen.step == 10
    assert said[1].startswith("step 15 not")


def test_without_a_guard_clean_steps_must_follow_it() -> None:
    """Where the trainer does not say whether a step was applied, ten clean steps stand in for it."""
    story = Story(act=False).begin().checkpoint(10).checkpoint(15)
    for step in range(1, 21):
        row = story.record(step)
        del row.values["step_applied"]
        story.batch(row)
    bad = story.record(21, loss=NAN, params_finite=0.0)
    del bad.values["step_applied"]
    story.batch(bad)
    assert "only 5 clean steps follow it, 10 are needed without a guard" in refusal(story, 15)
    target, _ = choose(story.engine.state, story.incident)
    assert target is not None and target.step == 10


def test_each_newer_one_is_explained() -> None:
    """The history says of every checkpoint that was passed by why it was not taken."""
    story = troubled().checkpoint(17, fit=Fit.UNFIT, why="cut short").checkpoint(18, fit=Fit.ATTESTED).checkpoint(22)
    _, said = choose(story.engine.state, story.incident)
    assert [s.split(":")[0] for s in said] == ["step 15 chosen", "step 22 not", "step 18 not", "step 17 not"]


@pytest.mark.parametrize("seen", [False, True], ids=["none seen", "none fits"])
def test_none_is_none(seen: bool) -> None:
    """With nothing certified nothing is gone back to, and the reason is there."""
    story = Story().begin().steps(1, 5)
    if seen:
        story.checkpoint(3, fit=Fit.UNFIT, why="cut short")
    story.applied(6)
    target, said = choose(story.engine.state, story.incident)
    assert target is None
    assert said == (["step 3 not: cut short"] if seen else ["no checkpoint has been seen"])
    assert "rollback" not in story.sent()


def test_ranks_that_all_answer_leave_one_segment() -> None:
    """Eight ranks that roll back together jump once: what is saved afterwards may be gone back to again."""
    story = healthy_run(world=8)
    story.applied(21)
    story.ack(step=22)
    assert (story.engine.state.segment, len(story.engine.state.jumps)) == (1, 1)
    story.steps(16, 36).checkpoint(34, segment=1)
    assert story.incident.state == "resolved"
    story.steps(37, 60)
    story.applied(61)
    assert story.action.arguments["step"] == 34


@pytest.mark.parametrize("interval", [1, 5, 7, 20])
def test_the_target_is_never_older_than_it_must_be(interval: int) -> None:
    """Whatever the onset: the newest before it, less the clean steps that must follow and one interval at most."""
    state = State(step=200)
    for step in range(interval, 201, interval):
        state.checkpoints[f"/ck/{step}"] = CheckpointSeen(f"/ck/{step}", step, 0, "d", Fit.VERIFIED, "", float(step))
    for onset in range(CLEAN_STEPS + 2 * interval, 201):
        incident = Incident("i1", "nonfinite", "open", onset, onset, 0.0, [], onset)
        chosen, _ = choose(state, incident)
        ideal = max(step for step in range(interval, 201, interval) if step < onset)
        assert chosen is not None
        assert ideal - CLEAN_STEPS - interval <= chosen.step < onset
