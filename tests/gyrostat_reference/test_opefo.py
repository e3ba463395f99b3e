import math

import pytest
import torch
from lessons import loss, rollouts, spoken
from torch import Generator, Tensor

from gyrostat_reference import opefo
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import Lesson, lesson
from gyrostat_reference.opefo import Flow, entropy_slope, moved, token_weights

KNOBS = KnobValues()
CALM = (1.0,) * 20  # first entropies: H0 = 1, so the floor is the 0.3 that is set


def _entropy(logits: Tensor) -> Tensor:
    said = logits.log_softmax(-1)
    return -(said.exp() * said).sum(-1)


@pytest.mark.parametrize("advantage", [1.0, -2.0])
@pytest.mark.parametrize("sharp", [pytest.param(0.3, id="flat"), pytest.param(4.0, id="peaked")])
def test_slope_is_what_finite_differences_say(advantage: float, sharp: float) -> None:
    """dH of a policy-gradient step z += eta A (onehot - pi), for every token of the vocabulary, in float64."""
    logits = sharp * torch.randn(12, generator=Generator().manual_seed(0), dtype=torch.float64).expand(12, 12)
    tokens, eta = torch.arange(12), 1e-5
    direction = advantage * (torch.eye(12, dtype=torch.float64) - logits.softmax(-1))
    measured = (_entropy(logits + eta * direction) - _entropy(logits - eta * direction)) / (2 * eta)
    claimed = advantage * entropy_slope(logits.log_softmax(-1), tokens)
    assert torch.allclose(claimed, measured, rtol=1e-6, atol=1e-9)
    assert claimed.min() < 0 < claimed.max()


def test_slopes_of_all_tokens_add_up_to_nothing() -> None:
    """Under the policy's own probabilities the flow of equal advantages is nil: a baseline moves no entropy."""
    said = torch.randn(12, generator=Generator().manual_seed(1), dtype=torch.float64).log_softmax(-1)
    slopes = entropy_slope(said.expand(12, 12), torch.arange(12))
    assert float((said.exp() * slopes).sum()) == pytest.approx(0.0, abs=1e-15)


def test_likely_token_rewarded_lowers_entropy() -> None:
    """The sign by hand: at probabilities 0.9 and 0.1, more of the first is less entropy, more of the second more."""
    said = torch.tensor([0.9, 0.1]).log().expand(2, 2)
    likely, rare = entropy_slope(said, torch.tensor([0, 1])).tolist()
    assert likely < 0 < rare


def test_impossible_token_contributes_nothing() -> None:
    """A token masked out with minus infinity leaves the slopes of the others what they would be without it."""
    said = torch.tensor([0.9, 0.1, 0.0]).log().expand(2, 3)
    without = entropy_slope(said[:, :2], torch.tensor([0, 1]))
    assert torch.allclose(entropy_slope(said, torch.tensor([0, 1])), without)


@pytest.mark.parametrize(
    ("average", "up", "down", "strength"),
    [
        # f = 0.3, balance (0.3 - 0.7)/1 = -0.4, so lambda* = 0.4
        pytest.param(0.70, 0.3, 0.7, 0.0, id="above 2f nothing"),
        pytest.param(0.45, 0.3, 0.7, 0.2, id="half-way between: half of 0.4"),
        pytest.param(0.30, 0.3, 0.7, 0.4, id="at f all of 0.4"),
        pytest.param(0.15, 0.3, 0.7, 0.9, id="at f/2 all of 0.4, and 1/2 beyond"),
        pytest.param(0.03, 0.3, 0.7, 0.95, id="0.4 + 0.9 is more than lambda_max"),
        pytest.param(0.30, 0.7, 0.3, 0.0, id="entropy that flows in is not held back"),
        pytest.param(0.15, 0.7, 0.3, 0.1, id="below f: -0.4 + 1/2"),
        pytest.param(0.15, 0.0, 0.0, 0.5, id="no flow: the push alone"),
    ],
)
def test_lambda_by_hand(average: float, up: float, down: float, strength: float) -> None:
    """lambda = clip(clip((2f - Hbar)/f, 0, 1) lambda* + max(0, (f - Hbar)/f), 0, lambda_max)."""
    assert moved(Flow(average, CALM), average, up, down, KNOBS).strength == pytest.approx(strength, abs=1e-9)


def test_lambda_max_and_the_switch_hold() -> None:
    """What is set from outside bounds lambda, and turns it off; the flow is measured all the same."""
    flow = Flow(0.15, CALM)
    assert moved(flow, 0.15, 0.3, 0.7, KNOBS._replace(lambda_max=0.3)).strength == 0.3
    off = moved(flow, 0.15, 0.3, 0.7, KNOBS._replace(token_entropy_flow_control=0.0))
    assert off.strength == 0.0
    assert off.balance == pytest.approx(-0.4)


@pytest.mark.parametrize(
    ("up", "down"), [(math.nan, 0.7), (0.3, math.nan), (math.inf, 0.7), (0.3, math.inf), (math.inf, math.inf)]
)
def test_flow_that_is_not_finite_gives_no_lambda(up: float, down: float) -> None:
    """Python's min and max would turn NaN into lambda_max; nothing of it stays for the next step."""
    flow = Flow(0.15, CALM, strength=0.5)
    poisoned = moved(flow, 0.15, up, down, KNOBS)
    assert poisoned.strength == 0.0
    assert poisoned.balance != poisoned.balance
    assert moved(poisoned, 0.15, 0.3, 0.7, KNOBS).strength == pytest.approx(0.9)


def test_entropy_that_is_not_finite_changes_nothing() -> None:
    """Average, first entropies and bonus are what they were: the bonus is not stepped on the word of a NaN."""
    flow = Flow(0.15, (1.0, 0.9), alpha=0.02)
    for bad in (math.nan, math.inf):
        assert moved(flow, bad, math.nan, math.nan, KNOBS)[:3] == flow[:3]


def test_start_is_the_median_of_the_first_twenty_finite_entropies() -> None:
    """H0 waits for finite steps, then stays; the running entropy keeps four fifths."""
    flow = Flow()
    for step in range(30):
        flow = moved(flow, math.nan if step == 3 else 0.5 + step / 100, 0.1, 0.1, KNOBS)
    # steps 0 to 20 without the third: 0.50 .. 0.70 without 0.53, twenty; the middle two are 0.60 and 0.61
    assert len(flow.first) == 20
    assert flow.start == pytest.approx(0.605)
    assert moved(Flow(0.5, CALM), 1.0, 0.1, 0.1, KNOBS).average == pytest.approx(0.6)  # 0.8 * 0.5 + 0.2


@pytest.mark.parametrize(
    ("first", "floor"),
    [
        pytest.param((), 0.3, id="before the first step what is set"),
        pytest.param((0.25,), 0.125, id="a run that starts at 0.25 is not alarmed from step 0"),
        pytest.param((2.0, 2.0), 0.3, id="never above what is set"),
    ],
)
def test_floor_is_at_most_half_of_the_start(first: tuple[float, ...], floor: float) -> None:
    """f = min(0.3, 0.5 H0)."""
    assert opefo.floor(Flow(first=first), KNOBS) == pytest.approx(floor)


def test_policy_without_entropy_is_no_division_by_zero() -> None:
    """A reference policy that has collapsed already makes the floor 0; the trainer goes on."""
    assert moved(Flow(), 0.0, 0.0, 0.0, KNOBS).strength == 0.0


@pytest.mark.parametrize(
    ("average", "alpha", "after", "changes"),
    [
        pytest.param(0.32, 0.02, 0.024, {}, id="rises below 1.1 f"),
        pytest.param(0.38, 0.02, 0.02, {}, id="holds in between"),
        pytest.param(0.45, 0.02, 0.016, {}, id="falls above 1.4 f"),
        pytest.param(0.45, 0.001, 0.0, {}, id="not below 0"),
        pytest.param(0.32, 0.1, 0.1, {}, id="not above alpha_max"),
        pytest.param(1.51, 0.1, 0.0, {}, id="gone at once where entropy explodes"),
        pytest.param(0.32, 0.01, 0.011, {"alpha_max": 0.02}, id="a step is at most a twentieth of alpha_max"),
        pytest.param(0.32, 0.05, 0.0, {"alpha_max": 0.0}, id="alpha_max 0 is no controller"),
    ],
)
def test_bonus_by_hand(average: float, alpha: float, after: float, changes: dict[str, float]) -> None:
    """The floor controller: alpha up by 0.004 below 0.33 nats, down above 0.42, for f = 0.3 and H0 = 1."""
    flow = Flow(average, CALM, alpha)
    assert moved(flow, average, 0.1, 0.1, KNOBS._replace(**changes)).alpha == pytest.approx(after)


def _loss_with(rows: Lesson, weights: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.clone().requires_grad_()
    total = loss(rows._replace(weights=weights), logits).total
    torch.autograd.backward(total)
    assert logits.grad is not None
    return total.detach(), logits.grad


def test_lambda_zero_changes_no_bit() -> None:
    """Loss and gradient are those without OPEFO, to the last bit, by its switch and high above the floor alike."""
    sequences, logits = spoken(4)
    clip, none = torch.full((2,), 0.28), torch.zeros(2, dtype=torch.bool)
    advantages = torch.tensor([[1.0, -1.0], [0.5, -0.5]])
    rows = lesson(rollouts(sequences, logits), advantages, none, clip, torch.ones(4, 4), 2)
    plain = _loss_with(rows, torch.ones(4, 4), logits)
    changes = torch.randn(4, 4, generator=Generator().manual_seed(3))
    for same in (token_weights(changes, 0.0), token_weights(torch.zeros(4, 4), 0.5)):
        assert all(map(torch.equal, _loss_with(rows, same, logits), plain))
    assert not torch.equal(_loss_with(rows, token_weights(changes, 0.5), logits)[1], plain[1])


def test_measures() -> None:
    """Flow, lambda, bonus and floor are exported; before a first flow there is none to tell."""
    flow = Flow(0.3, CALM, 0.02, 0.4, -0.4)
    expected = {"entropy_flow": -0.4, "opefo_lambda": 0.4, "entropy_bonus": 0.02, "entropy_floor": 0.3}
    assert opefo.measures(flow, KNOBS) == expected
    assert "entropy_flow" not in opefo.measures(flow._replace(balance=math.nan), KNOBS)


def test_answers_that_grow_end_the_bonus() -> None:
    """30 % more tokens an answer than the running mean: entropy is running away before it shows."""
    flow = moved(Flow(0.2, CALM, 0.02), 0.2, 0.1, 0.1, KNOBS, 3.0)
    assert flow.alpha > 0.02 and flow.length == 3.0
    assert moved(flow, 0.2, 0.1, 0.1, KNOBS, 3.8).alpha > flow.alpha
    grown = moved(flow, 0.2, 0.1, 0.1, KNOBS, 4.0)
    assert grown.alpha == 0.0 and grown.length == pytest.approx(3.2)
