"""Gathered: rows of one step are one Record; steps that are not said, come again or go back are told apart."""

import math

import pytest

from gyrostat.wire import Record
from gyrostat_agent.sources.logs.gathered import Gathered
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import EVAL, SKIPPED, Fault, Note, Said, Step, Told

NAN = math.nan


def records(*said: Said, aliases: dict[str, str] | None = None) -> list[Record]:
    """What becomes of these."""
    gathered = Gathered(Names(aliases or {}), "life")
    found = [*gathered.take(said), *gathered.flush()]
    return [one for one in found if isinstance(one, Record)]


def steps(*said: Said) -> list[tuple[int, int]]:
    """Segment and step of each record."""
    return [(one.segment, one.step) for one in records(*said)]


def test_rows_of_one_step_are_one_record() -> None:
    """Loss in one line, reward in the next: one step, under canonical names, unknown names as they are."""
    [one] = records(Told({"actor/pg_loss": 1.0}, 3), Told({"actor/grad_norm": 2.0, "my/own": 4.0}, 3))
    assert (one.step, one.values) == (3, {"loss": 1.0, "grad_norm": 2.0, "my/own": 4.0})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([Told({"loss": 1.0}), Told({"loss": 1.0}), Told({"loss": 1.0})], [(0, 0), (0, 1), (0, 2)]),
        ([Step(10), Told({"loss": 1.0}), Step(20), Told({"loss": 1.0})], [(0, 10), (0, 20)]),
        ([Step(10), Told({"loss": 1.0}), Told({"eval_loss": 1.0}, phase=EVAL), Step(11), Told({"loss": 1.0})],
         [(0, 10), (0, 11)]),
        ([Told({"loss": 1.0}), Step(12, ends=True), Told({"loss": 1.0}), Step(13, ends=True)], [(0, 12), (0, 13)]),
        ([Told({"loss": 1.0}, 5), Told({"loss": 1.0}, 6), Told({"loss": 1.0}, 4), Told({"loss": 1.0}, 5)],
         [(0, 5), (0, 6), (1, 4), (1, 5)]),
        ([Step(10), Told({"loss": 1.0}), Told({"loss": 1.0})], [(0, 10), (0, 11)]),
        ([Told({"loss": 1.0}, 7), Told({"grad_norm": 1.0})], [(0, 7)]),
        ([Told({}, 7)], []),
        ([Step(3), Step(4)], []),
    ],
    ids=["counted", "announced", "evaluation", "behind", "gone back", "bar not drawn", "more of it", "none", "bars"],
)  # fmt: skip
def test_steps(said: list[Said], expected: list[tuple[int, int]]) -> None:
    """By the line, by a bar in front of it, by a line behind it, or counted; going back is a new segment, no fault."""
    assert steps(*said) == expected


def test_two_ranks_that_print_the_same_are_one_and_what_is_sick_stays() -> None:
    """Every rank prints each line; rank 3's NaN must not be lost behind rank 0's number, whichever comes first."""
    for order in ([0.5, NAN], [NAN, 0.5]):
        [one] = records(*(Told({"loss": 1.0, "grad_norm": g}, 3, rank=i) for i, g in enumerate(order)))
        assert math.isnan(one.values["grad_norm"]) and one.values["loss"] == 1.0


def test_of_two_names_for_one_thing_the_sick_one_counts() -> None:
    """Reward and score are both the reward; the first is taken, but for one that is not finite."""
    [one] = records(Told({"reward": 1.0, "score": 2.0}, 1))
    assert one.values == {"reward": 1.0}
    [one] = records(Told({"reward": 1.0, "score": NAN}, 1))
    assert math.isnan(one.values["reward"])


def test_evaluation_is_kept_apart() -> None:
    """By its line, or by its name: an evaluation's loss is no training loss."""
    [one] = records(Told({"loss": 3.0}, 5, EVAL), Told({"eval_reward": 9.0, "val-core/acc": 1.0}, 5))
    assert one.values == {"eval/loss": 3.0, "eval/reward": 9.0, "eval/val-core/acc": 1.0}


def test_running_counts_are_told_as_what_came_new() -> None:
    """Skipped iterations since the beginning say nothing about this step."""
    rows = [Told({"skipped": float(n)}, i) for i, n in enumerate((0, 2, 2, 5))]
    found = records(*rows, aliases={"skipped": "skipped_steps"})
    assert [one.values["skipped_steps"] for one in found] == [0.0, 2.0, 0.0, 3.0]


def test_a_step_that_was_skipped_is_told_with_its_row() -> None:
    """The trainer's own warning says that nothing was applied: no harm was done."""
    [one] = records(Told({"grad_norm": NAN}, 3), Note(SKIPPED))
    assert one.values["step_applied"] == 0.0


def test_faults_and_notes_pass_through() -> None:
    """Behind the row that was told before them: a fault is dated by it."""
    gathered = Gathered(Names({}), "life")
    said = [Told({"loss": 1.0}, 1), Fault("oom", "out of memory"), Told({"loss": 1.0}, 2)]
    found = [type(one).__name__ for one in gathered.take(said)]
    assert found == ["Record", "Fault"]


def test_a_log_that_invents_names_without_end_is_bounded() -> None:
    """A step's number in a name is no name; memory does not grow with the log."""
    gathered = Gathered(Names({}), "life")
    for step in range(3000):
        list(gathered.take([Told({f"metric_{step}": 1.0, "loss": 1.0}, step)]))
    assert len(gathered.names.known) <= 1000


def test_times_are_the_logs_own_where_it_has_any() -> None:
    """A line without a time has that of the one before; one without any counts."""
    found = records(Told({"loss": 1.0}, 1, at=1000.0), Told({"loss": 1.0}, 2), Told({"loss": 1.0}, 3, at=1010.0))
    assert [one.time for one in found] == [1000.0, 1000.0, 1010.0]
    assert [one.time for one in records(Told({"loss": 1.0}, 1), Told({"loss": 1.0}, 2))] == [1.0, 2.0]
