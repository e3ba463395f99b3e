import math

import pytest
import torch
from lessons import BARE, loss, rollouts, spoken
from torch import Generator, Tensor

from gyrostat_reference import gepo
from gyrostat_reference.advantage import group_advantages
from gyrostat_reference.gepo import Band, corrected, factors, group_entropy, moved, upper_clip
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import lesson
from gyrostat_reference.rollout import score

# Three groups that the worked example follows throughout, in a band of 0.4 to 1.2 nats:
#   Hg   e = (Hg - 0.4)/0.8   p     d = (e + 1 - p)/2
#   0.4  0                    3/4   0.125   easy, below 0.4
#   0.8  1/2                  1/2   0.5     neither
#   1.2  1                    1/4   0.875   hard, above 0.6
ENTROPY, PASS_RATE = torch.tensor([0.4, 0.8, 1.2]), torch.tensor([0.75, 0.5, 0.25])
BAND = Band(0.4, 1.2, seen=11, ramp=1.0)
# (r - mu) / 0.5, for a sigma_B of 0.5 and no eps
PLAIN = torch.tensor([[0.5, 0.5, 0.5, -1.5], [1.0, 1.0, -1.0, -1.0], [1.5, -0.5, -0.5, -0.5]])


def _spread(band: Band, entropies: list[float], on: bool = True) -> Band:
    return moved(band, len(entropies), sum(entropies), sum(h * h for h in entropies), on)


def test_group_entropy_counts_answers_alike_whatever_their_length() -> None:
    """Hg is the mean over answers of each one's mean over its own tokens; what is masked does not count."""
    entropies = torch.tensor([[0.2, 0.4, 9.0], [0.5, 9.0, 9.0], [0.6, 0.9, 0.9], [0.8, 9.0, 9.0]])
    mask = torch.tensor([[1.0, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 0]])
    # (0.3 + 0.5)/2 and (0.8 + 0.8)/2; a mean over tokens would give 1.1/3 for the first
    assert group_entropy(entropies, mask, 2).tolist() == pytest.approx([0.4, 0.8])


def test_band_is_mean_and_population_deviation_and_keeps_nine_tenths() -> None:
    """The first batch sets the band, the second moves it by a tenth of the way."""
    s = 0.4 * math.sqrt(2 / 3)  # of 0.4, 0.8, 1.2: squares 0.16, 0, 0.16 over three
    first = _spread(Band(), [0.4, 0.8, 1.2])
    assert (first.low, first.high) == pytest.approx((0.8 - s, 0.8 + s))
    second = _spread(first, [0.2, 0.6, 1.0])  # mean 0.6, the same s: 0.9 * 0.8 + 0.1 * 0.6 = 0.78
    assert (second.low, second.high, second.seen) == pytest.approx((0.78 - s, 0.78 + s, 2))


@pytest.mark.parametrize(
    ("count", "total", "squares"),
    [
        pytest.param(3, math.nan, math.nan, id="NaN"), pytest.param(3, math.inf, math.inf, id="infinite"),
        pytest.param(3, 2.4, math.inf, id="squares infinite"), pytest.param(0, 0.0, 0.0, id="no group"),
    ],
)  # fmt: skip
def test_band_survives_a_batch_that_is_not_finite(count: int, total: float, squares: float) -> None:
    """One poisoned batch does not stay in the band for ever."""
    assert moved(BAND, count, total, squares, True) == BAND


def test_worked_example() -> None:
    """Gains of the easy group and losses of the hard one are attenuated; the hard one's upper clip is wider."""
    shaped = corrected(BAND, PLAIN, ENTROPY, PASS_RATE, KnobValues())
    assert shaped.difficulty.tolist() == pytest.approx([0.125, 0.5, 0.875], abs=1e-5)
    # easy: (0.4 - 0.125)/0.4 = 0.6875, so 1 - 0.5 * 0.6875 = 0.65625 on gains
    # hard: (0.875 - 0.6)/0.4 = 0.6875, so 1 - 0.25 * 0.6875 = 0.828125 on losses
    expected = [[0.328125] * 3 + [-1.5], [1.0, 1.0, -1.0, -1.0], [1.5] + [-0.4140625] * 3]
    assert torch.allclose(shaped.advantages, torch.tensor(expected), atol=1e-5)
    # 0.28 (1 + 0.4 (d - 1/2)): 0.28 * 0.85, 0.28, 0.28 * 1.15
    assert shaped.eps_hi.tolist() == pytest.approx([0.238, 0.28, 0.322], abs=1e-6)


def test_measures_of_the_worked_example() -> None:
    """Band, shares, mean factors and the correlation of entropy with failure are exported under fixed names."""
    shaped = corrected(BAND, PLAIN, ENTROPY, PASS_RATE, KnobValues())
    assert gepo.measures(BAND, PLAIN, shaped, ENTROPY, PASS_RATE, 0.6) == pytest.approx({
        "gepo_tau_lo": 0.4, "gepo_tau_hi": 1.2, "gepo_frac_easy": 1 / 3, "gepo_frac_hard": 1 / 3,
        "gepo_factor_positive": (3 * 0.65625 + 3) / 6, "gepo_factor_negative": (3 + 3 * 0.828125) / 6,
        "gepo_entropy_difficulty_corr": 1.0,  # 0.4, 0.8, 1.2 against 1/4, 1/2, 3/4
    }, abs=1e-5)  # fmt: skip


def test_measures_of_nothing_are_left_out() -> None:
    """Where no answer was better than another, there is no factor to tell, and no 0/0 in its place."""
    nothing = torch.zeros(2, 4)
    shaped = corrected(BAND, nothing, ENTROPY[:2], torch.ones(2), KnobValues())
    names = gepo.measures(BAND, nothing, shaped, ENTROPY[:2], torch.ones(2), 0.6)
    assert set(names) == {"gepo_tau_lo", "gepo_tau_hi", "gepo_frac_easy", "gepo_frac_hard"}


def test_difficulty_stays_within_the_band() -> None:
    """Entropy outside of the band counts as its edge; without a pass rate it is all there is."""
    entropy = torch.tensor([0.0, 0.8, 5.0])
    assert gepo.difficulty(BAND, entropy, None).tolist() == pytest.approx([0.0, 0.5, 1.0], abs=1e-5)


def test_losses_are_never_attenuated_more_than_gains() -> None:
    """a_hard counts for at most a_easy: 1 - 0.1 * 0.6875, not 1 - 0.5 * 0.6875."""
    found = factors(PLAIN, torch.tensor([0.125, 0.5, 0.875]), 0.6, a_easy=0.1, a_hard=0.5)
    assert float(found[2, 1]) == pytest.approx(1 - 0.1 * 0.6875)


@pytest.mark.parametrize(
    ("difficulty", "eps_hi", "found"),
    [
        pytest.param(0.0, 0.2, 0.2, id="0.2 * 0.8 is too narrow"),
        pytest.param(1.0, 0.32, 0.35, id="0.32 * 1.2 is too wide"),
        pytest.param(1.0, 0.28, 0.336, id="0.28 * 1.2 is neither"),
    ],
)
def test_upper_clip_keeps_its_range(difficulty: float, eps_hi: float, found: float) -> None:
    """Whatever the difficulty, the upper clip is from 0.2 to 0.35."""
    assert float(upper_clip(torch.tensor([difficulty]), eps_hi, 0.4)) == pytest.approx(found)


def test_nothing_is_shaped_in_the_first_ten_steps() -> None:
    """The band is not known yet: the tenth step's advantages are the same object, the eleventh's are shaped."""
    band = Band()
    for _ in range(10):
        band = _spread(band, [0.4, 0.8, 1.2])
    quiet = corrected(band, PLAIN, ENTROPY, PASS_RATE, KnobValues())
    assert quiet.advantages is PLAIN
    assert quiet.eps_hi.tolist() == pytest.approx([0.28] * 3)
    shaped = corrected(_spread(band, [0.4, 0.8, 1.2]), PLAIN, ENTROPY, PASS_RATE, KnobValues())
    assert not torch.equal(shaped.advantages, PLAIN)


@pytest.mark.parametrize("on", [pytest.param(True, id="on"), pytest.param(False, id="off")])
def test_toggle_is_ramped_over_ten_steps(on: bool) -> None:
    """``use_gepo`` turned live takes a tenth a step: a toggle is no jolt, and after ten steps it is all there."""
    band = BAND._replace(ramp=0.0 if on else 1.0)
    ramps = []
    for _ in range(10):
        band = _spread(band, [0.4, 0.8, 1.2], on)
        ramps.append(band.ramp)
    tenths = [step / 10 for step in range(1, 11)]
    assert ramps == pytest.approx(tenths if on else [1 - tenth for tenth in tenths], abs=1e-9)
    assert band.ramp == (1.0 if on else 0.0)


def test_ramp_scales_both_attenuation_and_clip() -> None:
    """Half-way on, half of the attenuation and of the clip's widening."""
    shaped = corrected(BAND._replace(ramp=0.5), PLAIN, ENTROPY, PASS_RATE, KnobValues())
    assert float(shaped.advantages[0, 0]) == pytest.approx(0.5 * (1 - 0.25 * 0.6875), abs=1e-5)
    assert float(shaped.eps_hi[2]) == pytest.approx(0.28 * (1 + 0.2 * 0.375), abs=1e-5)


def test_what_is_not_finite_goes_through() -> None:
    """A group with an infinite reward keeps its NaN advantages, and the other groups are shaped as ever."""
    poisoned = PLAIN.clone()
    poisoned[0] = math.nan
    shaped = corrected(BAND, poisoned, ENTROPY, torch.tensor([math.inf, 0.5, 0.25]), KnobValues())
    assert shaped.advantages[0].isnan().all()
    assert shaped.advantages[1:].isfinite().all()


def _grpo(logits: Tensor, sequences: Tensor, old: Tensor, rewards: Tensor) -> Tensor:
    """GRPO as its papers have it, in as few words."""
    advantages = ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, correction=0, keepdim=True) + 1e-4)).view(
        -1, 1
    )
    ratio = (score(logits, sequences).log_probs - old).exp()
    gain = torch.min(ratio * advantages, ratio.clamp(torch.tensor(0.8), 1 + torch.tensor(0.28)) * advantages)
    return -gain.sum() / gain.numel()


def test_without_its_terms_gepo_is_grpo_bit_for_bit() -> None:
    """a_easy = a_hard = gamma = 0, eta = 1 and masking off: loss and gradient are plain GRPO's, to the last bit."""
    sequences, before = spoken(24)
    rewards = torch.randint(0, 2, (3, 8), generator=Generator().manual_seed(1)).float()
    rewards[1] = 1.0  # a group without spread is in it
    advantages = group_advantages(rewards, 1e-4, eta=1.0, batch=0.7).values
    difficulty = gepo.difficulty(BAND, ENTROPY, rewards.mean(1))
    shaped = advantages * factors(advantages, difficulty, 0.6, 0.0, 0.0)
    rows = lesson(
        rollouts(sequences, before), shaped, torch.zeros(3, dtype=torch.bool), upper_clip(difficulty, 0.28, 0.0),
        torch.ones(24, 4), 8,
    )  # fmt: skip
    ours, theirs = ((before + 0.3 * spoken(24, seed=2)[1]).requires_grad_() for _ in range(2))
    found, plain = loss(rows, ours, BARE).total, _grpo(theirs, sequences, rows.old, rewards)
    assert torch.equal(found, plain)
    torch.autograd.backward([found, plain])
    assert ours.grad is not None and theirs.grad is not None
    assert torch.equal(ours.grad, theirs.grad)
    assert ours.grad.abs().sum() > 0
