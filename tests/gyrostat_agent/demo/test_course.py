"""What the demonstration reads of a run: steps that stand, steps undone, incidents, out of real journals and files."""

from collections.abc import Callable
from pathlib import Path

import pytest
from demo_runs import FAULT, STEPS, Recording, course_of, record, rolled_back, skipped_data

from gyrostat import Telemetry
from gyrostat_agent.demo.course import Course
from gyrostat_agent.demo.sources import JournalSource, RecordSource
from gyrostat_rules.state import Incident

RUNS = pytest.mark.parametrize("make", [skipped_data, rolled_back], ids=["skipped", "rolled back"])


def told(incident: Incident) -> list[object]:
    """An incident as its course must show it."""
    actions = [(a.rung + 1, a.remedy, a.verdict, a.outcome) for a in incident.actions]
    return [incident.kind, incident.state, incident.onset, incident.fired_step, incident.resolved_step, actions]


@RUNS
def test_incidents_are_the_engines(make: Callable[[Path], Recording], tmp_path: Path) -> None:
    """The entries of the journal tell the same incidents, rungs and outcomes as the engine itself holds."""
    recording = make(tmp_path / "agent")
    cases = course_of(recording).cases
    seen = [
        [c.kind, c.state, c.onset_step, c.fired_step, c.resolved_step,
         [(d.rung, d.remedy, d.verdict, d.outcome) for d in c.deeds.values()]]
        for c in cases.values()
    ]  # fmt: skip
    assert list(cases) == [i.id for i in recording.incidents]
    assert seen == [told(incident) for incident in recording.incidents]


@RUNS
def test_every_step_stands_once(make: Callable[[Path], Recording], tmp_path: Path) -> None:
    """Whatever was done again, the course has each step once and in order."""
    course = course_of(make(tmp_path / "agent"))
    assert [p.step for p in course.points] == list(range(1, STEPS + 1))
    assert course.step == STEPS


def test_skipped_steps_are_lost(tmp_path: Path) -> None:
    """A step that the guard skipped cost its work, and nothing else did."""
    course = course_of(skipped_data(tmp_path / "agent"))
    assert (course.lost, course.undone) == (2, [])


def test_undone_steps_are_lost_and_kept(tmp_path: Path) -> None:
    """A step that was gone back from is lost, and still there to be drawn."""
    course = course_of(rolled_back(tmp_path / "agent"))
    assert [[p.step for p in stretch] for stretch in course.undone] == [[FAULT]]
    assert course.lost == 1
    assert course.points[FAULT - 1].finite and not course.undone[0][0].finite


def test_a_run_without_a_sidecar_is_read_from_its_record_files(tmp_path: Path) -> None:
    """Records in the run directory of a run that nobody watches are read as they come, each once."""
    telemetry = Telemetry(tmp_path / "run")
    source, course = RecordSource(tmp_path / "run"), Course()
    for step in (1, 2):
        telemetry.record(step, reward=0.25 * step, entropy=0.5, grad_norm=1.0)
        course.take(source.news())
    telemetry.close()
    assert course.take(source.news()) == []
    assert [(p.step, p.reward, p.applied) for p in course.points] == [(1, 0.25, True), (2, 0.5, True)]


def test_no_journal_is_no_news(tmp_path: Path) -> None:
    """Before the sidecar has begun its journal there is nothing to show, and nothing fails."""
    assert JournalSource(tmp_path / "agent" / "journal.db").news() == []


def test_reward_is_of_the_last_ten_steps() -> None:
    """The figure that runs are compared by is the mean reward of the ten steps that stand last."""
    course = Course()
    course.take(record(step) for step in range(1, 21))
    assert course.reward == pytest.approx(sum(0.5 + s / 100 for s in range(11, 21)) / 10)
    assert len(course.points[0].balance) == 2
