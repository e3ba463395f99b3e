import math
from collections import Counter

import pytest
import torch
from lessons import BARE, loss
from torch import Generator, Tensor

from gyrostat_reference import pivotrl, task
from gyrostat_reference.loss import lesson
from gyrostat_reference.model import LoopMoE, Shape
from gyrostat_reference.pivotrl import Pivot, Pool, States, candidates, drawn, is_due, kept, profiled, without
from gyrostat_reference.rollout import Drawn, go_on, scored

EIGHTHS = torch.tril(torch.ones(9, 8), -1)  # row k: k right of 8


def _prompt(item: int) -> tuple[int, ...]:
    return (task.FIRST_COUNT + item % 3, item % 7, task.EQUALS)


POOL = Pool(tuple(Pivot((*_prompt(item), item), item) for item in range(7)), 10, 0.45, 0.2)


def _random() -> Generator:
    return Generator().manual_seed(0)


@pytest.mark.parametrize(
    ("threshold", "hardest", "which"),
    [
        # v = k(8 - k)/64: 0, 0.109, 0.1875, 0.234, 0.25, 0.234, 0.1875, 0.109, 0
        pytest.param(0.15, 0.6, {2, 3, 4}, id="as founded"),
        pytest.param(0.15, 2.0, {2, 3, 4, 5, 6}, id="by variance alone"),
        pytest.param(0.1875, 0.6, {2, 3, 4}, id="the threshold itself is enough"),
        pytest.param(0.05, 0.6, {1, 2, 3, 4}, id="least variance_threshold"),
        pytest.param(0.24, 0.6, {4}, id="largest variance_threshold"),
        pytest.param(0.15, 0.5, {2, 3}, id="least difficulty_threshold: one half is not below it"),
        pytest.param(0.15, 0.8, {2, 3, 4, 5, 6}, id="largest difficulty_threshold"),
    ],
)
def test_which_of_eight_make_a_pivot(threshold: float, hardest: float, which: set[int]) -> None:
    """A state is kept iff mu (1 - mu) >= variance_threshold and mu < difficulty_threshold."""
    assert set(kept(EIGHTHS, threshold, hardest).nonzero().flatten().tolist()) == which


def test_false_pivots() -> None:
    """A state that succeeds one time in twenty passes for a pivot with 5.7 %, exactly by the binomial."""
    chance = [math.comb(8, k) * 0.05**k * 0.95 ** (8 - k) for k in range(9)]
    assert sum(p for p, keep in zip(chance, kept(EIGHTHS, 0.15, 0.6), strict=True) if keep) == pytest.approx(
        0.0572, abs=1e-4
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_reward_that_is_not_finite_never_makes_a_pivot(bad: float) -> None:
    """A broken verifier leaves the pool empty, whatever the other seven say."""
    right = EIGHTHS[[3, 3]]
    right[0, 7] = bad
    assert kept(right, 0.05, 0.8).tolist() == [False, True]


def _trajectories(rows: int) -> tuple[Tensor, Tensor]:
    """Sequences of three tokens, each of another prompt, and their mask."""
    sequences = torch.tensor([[*_prompt(row), row, 1, 2, task.END] for row in range(rows)])
    return sequences, torch.ones(rows, task.ANSWER_LENGTH)


@pytest.mark.parametrize(
    ("count", "depths"),
    [
        pytest.param(9, {1: 3, 2: 3, 3: 3}, id="a third each"),
        pytest.param(11, {1: 4, 2: 4, 3: 3}, id="what is left over goes to the first"),
        pytest.param(50, {1: 7, 2: 7, 3: 7}, id="no more than there are"),
    ],
)
def test_candidates_come_from_every_tercile_and_once(count: int, depths: dict[int, int]) -> None:
    """Three depths of seven trajectories are the terciles: equal shares, no place twice, never the bare prompt."""
    sequences, mask = _trajectories(7)
    states = candidates(sequences, torch.arange(7), mask, count, _random())
    assert Counter(states.depths.tolist()) == depths
    places = list(zip(states.items.tolist(), states.depths.tolist(), strict=True))
    assert len(set(places)) == len(places)
    assert all(torch.equal(row, sequences[item]) for row, item in zip(states.sequences, states.items, strict=True))


def test_candidates_of_nothing() -> None:
    """Trajectories without a token of their own have no state to go on from, and the pool stays empty."""
    sequences, mask = _trajectories(2)
    states = candidates(sequences, torch.arange(2), 0 * mask, 50, _random())
    pool = profiled(POOL, states, lambda s, d: s, lambda s, i: s, 60, 0.15, 0.6)
    assert (len(states.depths), pool.pivots, pool.profiled) == (0, (), 60)


def test_a_state_that_several_answers_share_is_drawn_once() -> None:
    """Eight answers to one prompt begin in the same state: drawn eight times, it would be profiled eight times."""
    sequences, mask = (rows[:1].repeat(8, 1) for rows in _trajectories(1))
    states = candidates(sequences, torch.zeros(8, dtype=torch.int64), mask, 50, _random())
    prefixes = [tuple(row[: 3 + depth].tolist()) for row, depth in zip(states.sequences, states.depths, strict=True)]
    assert len(set(prefixes)) == len(prefixes)


def _profiled(pool: Pool, right: list[int], step: int = 20) -> Pool:
    """The pool profiled on one state for each entry, of which so many of eight are right."""
    sequences, _ = _trajectories(len(right))
    states = States(sequences, torch.arange(len(right)), torch.ones(len(right), dtype=torch.int64))
    rewards = EIGHTHS[right].reshape(-1)
    return profiled(pool, states, lambda sequences, depths: sequences, lambda s, i: rewards, step, 0.15, 0.6)


def test_profile_keeps_prefix_item_and_spread() -> None:
    """Of four states two are pivots: prefix up to the depth, yield 1/2, mean of sqrt(12)/8 and 1/2 as spread."""
    pool = _profiled(POOL, [0, 2, 4, 8])
    assert pool.pivots == (Pivot((*_prompt(1), 1), 1), Pivot((*_prompt(2), 2), 2))
    assert (pool.profiled, pool.share, pool.odd) == (20, 0.5, 0)
    assert pool.spread == pytest.approx((math.sqrt(12) / 8 + 0.5) / 2)
    assert pivotrl.measures(pool) == {"pivot_pool": 2.0, "pivot_yield": 0.5, "pivot_yield_odd": 0.0}


def test_continuations_go_on_from_each_state_eight_times() -> None:
    """A real policy continues: what is given stays, and each state's eight are rewarded together."""
    model = LoopMoE(Shape(width=8, heads=2, expert_width=4, experts=4, loops=1))
    sequences, _ = _trajectories(2)
    seen: list[tuple[Tensor, Tensor]] = []

    def verify(done: Tensor, items: Tensor) -> Tensor:
        seen.append((done, items))
        return (torch.arange(16) < 2).float()

    states = States(sequences, torch.tensor([40, 41]), torch.tensor([1, 2]))
    pool = profiled(Pool(), states, lambda s, d: go_on(model, s, d, _random()).sequences, verify, 1, 0.15, 0.6)
    done, items = seen[0]
    assert items.tolist() == [40] * 8 + [41] * 8
    assert (done[:8, 3] == 0).all() and (done[8:, 3:5] == torch.tensor([1, 1])).all()
    assert len(set(map(tuple, done[:8].tolist()))) > 1
    assert [pivot.item for pivot in pool.pivots] == [40]


def test_yield_that_is_odd_twice_running_is_told() -> None:
    """Nothing kept, or nearly all, once is chance and twice a verifier set up wrong; a usual yield forgives."""
    pool, told = POOL, []
    for right in ([0, 8], [3, 3], [0, 0], [0, 3], [8, 8]):
        pool = _profiled(pool, right)
        told.append(pivotrl.measures(pool)["pivot_yield_odd"])
    assert told == [0.0, 1.0, 1.0, 0.0, 0.0]


def test_empty_pool_gives_ordinary_prompts() -> None:
    """A profile without a pivot drops the stale ones: nothing is drawn, and the step goes on without."""
    empty = _profiled(POOL, [0, 8, 8])
    assert empty.pivots == ()
    assert drawn(empty, 16, _random()) == []


@pytest.mark.parametrize(("groups", "pivots"), [(16, 4), (4, 1), (3, 0), (100, 7)])
def test_pivots_are_at_most_a_quarter_and_none_twice(groups: int, pivots: int) -> None:
    """For four ordinary groups one pivot's, a fifth of the batch; no more than the pool has."""
    found = drawn(POOL, groups, _random())
    assert len(found) == pivots == len(set(found))
    assert set(found) <= set(POOL.pivots)


@pytest.mark.parametrize(
    ("pool", "step", "spread", "due"),
    [
        pytest.param(Pool(), 1, None, True, id="never profiled"),
        pytest.param(POOL, 59, None, False, id="49 steps ago"),
        pytest.param(POOL, 60, None, True, id="50 steps ago"),
        pytest.param(POOL, 11, 0.149, True, id="less than a third of the spread is left"),
        pytest.param(POOL, 11, 0.151, False, id="more than a third is left"),
        pytest.param(POOL, 11, 0.0, True, id="solved"),
        pytest.param(POOL._replace(spread=math.nan), 11, 0.0, False, id="was empty when profiled"),
    ],
)
def test_when_profiling_is_due(pool: Pool, step: int, spread: float | None, due: bool) -> None:
    """At first, every fifty steps, and when the pivots are used up."""
    assert is_due(pool, step, spread) is due


def test_item_that_is_passed_over_does_not_come_back_by_a_prefix() -> None:
    """Passing over data removes its pivots; the others stay, and so does what is known of the pool."""
    left = without(POOL, frozenset({2, 5, 400}))
    assert [pivot.item for pivot in left.pivots] == [0, 1, 3, 4, 6]
    assert left[1:] == POOL[1:]


def test_only_tokens_behind_the_prefix_are_learnt() -> None:
    """Where two answer tokens were given, neither mask nor loss touches them."""
    model = LoopMoE(Shape(width=8, heads=2, expert_width=4, experts=4, loops=1))
    sequences, _ = _trajectories(2)
    seen = scored(model, model, Drawn(sequences, torch.zeros(2, 4)), torch.tensor([2, 0]))
    assert seen.mask.tolist() == [[0, 0, 1, 1], [1, 1, 1, 1]]
    advantages = torch.tensor([[1.0, -1.0]])
    rows = lesson(seen, advantages, torch.tensor([False]), torch.tensor([0.28]), torch.ones(2, 4), 2)
    logits = seen.output.logits.clone().requires_grad_()
    torch.autograd.backward(loss(rows, logits, BARE._replace(kl_coef=0.05), bonus=0.1).total)
    assert logits.grad is not None
    touched = logits.grad.abs().sum(-1)[:, task.PROMPT_LENGTH - 1 :] > 0
    assert touched.tolist() == [[False, False, True, True], [True] * 4]
