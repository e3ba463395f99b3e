import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from lessons import loss, rollouts, spoken

from gyrostat_reference import gepo
from gyrostat_reference.credit import Credit, credited
from gyrostat_reference.estimates import Estimates
from gyrostat_reference.gepo import Band
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import lesson
from gyrostat_reference.opefo import Flow
from gyrostat_reference.ranks import Alone

CALM = (1.0,) * 20  # first entropies: H0 = 1, so the floor is the 0.3 that is set
PLAIN = KnobValues(use_gepo=0.0, eta=1.0, adv_eps=1e-6)
# Right and wrong answer of one group, two tokens each; the 5s lie behind the end. With A = 1 and -1 the entropies
# change by -0.3, 0.1 and -0.4, 0.2: D+ = 0.3, D- = 0.7, the flow is -0.4.
SLOPES = [[-0.3, 0.1, 5.0, 5.0], [0.4, -0.2, 5.0, 5.0]]


class Half(Alone):
    """One of two ranks that are threads: what both say meets at a barrier, and a lost one ends the other's wait."""

    world = 2

    def __init__(self, said: dict[int, Sequence[float]], barrier: threading.Barrier, rank: int) -> None:
        self.said, self.barrier, self.rank = said, barrier, rank

    def sums(self, values: Sequence[float]) -> list[float]:
        """Of both, in rank order."""
        self.said[self.rank] = values
        self.barrier.wait()
        sums = [one + other for one, other in zip(self.said[0], self.said[1], strict=True)]
        self.barrier.wait()
        return sums


def _credited(
    entropy: float, knobs: KnobValues = PLAIN, rewards: tuple[float, float] = (1.0, 0.0)
) -> tuple[Credit, Flow]:
    sequences, logits = spoken(2)
    seen = rollouts(sequences, logits, torch.tensor([[1.0, 1, 0, 0]] * 2))
    entropies = torch.full((2, 4), entropy)
    seen = seen._replace(slopes=torch.tensor(SLOPES), policy=seen.policy._replace(entropies=entropies))
    credit, after = credited(seen, torch.tensor([rewards]), Estimates(flow=Flow(entropy, CALM)), knobs, Alone())
    return credit, after.flow


def test_flows_are_sums_over_unmasked_tokens() -> None:
    """D+ and D- are of the answers' own tokens; lambda = 0.4 + (0.3 - 0.2)/0.3 lifts S+ and lowers S-."""
    credit, flow = _credited(0.2)
    assert flow.balance == pytest.approx(-0.4, abs=1e-5)
    assert flow.strength == pytest.approx(0.4 + 1 / 3, abs=1e-5)
    more, less = 1 + flow.strength, 1 - flow.strength
    assert torch.allclose(credit.weights, torch.tensor([[less, more, 1, 1], [less, more, 1, 1]]))


@pytest.mark.parametrize(
    ("entropy", "control", "right"),
    [
        pytest.param(0.2, 0.0, 1.0, id="off"),
        pytest.param(0.9, 1.0, 1.0, id="high above the floor"),
        pytest.param(0.2, 1.0, math.inf, id="poisoned"),
    ],
)
def test_weights_are_ones_to_the_last_bit_where_lambda_is_zero(entropy: float, control: float, right: float) -> None:
    """Then OPEFO changes no bit of the loss."""
    credit, flow = _credited(entropy, PLAIN._replace(token_entropy_flow_control=control), (right, 0.0))
    assert flow.strength == 0.0
    assert torch.equal(credit.weights, torch.ones(2, 4))


def test_poisoned_group_reaches_the_loss_and_no_estimate() -> None:
    """Loss and clip fraction are NaN, lambda is 0, and sigma_B is that of the other group alone."""
    sequences, logits = spoken(4)
    seen = rollouts(sequences, logits)
    credit, after = credited(seen, torch.tensor([[math.inf, 0.0], [1.0, 0.0]]), Estimates(), KnobValues(), Alone())
    assert credit.advantages.degenerate.tolist() == [True, False]
    assert after.sigma == 0.5
    assert after.flow.strength == 0.0
    assert math.isfinite(after.band.low) and math.isfinite(after.band.high)
    rows = lesson(seen, credit.shaped.advantages, credit.advantages.degenerate, credit.shaped.eps_hi, credit.weights, 2)
    found = loss(rows, logits)
    assert found.total.isnan() and found.clip_fraction.isnan()


def test_entropy_that_is_not_finite_moves_no_estimate() -> None:
    """A policy that says NaN leaves band and running entropy as they were, and its tokens get no weight."""
    sequences, logits = spoken(4)
    seen = rollouts(sequences, torch.full_like(logits, torch.nan))
    before = Estimates(band=Band(0.4, 1.2, 11, 1.0), flow=Flow(0.2, CALM))
    credit, after = credited(seen, torch.tensor([[1.0, 0.0], [1.0, 1.0]]), before, KnobValues(), Alone())
    assert after.band == before.band
    assert (after.flow.average, after.flow.first, after.flow.strength) == (0.2, CALM, 0.0)
    assert torch.equal(credit.weights, torch.ones(4, 4))


def test_algorithms_have_their_say_in_order() -> None:
    """GRPO's advantage by the new sigma_B, then GEPO's factors on it, by the band that this batch has moved."""
    sequences, logits = spoken(4)
    seen, knobs = rollouts(sequences, logits), KnobValues(adv_eps=1e-6)
    rewards = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    entropy = seen.policy.entropies.mean(1).view(2, 2).mean(1)
    low = float(entropy[1]) - 0.1  # e = 0.1 and p = 1/2: an easy group
    before = Estimates(sigma=0.3, band=Band(low, low + 1, 11, 1.0))
    credit, after = credited(seen, rewards, before, knobs, Alone())
    assert after.sigma == pytest.approx(0.9 * 0.3 + 0.1 * 0.5)  # 0.32; the group of equals is not in it
    expected = torch.tensor([[0.0, 0.0], [0.5, -0.5]]) / 0.32
    assert torch.allclose(credit.advantages.values, expected, atol=1e-4)
    assert torch.allclose(credit.entropy, entropy)
    shaped = gepo.corrected(after.band, expected, entropy, torch.tensor([1.0, 0.5]), knobs)
    assert torch.allclose(credit.shaped.advantages, shaped.advantages, atol=1e-4)
    assert 0 < float(credit.shaped.advantages[1, 0]) < 0.95 * float(expected[1, 0])
    assert after.flow.average == pytest.approx(float(seen.policy.entropies.mean()))


def test_ranks_see_the_same_estimates_as_one_process() -> None:
    """Two ranks with half of a batch each estimate what one process does of the whole, and each what the other does."""
    sequences, logits = spoken(8)
    rewards = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    before = Estimates(flow=Flow(0.2, CALM))
    _, one = credited(rollouts(sequences, logits), rewards, before, KnobValues(), Alone())
    said: dict[int, Sequence[float]] = {}
    barrier = threading.Barrier(2, timeout=20)

    def half(rank: int) -> Estimates:
        rows, groups = slice(4 * rank, 4 * rank + 4), slice(2 * rank, 2 * rank + 2)
        seen = rollouts(sequences[rows], logits[rows])
        return credited(seen, rewards[groups], before, KnobValues(), Half(said, barrier, rank))[1]

    with ThreadPoolExecutor(2) as pool:
        two, other = pool.map(half, range(2))
    assert two == other
    assert two.sigma == pytest.approx(one.sigma)
    assert two.band == pytest.approx(one.band)
    assert (two.flow.average, two.flow.balance) == pytest.approx((one.flow.average, one.flow.balance), rel=1e-4)
