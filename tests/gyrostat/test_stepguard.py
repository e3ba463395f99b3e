"""StepGuard: a step that is not finite is skipped by all ranks alike, but not for ever."""

import math

import pytest

from gyrostat import StepGuard

NAN = math.nan


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf], ids=str)
def test_a_step_that_is_not_finite_is_skipped(bad: float) -> None:
    """Loss or gradient norm not finite: the optimizer step is not allowed, and the record says so."""
    guard = StepGuard()
    assert guard.allows(1, 0.5, 1.0)
    assert guard.values() == {"step_applied": 1.0, "guard_exhausted": 0.0}
    assert not guard.allows(2, bad, 1.0)
    assert guard.values() == {"step_applied": 0.0, "guard_exhausted": 0.0}
    assert not guard.allows(3, 0.5, bad)
    assert guard.skipped == 2


def test_it_steps_aside_and_says_so() -> None:
    """After three skips in a hundred steps it lets pass what comes, says that it is spent, and is fresh later."""
    guard = StepGuard()
    assert [guard.allows(step, NAN, 1.0) for step in range(1, 6)] == [False, False, False, True, True]
    assert guard.values() == {"step_applied": 1.0, "guard_exhausted": 1.0}
    assert guard.skipped == 3
    assert guard.allows(100, 0.5, 1.0)
    assert guard.values()["guard_exhausted"] == 1.0
    assert not guard.allows(101, NAN, 1.0)


def test_good_steps_use_nothing_up() -> None:
    """A thousand finite steps leave the whole budget."""
    guard = StepGuard(limit=1, per=10)
    assert all(guard.allows(step, 0.1, 1.0) for step in range(1000))
    assert not guard.allows(1000, NAN, 1.0)


def test_ranks_skip_alike() -> None:
    """One rank's NaN makes every rank skip, and all step aside on the same step."""
    losses = [[0.5, NAN], [NAN, 0.5], [0.5, 0.5], [NAN, NAN], [NAN, 0.5]]
    largest: list[float] = []
    guards = [StepGuard(limit=3, per=100, agree=lambda wrong: max(wrong, largest[-1])) for _ in range(2)]
    answers = []
    for step, row in enumerate(losses):
        largest.append(max(0.0 if math.isfinite(loss) else 1.0 for loss in row))
        answers.append([guard.allows(step, loss, 1.0) for guard, loss in zip(guards, row, strict=True)])
    assert answers == [[False, False], [False, False], [True, True], [False, False], [True, True]]


@pytest.mark.parametrize("answer", [NAN, math.inf, 2.0], ids=str)
def test_an_odd_answer_of_the_ranks_is_a_skip(answer: float) -> None:
    """Only a plain zero lets a step pass."""
    assert not StepGuard(agree=lambda wrong: answer).allows(1, 0.5, 1.0)


def test_a_collective_that_fails_is_a_skip() -> None:
    """Ranks that cannot be asked are not assumed to be well; nothing is raised."""

    def broken(wrong: float) -> float:
        raise ConnectionError("rank 3 is gone")

    assert not StepGuard(agree=broken).allows(1, 0.5, 1.0)


@pytest.mark.parametrize("loss", [None, "nan", object()], ids=lambda v: type(v).__name__)
def test_what_is_no_number_is_a_skip(loss: object) -> None:
    """A loss that cannot be read is not applied, and raises nothing."""
    assert not StepGuard().allows(1, loss, 1.0)  # type: ignore[arg-type]


def test_limits_that_make_no_sense_are_said_at_once() -> None:
    """A negative limit or an empty window shows when the trainer starts."""
    with pytest.raises(ValueError, match="limit is at least 0 and per at least 1"):
        StepGuard(limit=-1)
    with pytest.raises(ValueError, match="limit is at least 0 and per at least 1"):
        StepGuard(per=0)
