"""OPEFO, On-Policy Entropy Flow Optimization, and the floor controller that restores what it cannot.

After Xu et al., arXiv 2605.11491. A policy-gradient step on a token's logits moves its entropy, to first order, by

    dH_t = -A (S(a_t) - sum_v pi(v) S(v)),   S(v) = pi(v) (log pi(v) + H)       (Theorem 3.3 of arXiv 2602.03392)

so tokens fall into those that raise entropy (S+) and those that lower it (S-). With D+ and D- their sums over the
batch of all ranks, ``lambda* = (D- - D+) / (D- + D+)`` weighs S+ by 1 + lambda and S- by 1 - lambda such that the
flow is nil. It is let in by how near the floor the running entropy Hbar is, and pushed beyond it below the floor:

    f      = min(min_entropy_floor, 0.5 H0)           H0: median of the first 20 finite steps
    lambda = clip(clip((2f - Hbar) / f, 0, 1) lambda* + max(0, (f - Hbar) / f), 0, lambda_max)

A weight cannot raise what does not flow: where no token raises entropy, nothing is there to amplify (measured:
lambda at its cap, and entropy fell from 1.06 to 0.05 nats in 50 steps). Hence the controller: an entropy bonus
``alpha`` in the loss, up a little below 1.1 f, down above 1.4 f, gone at once where entropy has run away or answers
have grown by 30 %: bonus runs were seen to explode after some 400 steps.
"""

import math
import statistics
from typing import NamedTuple

import torch
from torch import Tensor

from gyrostat_reference.knobs import KnobValues

_KEPT = 0.8  # of the running entropy, a step
_FIRST = 20  # steps that make H0
_RELATIVE = 0.5  # the floor is at most this much of H0
_NEAR, _FAR = 1.1, 1.4  # floors at which alpha rises and falls
EXPLOSION = 1.5  # times H0
_GROWN = 1.3  # times the running length


class Flow(NamedTuple):
    """What OPEFO remembers: running entropy and the first entropies in nats a token, the bonus, its last lambda.

    ``length``: running mean of tokens an answer, where it was told.
    """

    average: float = math.nan
    first: tuple[float, ...] = ()
    alpha: float = 0.0
    strength: float = 0.0
    balance: float = 0.0  # (D+ - D-) / (D+ + D-), -1 to 1
    length: float = math.nan

    @property
    def start(self) -> float:
        """H0; NaN before the first finite step."""
        return statistics.median(self.first) if self.first else math.nan


def entropy_slope(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """dH_t of a step with advantage 1, (..., ): ``log_probs`` (..., vocabulary), ``tokens`` (...), in nats.

    Per unit of advantage and learning rate on the logits; a token that is impossible contributes nothing.
    """
    likely = log_probs.exp()
    entropy = -torch.where(likely == 0, 0.0, likely * log_probs).sum(-1, keepdim=True)
    weight = torch.where(likely == 0, 0.0, likely * (log_probs + entropy))
    taken = weight.gather(-1, tokens[..., None]).squeeze(-1)
    return (likely * weight).sum(-1) - taken


def floor(flow: Flow, knobs: KnobValues) -> float:
    """f, the floor in force, in nats; published healthy runs start at 0.25, so the setting alone would be wrong."""
    return min(knobs.min_entropy_floor, _RELATIVE * flow.start) if flow.first else knobs.min_entropy_floor


def moved(flow: Flow, entropy: float, up: float, down: float, knobs: KnobValues, length: float = math.nan) -> Flow:
    """The state after a batch with mean token entropy ``entropy`` and flows ``up`` (D+) and ``down`` (D-).

    ``length``: tokens an answer, NaN where that is not watched.

    What is not finite changes nothing, and makes lambda 0: Python's min and max would turn it into the bound.
    """
    if math.isfinite(entropy):
        average = entropy if math.isnan(flow.average) else _KEPT * flow.average + (1 - _KEPT) * entropy
        flow = flow._replace(average=average, first=(*flow.first, entropy)[:_FIRST])
        flow = flow._replace(alpha=0.0 if length > _GROWN * flow.length else _bonus(flow, knobs))
    if math.isfinite(length):
        kept = length if math.isnan(flow.length) else _KEPT * flow.length + (1 - _KEPT) * length
        flow = flow._replace(length=kept)
    if not (math.isfinite(up) and math.isfinite(down) and math.isfinite(flow.average)):
        return flow._replace(strength=0.0, balance=math.nan)
    balance = (up - down) / (up + down + 1e-12)
    return flow._replace(strength=_strength(flow, balance, knobs), balance=balance)


def token_weights(changes: Tensor, strength: float) -> Tensor:
    """1 + lambda where a token raises entropy, 1 - lambda where it lowers it, else 1; the shape of ``changes``."""
    return 1 + strength * torch.sign(changes)


def measures(flow: Flow, knobs: KnobValues) -> dict[str, float]:
    """What OPEFO exports of a step."""
    values = {
        "entropy_flow": flow.balance, "opefo_lambda": flow.strength, "entropy_bonus": flow.alpha,
        "entropy_floor": floor(flow, knobs),
    }  # fmt: skip
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _strength(flow: Flow, balance: float, knobs: KnobValues) -> float:
    if not knobs.token_entropy_flow_control:
        return 0.0
    low = floor(flow, knobs)
    if low <= 0:  # the run began without entropy: there is nothing to keep
        return 0.0
    gate = min(1.0, max(0.0, (2 * low - flow.average) / low))
    wanted = -gate * balance + max(0.0, (low - flow.average) / low)
    return min(knobs.lambda_max, max(0.0, wanted))


def _bonus(flow: Flow, knobs: KnobValues) -> float:
    """alpha; a step of it is at most a twentieth of ``alpha_max``."""
    low, step = floor(flow, knobs), min(knobs.d_alpha, knobs.alpha_max / 20)
    if flow.first and flow.average > EXPLOSION * flow.start:
        return 0.0
    alpha = flow.alpha
    if flow.average < _NEAR * low:
        alpha += step
    elif flow.average > _FAR * low:
        alpha -= step
    return min(knobs.alpha_max, max(0.0, alpha))
