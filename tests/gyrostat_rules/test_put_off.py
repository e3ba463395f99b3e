"""What was put off was not begun: it waits, counts nowhere, and goes on. And an answer that says little says enough."""

from run_story import Story

from gyrostat.wire import Ack
from gyrostat_rules.inputs import Answer, DeliveryWord, SourceWord


def held_up() -> Story:
    """A trainer that died on a NaN; its restart could not begin, for the ledger cannot be written."""
    story = Story().begin().supervisor().checkpoint(10).checkpoint(15).steps(1, 20)
    story.applied(21)
    story.died()
    assert story.sent()[-1] == "restart"
    story.source(SourceWord.DAMAGED, "ledger")
    story.delivery(DeliveryWord.PUT_OFF, "no space")
    return story


def test_what_was_put_off_waits_and_counts_nowhere() -> None:
    """It is not sent again while the ledger cannot be written, and has used up neither budget nor checkpoint."""
    story = held_up()
    for _ in range(20):
        story.tick()
    assert story.sent().count("restart") == 1
    assert story.action.reason == "it is damaged"
    assert [d.remedy for d in story.engine.state.deeds].count("restart") == 0
    assert story.action.arguments["step"] == 15


def test_it_goes_on_when_the_ledger_can_be_written_again() -> None:
    """The same checkpoint, the same rung, at once."""
    story = held_up()
    story.source(SourceWord.FRESH, "ledger")
    assert story.sent().count("restart") == 2
    assert (story.action.arguments["step"], story.incident.state) == (15, "acting")


def test_a_ledger_that_cannot_be_written_holds_no_knob() -> None:
    """What ends no pod goes on: a full disk must not keep a run from being mended in place."""
    story = Story().begin().checkpoint(10).checkpoint(15).steps(1, 20)
    story.source(SourceWord.DAMAGED, "ledger")
    story.applied(21)
    assert story.sent() == ["rollback"]


def test_a_clock_that_is_set_back_makes_nothing_wait() -> None:
    """A start waits some seconds for its checkpoints to be seen; not for the hour to come again."""
    story = Story().begin().checkpoint(10).checkpoint(15).steps(1, 20)
    story.engine.state.look_until = story.engine.state.plan_from = story.at + 5.0
    story.at -= 5000.0
    story.applied(21)
    assert story.sent() == ["rollback"]


def test_a_rollback_that_does_not_say_where_it_landed_landed_where_it_was_sent() -> None:
    """What a procedure returns is the trainer's own: without it the run jumps all the same, and is not judged ill."""
    story = Story().begin().checkpoint(10).checkpoint(15).steps(1, 20)
    story.applied(21)
    story.batch(Answer("trainer", 0, story.life, Ack(story.action.number, story.action.id, Ack.APPLIED, 21)))
    story.segment = 1
    assert (story.engine.state.segment, story.incident.state) == (1, "probation")
    for step in range(16, 32):
        story.step(step)
    assert story.incident.state == "resolved"


def test_a_trainer_known_by_its_log_alone_is_restarted_by_flags() -> None:
    """Its supervisor answers for it, and says which flags it gave: from there on it must prove itself, and does."""
    story = Story().begin(procedures=()).supervisor().checkpoint(10).checkpoint(15).steps(1, 20)
    story.died()
    story.applied(21)
    assert story.sent()[-1] == "restart"
    action = story.action
    flags = {"flags": "--resume_from_checkpoint /ck/step-15-s0"}
    story.batch(Answer("supervisor", 0, "super-a", Ack(action.number, action.id, Ack.APPLIED, 0, detail=flags)))
    assert (action.applied_step, story.incident.state) == (15, "probation")
    story.segment += 1
    for step in range(16, 40):
        story.step(step)
    assert story.incident.state == "resolved"
