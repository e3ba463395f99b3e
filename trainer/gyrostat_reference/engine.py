"""Rollout engines: what draws completions for the trainer, with which version of the policy.

One is in the trainer's own process and uses the trained weights themselves; the other hands them to the worker
processes of ``pool``. Either verifies what it drew, as environments do.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Generator, Tensor

from gyrostat_reference.faults import verify
from gyrostat_reference.model import LoopMoE
from gyrostat_reference.pool import PoolError, RolloutPool
from gyrostat_reference.pool import Settings as PoolSettings
from gyrostat_reference.rollout import Drawn, draw
from gyrostat_reference.settings import Settings
from gyrostat_reference.state import held, sharded

__all__ = ["InProcess", "PoolError", "Pooled", "RolloutEngine", "Turn", "engine_of"]

SIZE = 8  # completions of a prompt


class Turn(NamedTuple):
    """What an engine returns: completions, SIZE for each prompt, and their ``rewards`` (groups * SIZE,)."""

    drawn: Drawn
    rewards: Tensor


class RolloutEngine(Protocol):
    """What the trainer asks of an engine."""

    def load(self, model: LoopMoE, version: int) -> None:
        """Take over the weights; completions after this are drawn with them. All ranks call it alike."""

    def draw(self, prompts: Tensor, items: tuple[int, ...], temperature: float, random: Generator) -> Turn:
        """Complete each of ``prompts`` (groups, PROMPT_LENGTH); raises PolicyDestroyed, PoolError."""

    def freeze(self) -> None:
        """A fault: stay with the weights that are loaded, whatever is loaded later."""

    def measures(self) -> dict[str, float]:
        """What the engine has to tell of the last step."""

    def close(self) -> None:
        """End it."""


class InProcess:
    """Draws with the trainer's own weights, in its own process, in one batch."""

    def __init__(self, poison_item: int | None = None) -> None:
        self._poison = poison_item
        self._model: LoopMoE | None = None
        self._is_frozen = False
        self._version = self._used = 0

    def load(self, model: LoopMoE, version: int) -> None:
        """Nothing is copied."""
        self._version = version
        if not self._is_frozen:
            self._model, self._used = model, version

    def draw(self, prompts: Tensor, items: tuple[int, ...], temperature: float, random: Generator) -> Turn:
        """In the trainer's own process."""
        if self._model is None:
            raise ValueError("no weights were loaded")
        drawn = draw(self._model, prompts.repeat_interleave(SIZE, 0), random, temperature)
        return Turn(drawn, verify(drawn.sequences, torch.tensor(items).repeat_interleave(SIZE), self._poison))

    def freeze(self) -> None:
        """Keep a copy and go on with that; a collective where the model is sharded."""
        if self._model is not None:
            kept = LoopMoE(self._model.shape)
            kept.load_state_dict({name: _full(tensor) for name, tensor in held(self._model)})
            self._model, self._is_frozen = kept, True

    def measures(self) -> dict[str, float]:
        """How many versions behind the completions were drawn."""
        return {"policy_lag": float(self._version - self._used)}

    def close(self) -> None:
        """There is nothing to end."""


class Pooled:
    """Draws by worker processes, each group of completions from a seed of its own."""

    def __init__(self, pool: RolloutPool) -> None:
        self._pool = pool
        self._is_frozen = False
        self._version = self._published = 0

    @property
    def pids(self) -> tuple[int, ...]:
        """The workers' process ids."""
        return self._pool.pids

    def load(self, model: LoopMoE, version: int) -> None:
        """Publish the weights."""
        self._version = version
        if not self._is_frozen:
            self._published = version
            self._pool.publish(version, {name: _full(tensor) for name, tensor in held(model)})

    def draw(self, prompts: Tensor, items: tuple[int, ...], temperature: float, random: Generator) -> Turn:
        """Wait for the workers."""
        seeds = torch.randint(0, 1 << 62, (len(prompts),), generator=random).tolist()
        found = self._pool.roll_out(prompts, items, seeds, temperature)
        return Turn(Drawn(found.sequences, found.log_probs), found.rewards)

    def freeze(self) -> None:
        """Publish nothing any more."""
        self._is_frozen = True

    def measures(self) -> dict[str, float]:
        """The pool's, and how many versions behind the completions were drawn."""
        values = self._pool.measures()
        return values | {"policy_lag": values.get("policy_lag", 0.0) + self._version - self._published}

    def close(self) -> None:
        """End the workers."""
        self._pool.close()


def engine_of(settings: Settings) -> RolloutEngine:
    """The engine that a run asks for."""
    if not settings.workers:
        return InProcess(settings.poison_item)
    asked = PoolSettings(group=SIZE, poison_item=settings.poison_item)
    return Pooled(RolloutPool(settings.workers, settings.shape, asked))


def _full(tensor: Tensor) -> Tensor:
    return (tensor.full_tensor() if sharded(tensor) else tensor).detach()
