"""Session: one prompt's group of completions, drawn round by round with a generator of its own.

The trainer keeps each session as of its last finished round. A session depends on nothing but itself and the
policy, so any worker that is handed it goes on bit for bit as the last one would have.
"""

from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from gyrostat_reference import task
from gyrostat_reference.pool import environment
from gyrostat_reference.pool.weights import Policy
from gyrostat_reference.pool.wire import WireError, pack, unpack
from gyrostat_reference.rollout import draw_next

STATE_BYTES = Generator().get_state().numel()


class Round(NamedTuple):
    """One token of each completion: ``tokens`` int64 and ``log_probs`` float32 (group, 1), as they were drawn.

    ``random`` is the generator's state afterwards, ``version`` the policy's; ``rewards`` (group,) end the session.
    """

    tokens: Tensor
    log_probs: Tensor
    random: Tensor
    version: int
    rewards: Tensor | None

    def encode(self) -> dict[str, Any]:
        """As JSON values; tensors bit for bit, for rewards may be infinite."""
        packed = {"tokens": pack(self.tokens), "log_probs": pack(self.log_probs), "random": pack(self.random)}
        return {**packed, "version": self.version, "rewards": None if self.rewards is None else pack(self.rewards)}


class Session(NamedTuple):
    """``sequences`` int64 (group, PROMPT_LENGTH + rounds); ``rounds`` are those that this process knows of.

    The trainer knows all of them, a worker those since it was handed the session.
    """

    item: int
    temperature: float
    sequences: Tensor
    random: Tensor
    rounds: tuple[Round, ...] = ()

    @property
    def rewards(self) -> Tensor | None:
        """What the environment gave in the end; None while it says go on."""
        return self.rounds[-1].rewards if self.rounds else None

    @property
    def log_probs(self) -> Tensor:
        """Float32 (group, rounds), each as it was drawn."""
        return torch.cat([r.log_probs for r in self.rounds], 1)

    def after(self, done: Round) -> "Session":
        """The session with one more round."""
        sequences = torch.cat([self.sequences, done.tokens], 1)
        return self._replace(sequences=sequences, random=done.random, rounds=(*self.rounds, done))

    def encode(self) -> dict[str, Any]:
        """As JSON values: all that a worker needs to go on, which is not the log-probs so far."""
        return {
            "item": self.item, "temperature": self.temperature, "group": len(self.sequences),
            "sequences": pack(self.sequences), "random": pack(self.random),
        }  # fmt: skip


def begin(prompt: Tensor, group: int, item: int, seed: int, temperature: float) -> Session:
    """A session before its first round; ``prompt`` (PROMPT_LENGTH,), ``seed`` of 63 bits."""
    return Session(item, temperature, prompt.repeat(group, 1), Generator().manual_seed(seed).get_state())


def play(session: Session, policy: Policy, poison_item: int | None) -> Round:
    """One round: the policy draws, the environment answers. Raises PolicyDestroyed."""
    random = Generator()
    random.set_state(session.random)
    tokens, log_probs = draw_next(policy.model, session.sequences, random, session.temperature)
    sequences = torch.cat([session.sequences, tokens], 1)
    rewards = environment.answer(sequences, session.item, poison_item)
    return Round(tokens, log_probs, random.get_state(), policy.version, rewards)


def decode_session(raw: dict[str, Any]) -> Session:
    """A session as ``encode`` wrote it; raises WireError."""
    try:
        group = int(raw["group"])
        sequences = unpack(raw["sequences"], torch.int64, group, -1)
        return Session(int(raw["item"]), float(raw["temperature"]), sequences, _generator_state(raw["random"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise WireError(f"this is no session: {error!r}") from None


def decode_round(raw: dict[str, Any], group: int) -> Round:
    """A round as ``encode`` wrote it; raises WireError, also where it names tokens that there are not."""
    try:
        tokens = unpack(raw["tokens"], torch.int64, group, 1)
        if not ((tokens >= 0) & (tokens < task.VOCABULARY)).all():
            raise ValueError("a token outside the vocabulary")
        log_probs = unpack(raw["log_probs"], torch.float32, group, 1)
        rewards = None if raw["rewards"] is None else unpack(raw["rewards"], torch.float32, group)
        return Round(tokens, log_probs, _generator_state(raw["random"]), int(raw["version"]), rewards)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise WireError(f"this is no round: {error!r}") from None


def _generator_state(text: str) -> Tensor:
    return unpack(text, torch.uint8, STATE_BYTES)
