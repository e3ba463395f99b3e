"""Control over several ranks: a directive lands on the same step of all of them, or on none."""

from collections import deque
from collections.abc import Sequence
from pathlib import Path

import pytest
from controlled import CHANGE, Trainer
from sdk_runs import acks, directive, lay, ring, send

from gyrostat.wire import Ack, KnobChange


class Fabric:
    """The reductions of a group of ranks in one process, in order; a rank that reads too early is caught."""

    def __init__(self, world: int) -> None:
        self.world = world
        self.rounds: deque[list[Sequence[int]]] = deque()
        self.begun = [0] * world

    def rank(self, rank: int) -> "FabricRank":
        return FabricRank(self, rank)


class FabricRank:
    """One rank's end of the fabric: a Collective."""

    def __init__(self, fabric: Fabric, rank: int) -> None:
        self._fabric, self._rank = fabric, rank

    def begin(self, values: Sequence[int]) -> int:
        turn = self._fabric.begun[self._rank]
        self._fabric.begun[self._rank] += 1
        if len(self._fabric.rounds) <= turn:
            self._fabric.rounds.append([])
        self._fabric.rounds[turn].append(list(values))
        return turn

    def finish(self, pending: int) -> list[int]:
        votes = self._fabric.rounds[pending]
        assert len(votes) == self._fabric.world, "this rank would have waited for another"
        return [max(column) for column in zip(*votes, strict=True)]


def together(run: Path, world: int = 2) -> list[Trainer]:
    fabric = Fabric(world)
    return [Trainer(run, fabric.rank(rank), rank=rank, world=world) for rank in range(world)]


def steps(trainers: list[Trainer], first: int, last: int) -> list[tuple[int, int, str]]:
    """(step, rank, result) of every answer given over these steps."""
    return [
        (step, rank, answer.result)
        for step in range(first, last)
        for rank, trainer in enumerate(trainers)
        for answer in trainer.control.apply(step)
    ]


def test_a_directive_lands_on_the_same_step_of_all_ranks(run: Path) -> None:
    """Rung between two boundaries, it is applied by both ranks at the same later one, and no rank waits."""
    trainers = together(run)
    assert steps(trainers, 0, 3) == []
    send(run, directive(trainers[0].telemetry, 1, knobs=CHANGE))
    answers = steps(trainers, 3, 10)
    assert answers == [(5, 0, Ack.APPLIED), (5, 1, Ack.APPLIED)]
    assert [t.values["lr"] for t in trainers] == [0.5, 0.5]


def test_a_bell_rung_between_two_ranks_lands_on_one_step_too(run: Path) -> None:
    """Rank 1 is past its boundary, rank 0 is not, when the bell rings: still the same step for both."""
    trainers = together(run)
    trainers[1].control.apply(0)
    send(run, directive(trainers[0].telemetry, 1, knobs=CHANGE))
    trainers[0].control.apply(0)
    assert steps(trainers, 1, 6) == [(2, 0, Ack.APPLIED), (2, 1, Ack.APPLIED)]


def test_a_rank_that_was_started_later_votes_on_the_same_directive(run: Path) -> None:
    """Rank 1 saw another bell when it started, as on another node: it follows rank 0's number, not its own."""
    fabric = Fabric(2)
    first = Trainer(run, fabric.rank(0), rank=0, world=2)
    ring(run, 5)
    second = Trainer(run, fabric.rank(1), rank=1, world=2)
    lay(run, 5, directive(first.telemetry, 5, knobs=CHANGE).encode())
    answers = steps([first, second], 0, 12)
    assert answers[-2:] == [(answers[-1][0], 0, Ack.APPLIED), (answers[-1][0], 1, Ack.APPLIED)]
    assert [t.values["lr"] for t in (first, second)] == [0.5, 0.5]


def test_one_rank_that_refuses_makes_all_refuse(run: Path) -> None:
    """A person turned one rank's knob: both refuse, one with its reason, and neither is changed."""
    trainers = together(run)
    trainers[1].values["lr"] = 0.9
    send(run, directive(trainers[0].telemetry, 1, knobs=CHANGE))
    answers = steps(trainers, 0, 5)
    assert answers == [(2, 0, Ack.REFUSED), (2, 1, Ack.REFUSED)]
    assert sorted(a.reason for a in acks(run)) == [
        "another rank refused it",
        "lr reads 0.9, not 1: somebody else has turned it",
    ]
    assert [t.values["lr"] for t in trainers] == [1.0, 0.9]


def test_directives_queue_and_ranks_stay_in_step(run: Path) -> None:
    """Two rung together are applied one after the other, each on one step of all three ranks."""
    trainers = together(run, 3)
    lay(run, 1, directive(trainers[0].telemetry, 1, knobs=CHANGE).encode())
    lay(run, 2, directive(trainers[0].telemetry, 2, knobs=(KnobChange("lr", 0.5, 0.25),)).encode())
    ring(run, 2)
    answers = steps(trainers, 0, 12)
    assert [r for _, _, r in answers] == [Ack.APPLIED] * 6
    assert len({step for step, _, _ in answers}) == 2
    assert [t.values["lr"] for t in trainers] == [0.25] * 3


def test_a_failure_inside_does_not_leave_the_others_waiting(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong on one rank at a boundary, it begins its reduction: the others never wait for it."""
    trainers = together(run)
    send(run, directive(trainers[0].telemetry, 1, knobs=CHANGE))
    monkeypatch.setattr(trainers[1].control, "_settle", lambda *_: 1 / 0)
    steps(trainers, 0, 10)


def test_several_ranks_without_a_collective_refuse(run: Path) -> None:
    """Ranks that cannot agree would act on different steps: they refuse, and say what is missing."""
    trainer = Trainer(run, None, rank=0, world=4)
    send(run, directive(trainer.telemetry, 1, knobs=CHANGE))
    assert "has 4 ranks and gave Control no collective" in trainer.control.apply(1)[0].reason
    assert trainer.values["lr"] == 1.0
