"""A second cause while the first one's remedy is being watched: an incident of its own, from its mildest rung on."""

from run_story import NAN, Story

from gyrostat.wire import KnobState
from gyrostat_rules.entries import EntryKind

EPS = KnobState("eps", 1e-4, 0.0, 1.0, None)


def healthy(last: int) -> Story:
    """A run that tells its knob, with two checkpoints."""
    story = Story().begin(knobs=(EPS,)).checkpoint(10).checkpoint(15)
    for step in range(1, last + 1):
        story.step(step, eps=1e-4)
    return story


def put_back() -> Story:
    """A hand has set a knob to 0 and the loss was NaN at once; it was put back, which is being watched."""
    story = healthy(20)
    story.skipped(21, eps=0.0)
    assert (story.incident.kind, story.sent()) == ("knobs", ["put_back"])
    story.ack(step=22, values={"eps": 1e-4})
    for step in range(22, 25):
        story.step(step, eps=1e-4)
    assert story.incident.state == "probation"
    return story


def test_an_item_at_fault_is_no_return_of_a_turned_knob() -> None:
    """The first incident gives way, the item has one of its own, and what was put back is not called ineffective."""
    story = put_back()
    for step in (25, 26):
        story.skipped(step, eps=1e-4, suspect_item=7.0)
    first, second = story.incidents
    assert (first.state, second.kind) == ("resolved", "nonfinite")
    assert "when another cause struck: item 7 is at fault" in first.why
    assert (story.sent(), story.action.arguments["items"]) == (["put_back", "skip_data"], [7])
    assert not story.told(EntryKind.ACTION, "ineffective")


def test_a_turned_knob_is_no_return_of_a_poisoned_item() -> None:
    """The item was passed over; then a hand turned a knob: what follows is the knob's, and it is put back at once."""
    story = healthy(20)
    for step in (21, 22):
        story.skipped(step, eps=1e-4, suspect_item=7.0)
    assert story.sent() == ["skip_data"]
    story.ack(step=23)
    for step in range(23, 26):
        story.step(step, eps=1e-4)
    story.skipped(26, eps=0.0)
    assert [(i.kind, i.state) for i in story.incidents] == [("nonfinite", "resolved"), ("knobs", "acting")]
    assert story.sent() == ["skip_data", "put_back"]


def test_what_names_no_other_cause_is_a_return() -> None:
    """Another item, or no word on why: the remedy did not hold, and the next rung follows."""
    story = Story().begin().checkpoint(10).checkpoint(15).steps(1, 20)
    for step in (21, 22):
        story.skipped(step, suspect_item=7.0)
    story.ack(step=23)
    for step in (23, 24):
        story.skipped(step, suspect_item=8.0)
    assert len(story.incidents) == 1
    assert story.told(EntryKind.ACTION, "ineffective")


def test_what_gave_way_uses_up_no_ceiling() -> None:
    """Nobody can say whether it was mended: it is no incident of that cause that came to its end."""
    story = put_back()
    for step in (25, 26):
        story.step(step, eps=1e-4, loss=NAN, step_applied=0.0, suspect_item=7.0)
    assert not story.engine.state.closed
