"""A small policy, a batch of prompts and pools that are closed whatever happens."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Generator, Tensor

from gyrostat_reference import task
from gyrostat_reference.model import LoopMoE, Shape
from gyrostat_reference.pool import PoolRollouts, RolloutPool, Settings
from gyrostat_reference.rollout import draw_next

GROUP, PROMPTS = 4, 6
SMALL = Shape(width=16, heads=2, expert_width=8, experts=4, chosen=2, loops=2)


class Batch(NamedTuple):
    """What a roll-out is asked for."""

    prompts: Tensor
    items: list[int]
    seeds: list[int]

    def cut(self, count: int) -> "Batch":
        """Its first prompts."""
        return Batch(self.prompts[:count], self.items[:count], self.seeds[:count])

    def drawn_here(self, model: LoopMoE) -> tuple[Tensor, Tensor]:
        """Sequences and log-probs as one process draws them, without a pool."""
        sequences, log_probs = [], []
        for prompt, seed in zip(self.prompts, self.seeds, strict=True):
            random, ids, said = Generator().manual_seed(seed), prompt.repeat(GROUP, 1), []
            for _ in range(task.ANSWER_LENGTH):
                tokens, likely = draw_next(model, ids, random)
                ids = torch.cat([ids, tokens], 1)
                said.append(likely)
            sequences.append(ids)
            log_probs.append(torch.cat(said, 1))
        return torch.cat(sequences), torch.cat(log_probs)

    def agrees(self, found: PoolRollouts, model: LoopMoE) -> bool:
        """True where the pool's completions are, bit for bit, those that one process draws."""
        sequences, log_probs = self.drawn_here(model)
        return torch.equal(found.sequences, sequences) and torch.equal(found.log_probs, log_probs)


@pytest.fixture(scope="session")
def policies() -> list[LoopMoE]:
    """Two policies that differ."""
    torch.manual_seed(0)
    return [LoopMoE(SMALL), LoopMoE(SMALL)]


@pytest.fixture(scope="session")
def policy(policies: list[LoopMoE]) -> LoopMoE:
    """The first policy."""
    return policies[0]


@pytest.fixture(scope="session")
def batch() -> Batch:
    """Prompts with items 10, 11, ... and seeds as large as they may be."""
    prompts = task.draw_prompts(PROMPTS, Generator().manual_seed(1))
    return Batch(prompts, list(range(10, 10 + PROMPTS)), [2**63 - 1 - n for n in range(PROMPTS)])


@pytest.fixture(scope="session")
def lasting_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolloutPool]:
    """Two workers for all tests that break none: a start costs two seconds. Item 12 is poisoned."""
    settings = Settings(group=GROUP, poison_item=12, folder=tmp_path_factory.mktemp("policies"))
    with RolloutPool(2, SMALL, settings) as pool:
        yield pool


@pytest.fixture
def open_pool(tmp_path: Path) -> Iterator[Callable[..., RolloutPool]]:
    """Opens pools for the small policy whose settings differ as told."""
    opened: list[RolloutPool] = []

    def open_one(workers: int, **settings: object) -> RolloutPool:
        chosen = Settings(group=GROUP, heartbeat=0.1, folder=tmp_path)._replace(**settings)  # type: ignore[arg-type]
        opened.append(RolloutPool(workers, SMALL, chosen))
        return opened[-1]

    yield open_one
    for pool in opened:
        pool.close()
