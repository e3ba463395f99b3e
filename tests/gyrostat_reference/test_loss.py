import math

import pytest
import torch
from lessons import BARE, loss, output, rollouts, spoken
from torch import Tensor

from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import Lesson, Minibatch, k1, k3, lesson, loss_of, mean_over, taken
from gyrostat_reference.rollout import score


def _lesson(logits: Tensor, sequences: Tensor, advantages: Tensor, degenerate: list[bool] | None = None) -> Lesson:
    groups, size = advantages.shape
    masked = torch.tensor(degenerate or [False] * groups)
    clips = torch.full((groups,), 0.28, dtype=logits.dtype)
    return lesson(rollouts(sequences, logits), advantages, masked, clips, torch.ones(groups * size, 4), size)


def _one_token(ratio: float, advantage: float, eps_hi: float) -> tuple[Lesson, Tensor]:
    """A lesson of one token that is ``ratio`` times as likely as when it was drawn."""
    sequences, logits = spoken(1)
    rows = _lesson(logits, sequences, torch.tensor([[advantage]]))
    first = torch.tensor([[1.0, 0, 0, 0]])
    return rows._replace(
        mask=first, learn=first, old=rows.old - math.log(ratio), eps_hi=torch.tensor([[eps_hi]])
    ), logits


@pytest.mark.parametrize(
    ("ratio", "advantage", "eps_hi", "total", "clipped"),
    [
        pytest.param(1.25, 1.0, 0.28, -1.25, 0.0, id="gain within the range"),
        pytest.param(1.5, 1.0, 0.28, -1.28, 1.0, id="gain beyond it"),
        pytest.param(1.5, 1.0, 0.35, -1.35, 1.0, id="gain of a hard group, whose clip is wider"),
        pytest.param(0.5, 1.0, 0.28, -0.5, 0.0, id="gain that went down is free to come back"),
        pytest.param(0.9, -1.0, 0.28, 0.9, 0.0, id="loss within the range"),
        pytest.param(0.5, -1.0, 0.28, 0.8, 1.0, id="loss beyond it: 1 - eps_lo"),
        pytest.param(1.5, -1.0, 0.28, 1.5, 0.0, id="loss that went up is free to come down"),
    ],
)
def test_clip_by_hand(ratio: float, advantage: float, eps_hi: float, total: float, clipped: float) -> None:
    """max(-A ratio, -A clip(ratio, 1 - eps_lo, 1 + eps_hi of the group)), and what of it was clipped."""
    rows, logits = _one_token(ratio, advantage, eps_hi)
    found = loss(rows, logits)
    assert float(found.total) == pytest.approx(total, rel=1e-5)
    assert float(found.clip_fraction) == clipped
    logits.requires_grad_()
    torch.autograd.backward(loss(rows, logits).total)
    assert logits.grad is not None
    assert bool(logits.grad.any()) is not bool(clipped)


def test_each_group_has_its_own_upper_clip() -> None:
    """``lesson`` gives every completion the clip of its group, the groups' rows lying together."""
    sequences, logits = spoken(4)
    clips = torch.tensor([0.2, 0.35])
    rows = lesson(
        rollouts(sequences, logits), torch.zeros(2, 2), torch.tensor([False, True]), clips, torch.ones(4, 4), 2
    )
    assert rows.eps_hi.flatten().tolist() == pytest.approx([0.2, 0.2, 0.35, 0.35])
    assert rows.learn.any(1).tolist() == [True, True, False, False]
    assert [part.eps_hi.flatten().tolist() for part in taken(rows, [torch.tensor([3, 0])])] == [
        pytest.approx([0.35, 0.2])
    ]


def test_log_ratio_is_capped() -> None:
    """A token that became e^30 times as likely weighs e^2 under a cap of 2, and no infinity in float32."""
    rows, logits = _one_token(math.exp(30), -1.0, 0.28)
    assert float(loss(rows, logits, BARE._replace(ratio_cap=2.0)).total) == pytest.approx(math.exp(2), rel=1e-5)


def test_k1_and_k3_by_hand() -> None:
    """From 1/2 to 1/4: k1 = ln 2, k3 = 1/2 + ln 2 - 1; from 1/4 to 1/2: k1 = -ln 2, k3 = 2 - ln 2 - 1."""
    policy, base = torch.tensor([0.5, 0.25]).log(), torch.tensor([0.25, 0.5]).log()
    assert k1(policy, base).tolist() == pytest.approx([math.log(2), -math.log(2)])
    assert k3(policy, base).tolist() == pytest.approx([math.log(2) - 0.5, 1 - math.log(2)])


def test_k1_and_k3_are_unbiased() -> None:
    """Over all tokens by the policy's probabilities both come to KL(policy, base), in this direction."""
    policy, base = (spoken(1, seed, torch.float64)[1][0, 0].log_softmax(-1) for seed in (1, 2))
    kl = float(torch.nn.functional.kl_div(base, policy, reduction="sum", log_target=True))
    for estimate in (k1, k3):
        assert float((policy.exp() * estimate(policy, base)).sum()) == pytest.approx(kl)


def test_rare_token_does_not_overflow() -> None:
    """A token the base thinks e^100 times as likely counts 10 nats at most, and has a finite gradient."""
    policy = torch.tensor([-101.0, -25.0], requires_grad=True)
    found = k3(policy, torch.tensor([-1.0, -1.0]))
    assert found.tolist() == [10.0, 10.0]
    torch.autograd.backward(found.sum())
    assert policy.grad is not None and policy.grad.isfinite().all()
    assert k3(torch.tensor([math.nan]), torch.tensor([-1.0])).isnan().all()


def test_loss_is_the_mean_over_the_tokens_of_all_ranks() -> None:
    """Two ranks with 8 and 4 tokens: each divides by 6, and the mean of both is the one process's mean."""
    sequences, logits = spoken(3)
    knobs = BARE._replace(kl_coef=0.05)
    rows = _lesson(logits, sequences, torch.tensor([[1.0], [-0.5], [2.0]]))
    moved = logits + 0.3 * spoken(3, seed=4)[1]
    whole = loss(rows, moved, knobs, bonus=0.1)
    parts = [
        loss_of(output(moved[own]), Minibatch(part, 6.0, 6.0), knobs, 0.1)
        for part, own in zip(taken(rows, [torch.tensor([0, 1]), torch.tensor([2])]), ([0, 1], [2]), strict=True)
    ]
    assert float(whole.total) == pytest.approx(sum(float(part.total) for part in parts) / 2, rel=1e-5)
    assert float(whole.clip_fraction) == pytest.approx(sum(float(part.clip_fraction) for part in parts) / 2)


def test_degenerate_group_leaves_the_denominator() -> None:
    """A group without spread makes the loss neither larger nor smaller: the other's is not diluted."""
    sequences, logits = spoken(4)
    both = _lesson(logits, sequences, torch.tensor([[1.0, -0.5], [0.0, 0.0]]), [False, True])
    alone = _lesson(logits[:2], sequences[:2], torch.tensor([[1.0, -0.5]]))
    assert float(loss(both, logits).total) == pytest.approx(float(loss(alone, logits[:2]).total)) != 0.0


@pytest.mark.parametrize(("advantage", "total"), [(0.0, 0.0), (math.nan, math.nan)])
def test_nothing_to_learn_is_zero_and_poison_under_the_mask_still_shows(advantage: float, total: float) -> None:
    """A minibatch of masked groups alone is no 0/0; NaN times a mask of 0 is NaN, on purpose."""
    sequences, logits = spoken(2)
    rows = _lesson(logits, sequences, torch.full((1, 2), advantage), [True])
    found = loss(rows, logits)
    assert [float(found.total), float(found.clip_fraction)] == pytest.approx([total, total], nan_ok=True)
    assert float(mean_over(torch.tensor([1.0, advantage]), torch.tensor([1.0, 0.0]))) == pytest.approx(
        total + 1.0, nan_ok=True
    )


def test_bonus_and_weights_and_kl_enter_as_said() -> None:
    """Minus alpha times the mean entropy, plus beta times the mean k3; a weight multiplies its token's term."""
    sequences, logits = spoken(2)
    rows = _lesson(logits, sequences, torch.tensor([[1.0, -0.5]]))
    moved = logits + 0.3 * spoken(2, seed=4)[1]
    said = score(moved, sequences)
    bare = float(loss(rows, moved).total)
    assert float(loss(rows, moved, bonus=0.1).total) == pytest.approx(bare - 0.1 * float(said.entropies.mean()))
    anchored = float(loss(rows, moved, BARE._replace(kl_coef=0.05)).total)
    assert anchored == pytest.approx(bare + 0.05 * float(k3(said.log_probs, rows.base).mean()), rel=1e-5)
    assert float(loss(rows._replace(weights=3 * rows.weights), moved).total) == pytest.approx(3 * bare, abs=1e-5)


def test_bonus_and_kl_are_of_degenerate_groups_too() -> None:
    """Where all answers agree there is no advantage, and entropy and anchor matter all the more."""
    sequences, logits = spoken(2)
    rows = _lesson(logits, sequences, torch.tensor([[0.0, 0.0]]), [True])
    moved = logits + 0.3 * spoken(2, seed=4)[1]
    said = score(moved, sequences)
    expected = 0.05 * k3(said.log_probs, rows.base).mean() - 0.1 * said.entropies.mean()
    assert float(loss(rows, moved, BARE._replace(kl_coef=0.05), bonus=0.1).total) == pytest.approx(float(expected))


def test_router_losses_are_added() -> None:
    """The balance loss by router_aux_coef, the z loss by router_z_coef."""
    sequences, logits = spoken(1)
    batch = Minibatch(_lesson(logits, sequences, torch.tensor([[0.0]])), 4.0, 4.0)
    knobs = KnobValues(router_aux_coef=0.1, router_z_coef=0.01)
    assert float(loss_of(output(logits, balance=2.0, z=30.0), batch, knobs, 0.0).total) == pytest.approx(0.5)


def test_a_step_down_the_bonus_raises_entropy() -> None:
    """The floor controller pushes the right way."""
    sequences, logits = spoken(4)
    rows = _lesson(logits, sequences, torch.zeros(4, 1))
    logits.requires_grad_()
    torch.autograd.backward(loss(rows, logits, bonus=0.1).total)
    assert logits.grad is not None
    after = score((logits - logits.grad).detach(), sequences).entropies
    assert (after > score(logits.detach(), sequences).entropies).all()


def test_gradient_is_what_finite_differences_say() -> None:
    """Of the whole loss, clipped and unclipped tokens, KL and bonus together, in float64."""
    sequences, logits = spoken(3, dtype=torch.float64)
    rows = _lesson(logits, sequences, torch.tensor([[1.0], [-1.0], [0.5]], dtype=torch.float64))
    moved = (logits + 0.5 * spoken(3, seed=5, dtype=torch.float64)[1]).requires_grad_()
    knobs = BARE._replace(kl_coef=0.05)
    assert 0 < float(loss(rows, moved.detach(), knobs).clip_fraction) < 1
    assert torch.autograd.gradcheck(lambda given: loss(rows, given, knobs, bonus=0.1).total, (moved,))
