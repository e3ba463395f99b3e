"""Error lines of logs: a warning, or a page where hardware is broken, for as long as the line is news."""

import pytest
from run_story import CORE, Story, healthy_run, replay

from gyrostat.wire import Record
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import FaultLine
from gyrostat_rules.packfile import PackError, parse

SOFT, HARD = "FaultInLog/0", "HardwareFaultInLog/0"
ECC = FaultLine("trainer", 0, "ecc", "an ECC error")
OOM = FaultLine("trainer", 0, "oom", "memory ran out")
NOTE = FaultLine("trainer", 0, "engine_exit", "an engine is gone")


def told(story: Story, rule: str) -> list[str]:
    """The states of a rule's alerts, in the order told."""
    return [e.state for e in story.told(EntryKind.ALERT) if e.subject.startswith(rule)]


def test_a_line_is_a_warning_and_opens_nothing() -> None:
    """A person sees what the log says, of whom and since when; a line that may have been got over wakes nobody."""
    story = healthy_run(12)
    story.batch(OOM)
    alert = story.alerts[SOFT]
    assert (alert.state, alert.labels) == ("firing", {"role": "trainer", "rank": "0", "kind": "oom"})
    assert (alert.onset, alert.why, alert.evidence["line_step"]) == (12, "memory ran out", 12)
    assert not story.incidents
    assert "the log of trainer 0 says: oom, at step 12" in story.told(EntryKind.ALERT)[-1].data["summary"]


def test_broken_hardware_pages_once_and_nothing_is_done_to_the_run() -> None:
    """One incident however many lines of however many ranks; a person is asked, for no restart mends a card."""
    story = healthy_run(12, world=2)
    for line in (ECC, ECC, FaultLine("trainer", 1, "xid_node", "off the bus")):
        story.batch(line)
    story.steps(13, 15)
    assert [(i.kind, i.state, i.onset) for i in story.incidents] == [("hardware", "held", 12)]
    assert len(story.told(EntryKind.ACTION, "paged")) == 1 and not story.sent()
    assert story.alerts[HARD].why == "an ECC error (2 such lines)"


def test_what_follows_from_broken_hardware_is_muted() -> None:
    """The cause leads: a collective that timed out since is no news of its own."""
    story = healthy_run(12, world=2)
    story.batch(FaultLine("trainer", 1, "nccl_timeout", "a collective timed out"), ECC)
    assert story.alerts["FaultInLog/1"].muted_by and not story.alerts[HARD].muted_by


@pytest.mark.parametrize(("line", "rule"), [(OOM, SOFT), (ECC, HARD)], ids=["warning", "hardware"])
def test_it_is_over_twenty_steps_after_the_newest_line(line: FaultLine, rule: str) -> None:
    """A line that is not said again does not fire for ever, and one that is goes on without a second alarm."""
    story = healthy_run(12)
    story.batch(line)
    story.steps(13, 20)
    story.batch(line)
    story.steps(21, 40)
    assert rule in story.alerts
    story.step(41)
    assert rule not in story.alerts
    assert told(story, rule[:-2]) == ["firing", "resolved"]


def test_hardware_that_says_no_more_is_over_by_itself() -> None:
    """Twenty steps after the alert the incident is closed, and a line after that is a new one."""
    story = healthy_run(12)
    story.batch(ECC)
    story.steps(13, 60)
    assert story.incident.state == "resolved"
    story.batch(ECC)
    assert [i.state for i in story.incidents] == ["resolved", "held"]


def test_time_alone_changes_nothing() -> None:
    """A run that stands still after the line keeps it, and ticks say nothing new of it."""
    story = healthy_run(12)
    story.batch(OOM)
    assert not any(story.tick(1.0) for _ in range(50))
    assert SOFT in story.alerts and not story.engine.changed


def test_a_new_life_of_the_trainer_ends_it_for_all() -> None:
    """What killed the life before is not held against the next."""
    story = healthy_run(12, world=2)
    story.batch(OOM, ECC._replace(rank=1))
    story.died(-9)
    assert {SOFT, "HardwareFaultInLog/1"} <= set(story.alerts)
    story.begin(life="life-b")
    assert not {SOFT, "HardwareFaultInLog/1"} & set(story.alerts)
    assert told(story, "FaultInLog") == ["firing", "resolved"]


def test_a_new_life_of_one_rank_ends_its_own_alone() -> None:
    """Rank 1 that begins anew says nothing about rank 0."""
    story = healthy_run(12, world=2)
    story.batch(OOM, OOM._replace(rank=1))
    story.batch(story.hello(1)._replace(incarnation="life-b"))
    assert SOFT in story.alerts and "FaultInLog/1" not in story.alerts


def test_a_line_before_the_first_word_of_the_trainer_counts() -> None:
    """An agent that begins with a log in which something is wrong says so, whichever source it reads first."""
    story = Story()
    story.batch(OOM)
    story.begin().step(1)
    assert SOFT in story.alerts and story.alerts[SOFT].onset == 0


def test_a_line_of_a_new_life_counts_before_its_first_record() -> None:
    """Trouble while the next life loads its checkpoint is that life's, though the segment is told by no record yet."""
    story = healthy_run(12)
    story.segment = 1
    story.begin(life="life-b")
    story.batch(OOM)
    story.steps(10, 13)
    assert SOFT in story.alerts


@pytest.mark.parametrize("end", ["bye", "asked", "exit 0"])
def test_nothing_is_made_of_how_processes_end(end: str) -> None:
    """An engine that dies while a run ends as it should is no fault, before the goodbye or after it."""
    story = healthy_run(12)
    story.batch(OOM)
    {"bye": story.bye, "asked": lambda: story.died(-15, asked=True), "exit 0": lambda: story.died(0)}[end]()
    assert SOFT not in story.alerts
    story.batch(OOM, ECC)
    story.tick()
    assert not story.alerts and not story.incidents


def test_a_line_that_comes_after_the_death_says_why() -> None:
    """The log is read after the news of the death: the reason is told all the same."""
    story = healthy_run(12)
    story.died(-9)
    story.batch(FaultLine("trainer", 0, "host_oom", "the host's memory ran out"))
    assert {"TrainerDied/0", SOFT} <= set(story.alerts)
    assert not story.alerts["TrainerDied/0"].muted_by


def test_a_run_that_went_back_has_begun_anew() -> None:
    """Lines of the steps undone fire no more, nor again; what still ails the run will be said again."""
    story = healthy_run(12)
    story.batch(OOM)
    story.segment = 1
    story.steps(11, 20)
    assert told(story, "FaultInLog") == ["firing", "resolved"]
    story.batch(OOM)
    assert story.alerts[SOFT].value == 1.0


def test_a_known_harmless_line_fires_nothing_and_is_written_down() -> None:
    """An engine that ends with its run, a remap that was recorded: a note in the history, once."""
    story = healthy_run(12)
    story.batch(NOTE, NOTE)
    assert not story.alerts
    notes = [e for e in story.told(EntryKind.RUN, "faulted") if e.data["fault"] == "engine_exit"]
    assert [e.text for e in notes] == ["the log of trainer 0: an engine is gone"]


def test_lines_in_one_batch_with_steps_are_told_as_one_by_one() -> None:
    """A log that is read late gives what it gives when it is read at once: what is long over fired in its time."""
    story = healthy_run(12)
    records: list[Record | FaultLine] = [story.record(step) for step in range(13, 80)]
    story.batch(*records[:10], OOM, *records[10:])
    assert told(story, "FaultInLog") == ["firing", "resolved"]
    firing = story.told(EntryKind.ALERT, "firing")[-1]
    assert (firing.data["onset"], firing.step) == (22, 23)


def test_a_log_that_invents_faults_fills_no_memory() -> None:
    """Ten thousand ranks' lines leave a bounded state, with the newest in it."""
    story = healthy_run(12)
    story.batch(*(FaultLine("trainer", rank, "oom", "no") for rank in range(10_000)))
    assert len(story.engine.state.faults) == 256
    assert "FaultInLog/9999" in story.alerts


def test_what_was_said_survives_the_agent() -> None:
    """A restored engine goes on with the alert, and a replay gives the same entries."""
    story = healthy_run(12)
    story.batch(OOM, ECC)
    restored = Engine.restore(story.engine.snapshot())
    assert restored.snapshot() == story.engine.snapshot()
    assert replay(story.inputs)[1] == story.entries


def test_a_kind_that_does_not_exist_is_a_mistake_of_the_pack() -> None:
    """A rule for a misspelt kind would never fire, and its silence would read as healthy."""
    with pytest.raises(PackError, match="xid_nod"):
        parse(CORE.replace("kinds: [ecc, xid_node]", "kinds: [ecc, xid_nod]"))
    with pytest.raises(PackError, match="kinds"):
        parse(CORE.replace("with: {kinds: [ecc, xid_node]}", "with: {keep: 3}"))
