"""GEPO, Group Entropy-Controlled Policy Optimization: the tilt of group advantages, corrected by group entropy.

After Cheng et al., arXiv 2607.16850; its exact coefficients are not public, those here were chosen on this task.
Not to be confused with *Group Expectation Policy Optimization* (arXiv 2508.17850), which bears the same four
letters and reweights stale rollouts. GEPO corrects a tilt; it is no floor and does not keep entropy up by itself.

    Hg       = (1/G) sum_i (1/T_i) sum_t H_(i,t)                          entropy of a group, nats a token
    tau_lo   = EMA_0.9(m - kappa s),  tau_hi = EMA_0.9(m + kappa s)       m, s of Hg over the batch of all ranks
    e_g      = clip((Hg - tau_lo) / (tau_hi - tau_lo + 1e-6), 0, 1)
    d_g      = (e_g + 1 - p_g) / 2                                        difficulty; easy < 1 - delta, hard > delta
    A > 0:     A *= 1 - a_easy clip((1 - delta - d_g) / (1 - delta), 0, 1)
    A < 0:     A *= 1 - a_hard clip((d_g - delta) / (1 - delta), 0, 1)
    eps_hi   = clip(eps_hi0 (1 + gamma (d_g - 1/2)), 0.2, 0.35)           the upper clip of a group

The trainer calls ``corrected`` once a step, before the update, with what the batch of all ranks came to.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from gyrostat_reference.knobs import KnobValues

GAMMA = 0.4  # how much a group's difficulty widens its upper clip
KAPPA = 1.0  # half the width of the band, in standard deviations
QUIET = 10  # steps before anything is shaped: the band is not known yet
_KEPT = 0.9  # of the running band, a step
_RAMP = 0.1  # a step, on the way to what ``use_gepo`` says: a toggle is no jolt
_NARROWEST, _WIDEST = 0.2, 0.35  # of the upper clip


class Band(NamedTuple):
    """What GEPO remembers: the band of group entropies in nats, batches seen, how far it is switched on (0 to 1)."""

    low: float = math.nan
    high: float = math.nan
    seen: int = 0
    ramp: float = math.nan


class Shaped(NamedTuple):
    """``advantages`` (groups, rollouts) after shaping; ``eps_hi`` and ``difficulty`` (groups,)."""

    advantages: Tensor
    eps_hi: Tensor
    difficulty: Tensor


def group_entropy(entropies: Tensor, mask: Tensor, size: int) -> Tensor:
    """Hg of each group, (groups,): ``entropies`` and ``mask`` are (groups * size, tokens), in nats a token.

    An answer without a token counts as 0 nats.
    """
    each = (entropies * mask).sum(1) / mask.sum(1).clamp(min=1)
    return each.view(-1, size).mean(1)


def moved(band: Band, count: float, total: float, squares: float, on: bool) -> Band:
    """The band after a batch of ``count`` groups, whose Hg add up to ``total`` and their squares to ``squares``.

    A batch that is not finite leaves the band as it is: it would stay in it for ever. The ramp starts where
    ``use_gepo`` stands, and follows it by a tenth a step.
    """
    target = 1.0 if on else 0.0
    ramp = target if math.isnan(band.ramp) else _towards(band.ramp, target)
    mean = total / count if count else math.nan
    spread = KAPPA * math.sqrt(max(0.0, squares / count - mean * mean)) if math.isfinite(mean) else math.nan
    if not math.isfinite(spread):
        return band._replace(ramp=ramp)
    if not band.seen:
        return Band(mean - spread, mean + spread, 1, ramp)
    low, high = _KEPT * band.low + (1 - _KEPT) * (mean - spread), _KEPT * band.high + (1 - _KEPT) * (mean + spread)
    return Band(low, high, band.seen + 1, ramp)


def difficulty(band: Band, entropy: Tensor, pass_rate: Tensor | None) -> Tensor:
    """d_g of each group, 0 (easy) to 1 (hard), (groups,); by entropy alone where ``pass_rate`` is None."""
    width = band.high - band.low + 1e-6
    level = ((entropy - band.low) / width).clamp(0, 1)
    return level if pass_rate is None else (level + 1 - pass_rate) / 2


def factors(advantages: Tensor, difficulty: Tensor, delta: float, a_easy: float, a_hard: float) -> Tensor:
    """What each advantage is multiplied by, (groups, rollouts): less gain from easy groups, less loss from hard ones.

    ``a_hard`` counts for at most ``a_easy``: attenuating failures more than successes made answers ever shorter.
    """
    easy = ((1 - delta - difficulty) / (1 - delta)).clamp(0, 1)[:, None]
    hard = ((difficulty - delta) / (1 - delta)).clamp(0, 1)[:, None]
    less_gain, less_loss = 1 - a_easy * easy, 1 - min(a_hard, a_easy) * hard
    one = torch.ones_like(advantages)
    return torch.where(advantages > 0, less_gain, torch.where(advantages < 0, less_loss, one))


def upper_clip(difficulty: Tensor, eps_hi: float, gamma: float) -> Tensor:
    """eps_hi of each group, (groups,): wider for hard ones, where the clip would stop exploration.

    A knob beyond 0.35 is its own bound: turned up, it must not be without effect.
    """
    return (eps_hi * (1 + gamma * (difficulty - 0.5))).clamp(_NARROWEST, max(_WIDEST, eps_hi))


def corrected(band: Band, advantages: Tensor, entropy: Tensor, pass_rate: Tensor, knobs: KnobValues) -> Shaped:
    """Advantages and clips of a batch under ``band``, which has been moved already; as they were while it is quiet.

    ``advantages`` (groups, rollouts); ``entropy`` and ``pass_rate`` (groups,). What is not finite goes through.
    """
    hardness = difficulty(band, entropy, pass_rate)
    ramp = band.ramp if band.seen > QUIET else 0.0
    if not ramp:
        return Shaped(advantages, torch.full_like(entropy, knobs.eps_hi), hardness)
    by = factors(advantages, hardness, knobs.difficulty_threshold, ramp * knobs.a_easy, ramp * knobs.a_hard)
    return Shaped(advantages * by, upper_clip(hardness, knobs.eps_hi, ramp * GAMMA), hardness)


def measures(
    band: Band, plain: Tensor, shaped: Shaped, entropy: Tensor, pass_rate: Tensor, delta: float
) -> dict[str, float]:
    """What GEPO exports of a step; a factor or correlation of nothing is left out."""
    known = torch.isfinite(shaped.difficulty)  # a poisoned group is neither easy nor hard
    values = {"gepo_tau_lo": band.low, "gepo_tau_hi": band.high} if band.seen else {}
    if known.any():
        values["gepo_frac_easy"] = float((shaped.difficulty[known] < 1 - delta).float().mean())
        values["gepo_frac_hard"] = float((shaped.difficulty[known] > delta).float().mean())
    by = shaped.advantages / plain
    for name, chosen in (("gepo_factor_positive", plain > 0), ("gepo_factor_negative", plain < 0)):
        if chosen.any():
            values[name] = float(by[chosen].mean())
    pairs = torch.stack([entropy, 1 - pass_rate])[:, known]
    if pairs.shape[1] > 1 and (pairs.std(1) > 0).all():
        values["gepo_entropy_difficulty_corr"] = float(torch.corrcoef(pairs)[0, 1])
    return values


def _towards(ramp: float, target: float) -> float:
    left = target - ramp
    return target if abs(left) <= _RAMP + 1e-9 else ramp + math.copysign(_RAMP, left)
