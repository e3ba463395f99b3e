"""Probation: a remedy that holds is done, one that does not is followed by the next, and nothing stays for ever."""

from run_story import NAN, Story, healthy_run

from gyrostat_rules.entries import EntryKind


def on_probation(**how: int) -> Story:
    """A run whose bad data have been passed over at step 23."""
    story = healthy_run(**how)
    story.skipped(21)
    story.skipped(22)
    story.ack(step=23)
    assert story.incident.state == "probation"
    return story


def test_it_holds_and_is_resolved_at_its_horizon() -> None:
    """Ten clean steps after the answer the incident is over, not one earlier."""
    story = on_probation().steps(23, 32)
    assert story.incident.state == "probation"
    story.step(33)
    assert (story.incident.state, story.action.outcome) == ("resolved", "done")
    assert [(d.kind, d.remedy) for d in story.engine.state.closed] == [("nonfinite", "skip_data")]


def test_it_comes_back_and_the_next_rung_follows() -> None:
    """The same alarm within the horizon: ineffective, and the next rung in the same moment."""
    story = on_probation().steps(23, 27)
    first = story.action
    story.applied(28)
    assert first.outcome == "ineffective"
    assert story.sent() == ["skip_data", "rollback"]
    assert len(story.incidents) == 1


def test_one_skipped_row_in_probation_is_no_recurrence() -> None:
    """A warning does not undo the proof."""
    story = on_probation()
    story.step(23)
    story.skipped(24)
    story.steps(25, 33)
    assert story.incident.state == "resolved"


def test_many_steps_in_one_batch_are_judged_in_their_order() -> None:
    """A recurrence in the middle of a batch counts, though the batch ends well beyond the horizon."""
    story = on_probation()
    rows = [story.record(s, **({"loss": NAN} if s == 25 else {})) for s in range(23, 50)]
    story.batch(*rows)
    assert story.incident.actions[0].outcome == "ineffective"


def test_a_slow_rank_is_waited_for() -> None:
    """The horizon's last step is not clean until every rank has told it."""
    story = on_probation(world=2)
    for step in range(23, 33):
        story.step(step)
    story.step(33, ranks=[0])
    assert story.incident.state == "probation"
    story.batch(story.record(33, 1, loss=NAN))
    assert story.incident.actions[0].outcome == "ineffective"


def test_a_run_that_ends_before_the_proof_is_stopped() -> None:
    """Nobody can say whether it held."""
    story = on_probation()
    story.bye()
    assert (story.incident.state, story.incident.why) == (
        "stopped",
        "the run ended before the remedy could prove itself",
    )


def test_a_run_that_ends_clean_is_resolved() -> None:
    """It was clean as long as it went on."""
    story = on_probation().steps(23, 26)
    story.bye()
    assert story.incident.state == "resolved"


def test_a_death_in_probation_is_a_recurrence() -> None:
    """A trainer that dies before the remedy has proved itself died on it: it is restarted."""
    story = healthy_run().supervisor()
    story.skipped(21)
    story.skipped(22)
    story.ack(step=23)
    story.steps(23, 25)
    story.died(-11)
    assert story.sent() == ["skip_data", "restart"]
    assert len(story.incidents) == 1


def test_what_nobody_mended_is_over_by_itself() -> None:
    """Twenty clean steps later a held incident is over, and its action is not done any more."""
    story = healthy_run(approvals=True)
    story.applied(21)
    story.steps(22, 40)
    assert story.incident.state == "held"
    story.step(41)
    assert (story.incident.state, story.incident.why) == ("resolved", "over by itself: 20 clean steps")
    story.command("approve", action="i0001.2", by="Ada")
    assert story.sent() == []


def test_after_it_is_over_the_next_one_is_a_new_incident() -> None:
    """A resolved incident is history; the next begins on the first rung with its own number and onset."""
    story = on_probation().steps(23, 60)
    story.skipped(61)
    story.skipped(62)
    assert [(i.id, i.onset) for i in story.incidents] == [("i0001", 21), ("i0002", 61)]
    assert story.sent() == ["skip_data", "skip_data"]


def test_nobody_comes() -> None:
    """A page that nobody answers is given up after an hour, and told."""
    story = healthy_run()
    story.tick(910.0)
    assert story.told(EntryKind.ACTION, "paged")
    story.tick(3601.0)
    assert (story.incident.state, story.incident.why) == ("stopped", "nobody came: waits for a person")
    story.tick(3601.0)
    assert len(story.incidents) == 1


def test_a_person_who_took_long_to_answer_makes_probation_no_longer() -> None:
    """The steps that a rollback undoes are gone: it must pass the fault's step again, not the hour it waited."""
    story = healthy_run(approvals=True).checkpoint(15)
    for step in range(21, 60):
        story.applied(step)
    story.command("approve", action=story.action.id)
    story.ack(step=60)
    story.segment = 1
    story.steps(16, 30)
    assert story.incident.state == "probation"
    story.step(31)
    assert (story.incident.state, story.incident.why) == ("resolved", "mended by rollback: 10 clean steps")
