"""Experts: a router and its experts, dispatched by sorting tokens, and what the router did.

A dense product with all experts would cost eight times as much at 2 of 16. Everything that steers the routing
beside the loss lives here: a bias that balances without a gradient, and noise. The trainer sets them.
"""

from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional


class Routing(NamedTuple):
    """What the router did in one pass over N tokens.

    ``counts`` of assignments (experts,); ``chosen`` experts of each token (N, k); scalars: ``balance`` and ``z``
    losses, ``confidence`` the mean probability of the likeliest expert, ``size`` the mean square of the scores.
    """

    counts: Tensor
    chosen: Tensor
    balance: Tensor
    z: Tensor
    confidence: Tensor
    size: Tensor


class Noise(NamedTuple):
    """Normal noise on the router's scores: its standard deviation and where it comes from."""

    std: float
    random: Generator


class Experts(nn.Module):
    """Each token goes to the ``chosen`` likeliest of ``experts``, under their probabilities as weights.

    ``bias`` (experts,) is added to the probabilities for the choice alone, not for the weights: balance without
    a gradient (arXiv 2408.15664). ``noise`` is None but for the passes that the trainer wants it in.
    """

    bias: Tensor

    def __init__(self, width: int, inner: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.experts, self.chosen = experts, chosen
        self.router = nn.Linear(width, experts, bias=False)
        self.rise = nn.Parameter(torch.randn(experts, width, inner) / width**0.5)
        self.fall = nn.Parameter(torch.randn(experts, inner, width) / inner**0.5 / 2)
        self.register_buffer("bias", torch.zeros(experts))
        self.noise: Noise | None = None

    def forward(self, tokens: Tensor) -> tuple[Tensor, Routing]:
        """``tokens`` (N, width) to the same shape, and what the router did."""
        scores = self.router(tokens)
        likely = self._disturbed(scores).softmax(-1)
        experts = (likely.detach() + self.bias).topk(self.chosen, -1).indices
        weights = likely.gather(1, experts)
        if self.chosen > 1:  # a single weight would be 1 whatever the router says, and teach it nothing (2101.03961)
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)
        counts = torch.bincount(experts.reshape(-1), minlength=self.experts)
        mixed = self._mix(tokens, experts.reshape(-1), weights.reshape(-1, 1), counts)
        return mixed, self._routing(scores, likely, experts, counts)

    @torch.no_grad()
    def balance(self, counts: Tensor, rate: float) -> None:
        """Move the bias a step ``rate`` towards an even load: ``b += u * sign(mean - load)`` (2408.15664).

        ``counts`` (experts,): all assignments of the step, of all ranks.
        """
        load = counts.to(self.bias)
        self.bias += rate * torch.sign(load.mean() - load)

    def _disturbed(self, scores: Tensor) -> Tensor:
        if self.noise is None or not self.noise.std:
            return scores
        return scores + self.noise.std * torch.randn(scores.shape, generator=self.noise.random)

    def _routing(self, scores: Tensor, likely: Tensor, experts: Tensor, counts: Tensor) -> Routing:
        share = counts.float() / counts.sum()
        balance = self.experts * (share * likely.mean(0)).sum()
        confidence = likely.detach().amax(-1).mean()
        return Routing(
            counts, experts, balance, scores.logsumexp(-1).pow(2).mean(), confidence, scores.detach().square().mean()
        )

    def _mix(self, tokens: Tensor, experts: Tensor, weights: Tensor, counts: Tensor) -> Tensor:
        """Run each expert once over all of its tokens; add the results up under the tokens' weights."""
        order = experts.argsort(stable=True)
        source = order.div(self.chosen, rounding_mode="floor")
        parts = torch.split(tokens[source], counts.tolist())
        done = [functional.gelu(part @ self.rise[e]) @ self.fall[e] for e, part in enumerate(parts) if len(part)]
        return torch.zeros_like(tokens).index_add(0, source, torch.cat(done) * weights[order])
