"""What is kept from rotation: the newest certified, what may become it, and all that is well while there is trouble."""

from run_story import Story, healthy_run

from gyrostat_rules.certify import CLEAN_STEPS
from gyrostat_rules.inputs import UNTOLD, CheckpointSeen, Fit
from gyrostat_rules.keeping import HOPEFUL, keep


def names(story: Story, certified: int = 2) -> list[str]:
    """Those that are to be kept, best first."""
    return list(keep(story.engine.state, certified).names)


def unguarded(last: int) -> Story:
    """A run whose trainer says nothing of its steps, so that clean ones must follow a checkpoint; one every fifth."""
    story = Story().begin()
    for step in range(1, last + 1):
        story.at += 1.0
        record = story.record(step)
        values = {name: value for name, value in record.values.items() if name != "step_applied"}
        story.batch(record._replace(values=values))
        if step % 5 == 0:
            story.checkpoint(step)
    return story


def test_the_newest_certified_come_first_then_what_may_become_it() -> None:
    """Without a guard's word the newest are not certified yet: they are kept beside the two that are."""
    last = 40
    certified = [f"step-{step}-s0" for step in range(last - CLEAN_STEPS, 0, -5)]
    hopeful = [f"step-{step}-s0" for step in (40, 35)]
    assert names(unguarded(last)) == certified[:2] + hopeful


def test_a_guards_word_certifies_the_newest() -> None:
    """Nothing newer is waited for, so nothing but the two is kept."""
    assert names(healthy_run()) == ["step-15-s0", "step-10-s0"]


def test_so_many_are_kept_as_are_asked_for() -> None:
    """One is one, and none is none: what may become certified is then not kept either."""
    assert names(unguarded(40), 1)[0] == "step-30-s0"
    assert names(unguarded(40), 0) == []


def test_a_run_that_saves_often_keeps_few_hopeful_ones() -> None:
    """Before the first is certified there may be many; the newest will do."""
    story = Story().begin().steps(1, 3)
    story.engine.state.windows.clear()
    for step in range(1, 9):
        story.batch(CheckpointSeen(f"/ck/step-{step}", step, 0, "d", Fit.VERIFIED, "", float(step)))
    assert len(names(story)) == HOPEFUL


def test_while_an_incident_is_open_nothing_verified_is_let_go() -> None:
    """The ones before the onset are needed now, and how far back it will have to be is not known."""
    story = unguarded(40)
    story.command("pause")
    story.applied(41)
    story.checkpoint(42, fit=Fit.UNFIT, why="a parameter is not finite")
    assert names(story) == [f"step-{step}-s0" for step in range(40, 0, -5)]


def test_ill_ones_and_those_of_a_stretch_that_was_left_are_not_kept() -> None:
    """What nobody will go back to does not fill the disk."""
    story = healthy_run()
    story.applied(21)
    story.ack(step=16)
    story.checkpoint(20)
    assert "step-20-s0" not in names(story)
    assert "step-20-s0" in keep(story.engine.state, 2).judged


def test_what_is_gone_is_not_judged_by_that() -> None:
    """Its pin may still be being read: nobody lets go of it before it is known what it is."""
    story = healthy_run()
    story.batch(CheckpointSeen("/ck/step-18-s0", 18, 0, "d", Fit.UNFIT, Fit.GONE, 1.0))
    assert "step-18-s0" not in keep(story.engine.state, 2).judged


def test_a_pin_is_the_checkpoint_that_it_keeps() -> None:
    """It is kept under its one name, and is not gone back to again where that led back to the trouble."""
    story = healthy_run()
    story.batch(CheckpointSeen("/ck/gyrostat-pins/step-15-s0", 15, 0, "d", Fit.VERIFIED, "", 115.0))
    assert names(story) == ["step-15-s0", "step-10-s0"]
    story.applied(21)
    assert story.action.arguments["step"] == 15
    story.ack(step=16)
    for step in range(16, 22):
        story.step(step)
    story.applied(22)
    assert story.action.arguments["step"] == 10


def test_a_checkpoint_that_knows_no_segments_is_of_the_one_it_was_saved_in() -> None:
    """What a foreign trainer saves after a rollback is of the new stretch; what it saved before is of the old one."""
    story = healthy_run()
    old = CheckpointSeen("/ck/checkpoint-20", 20, UNTOLD, "d1", Fit.VERIFIED, "", 120.0)
    story.batch(old)
    story.applied(21)
    story.ack(step=16)
    for step in range(16, 26):
        story.step(step)
    story.batch(old)
    story.batch(CheckpointSeen("/ck/checkpoint-25", 25, UNTOLD, "d2", Fit.VERIFIED, "", 125.0))
    found = {seen.step: seen.segment for seen in story.engine.state.checkpoints.values()}
    assert (found[20], found[25]) == (story.segment - 1, story.segment)
