"""LoopMoE: one block of attention and experts, applied ``loops`` times with the input injected again.

Expert counts come out of ``forward``, so that telemetry needs no hooks. Tokens are sorted by expert: a dense
product with all experts would cost eight times as much at 2 of 16. There is no key-value
cache: at seven tokens, computing prefixes again is cheaper than keeping one.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from gyrostat_reference import task


class Shape(NamedTuple):
    """Sizes of the model. The default has 0.34 M parameters."""

    width: int = 96
    heads: int = 4
    expert_width: int = 96
    experts: int = 16
    chosen: int = 2  # experts a token goes to
    loops: int = 4


class Routing(NamedTuple):
    """What the router did in one pass: ``counts`` of assignments (experts,), balance and z loss as scalars."""

    counts: Tensor
    balance: Tensor
    z: Tensor


class Output(NamedTuple):
    """``logits`` (N, length, vocabulary); ``counts`` int64 (1 layer, loops, experts); losses as means over loops.

    ``balance``: Switch loss E * sum(f * P), 2101.03961. ``z``: mean squared logsumexp, ST-MoE 2202.08906.
    """

    logits: Tensor
    counts: Tensor
    balance: Tensor
    z: Tensor


class Experts(nn.Module):
    """A router and its experts; each token goes to the ``chosen`` likeliest."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width, inner, experts = shape.width, shape.expert_width, shape.experts
        self.router = nn.Linear(width, experts, bias=False)
        self.rise = nn.Parameter(torch.randn(experts, width, inner) / width**0.5)
        self.fall = nn.Parameter(torch.randn(experts, inner, width) / inner**0.5 / 2)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Routing]:
        """``tokens`` (N, width) to the same shape, and what the router did."""
        scores = self.router(tokens)
        likely = scores.softmax(-1)
        weights, experts = likely.topk(self.shape.chosen, -1)
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)
        counts = torch.bincount(experts.reshape(-1), minlength=self.shape.experts)
        share = counts.float() / counts.sum()
        balance = self.shape.experts * (share * likely.mean(0)).sum()
        routing = Routing(counts, balance, scores.logsumexp(-1).pow(2).mean())
        return self._mix(tokens, experts.reshape(-1), weights.reshape(-1, 1), counts), routing

    def _mix(self, tokens: Tensor, experts: Tensor, weights: Tensor, counts: Tensor) -> Tensor:
        """Run each expert once over all of its tokens; add the results up under the tokens' weights."""
        order = experts.argsort(stable=True)
        source = order.div(self.shape.chosen, rounding_mode="floor")
        parts = torch.split(tokens[source], counts.tolist())
        done = [functional.gelu(part @ self.rise[e]) @ self.fall[e] for e, part in enumerate(parts) if len(part)]
        return torch.zeros_like(tokens).index_add(0, source, torch.cat(done) * weights[order])


class RmsNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps), times a learned weight: torch has one of its own only since 2.4."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """``x`` (..., width) to the same shape, over the last dimension."""
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + torch.finfo(x.dtype).eps) * self.weight


class Block(nn.Module):
    """Causal attention, then experts; both behind an RMS norm and beside a residual."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.before_attention = RmsNorm(shape.width)
        self.attention = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.attended = nn.Linear(shape.width, shape.width, bias=False)
        self.before_experts = RmsNorm(shape.width)
        self.experts = Experts(shape)

    def forward(self, x: Tensor) -> tuple[Tensor, Routing]:
        """``x`` (N, length, width) to the same shape, and what the router did."""
        x = x + self._attend(self.before_attention(x))
        mixed, routing = self.experts(self.before_experts(x).flatten(0, 1))
        return x + mixed.view_as(x), routing

    def _attend(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        split = self.attention(x).view(n, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        joined: Tensor = self.attended(seen.transpose(1, 2).reshape(n, length, width))
        return joined


class LoopMoE(nn.Module):
    """The language model: embeddings, the looped block, a head."""

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape = shape or Shape()
        self.tokens = nn.Embedding(task.VOCABULARY, shape.width)
        self.places = nn.Embedding(task.LENGTH, shape.width)
        self.loops = nn.Embedding(shape.loops, shape.width)
        self.block = Block(shape)
        self.norm = RmsNorm(shape.width)
        self.head = nn.Linear(shape.width, task.VOCABULARY, bias=False)
        for embedding in (self.tokens, self.places, self.loops):
            nn.init.normal_(embedding.weight, std=0.3)

    def forward(self, ids: Tensor) -> Output:
        """``ids`` int64 (N, length), length at most LENGTH."""
        embedded = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        x, passes = embedded, []
        for loop in range(self.shape.loops):
            again = embedded if loop else 0.0
            x, routing = self.block(x + self.loops.weight[loop] + again)
            passes.append(routing)
        counts, balances, zs = zip(*passes, strict=True)
        logits = self.head(self.norm(x))
        return Output(logits, torch.stack(counts)[None], torch.stack(balances).mean(), torch.stack(zs).mean())
