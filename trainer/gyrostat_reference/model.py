"""LoopMoE: one block of attention and experts, applied ``loops`` times with the input injected again.

What the routers did comes out of ``forward``, so that telemetry needs no hooks. There is no key-value cache: at
seven tokens, computing prefixes again is cheaper than keeping one.
"""

import itertools
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from gyrostat_reference import task
from gyrostat_reference.experts import Experts, Routing


class Shape(NamedTuple):
    """Sizes of the model. The default has 0.34 M parameters."""

    width: int = 96
    heads: int = 4
    expert_width: int = 96
    experts: int = 16
    chosen: int = 2  # experts a token goes to: ACTIVE_EXPERTS
    loops: int = 4  # LOOP_TIMES


class Output(NamedTuple):
    """``logits`` (N, length, vocabulary); ``counts`` int64 (1 layer, loops, experts); losses as means over loops.

    ``balance``: Switch loss E * sum(f * P), 2101.03961. ``z``: mean squared logsumexp, ST-MoE 2202.08906.
    ``passes``: each loop's Routing; ``updates`` (loops,): how far a loop moved, |x_r - x_(r-1)| / |x_(r-1)|.
    """

    logits: Tensor
    counts: Tensor
    balance: Tensor
    z: Tensor
    passes: tuple[Routing, ...]
    updates: Tensor


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
        self.experts = Experts(shape.width, shape.expert_width, shape.experts, shape.chosen)

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
        x = embedded
        passes: list[Routing] = []
        updates: list[Tensor] = []
        for loop in range(self.shape.loops):
            before, again = x, embedded if loop else 0.0
            x, routing = self.block(x + self.loops.weight[loop] + again)
            passes.append(routing)
            updates.append(_relative(x.detach(), before.detach()))
        counts = torch.stack([p.counts for p in passes])[None]
        balance = torch.stack([p.balance for p in passes]).mean()
        z = torch.stack([p.z for p in passes]).mean()
        return Output(self.head(self.norm(x)), counts, balance, z, tuple(passes), torch.stack(updates))


def route_overlap(passes: tuple[Routing, ...]) -> Tensor:
    """Mean Jaccard index of a token's experts in a loop and in the next, 0 to 1; NaN for one loop.

    Near 1, the loops do the same work again (LOOM, arXiv 2610.01153).
    """
    if len(passes) < 2:
        return torch.tensor(torch.nan)
    return torch.stack([_jaccard(a.chosen, b.chosen) for a, b in itertools.pairwise(passes)]).mean()


def _jaccard(ours: Tensor, theirs: Tensor) -> Tensor:
    shared = (ours[:, :, None] == theirs[:, None, :]).sum((1, 2)).float()
    return (shared / (2 * ours.shape[1] - shared)).mean()


def _relative(after: Tensor, before: Tensor) -> Tensor:
    moved: Tensor = torch.linalg.vector_norm(after - before) / (torch.linalg.vector_norm(before) + 1e-6)
    return moved
