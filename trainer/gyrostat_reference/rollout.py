"""Rollouts: answers drawn from the policy, and what the policy says of them.

Called by the trainer once a step. Randomness comes in as a generator: the same state gives the same answers.
"""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from gyrostat_reference import task
from gyrostat_reference.model import LoopMoE, Output
from gyrostat_reference.opefo import entropy_slope

_FORBIDDEN = -1e9


class PolicyDestroyed(Exception):
    """The policy gives no probabilities any more: its parameters are not finite."""


class Scores(NamedTuple):
    """The policy's word on given answers, each (N, ANSWER_LENGTH): ``log_probs``, ``entropies`` (nats)."""

    log_probs: Tensor
    entropies: Tensor


class Drawn(NamedTuple):
    """Completions as they were drawn: ``sequences`` (N, LENGTH); ``log_probs`` (N, ANSWER_LENGTH) at the drawing.

    A token that was given and not drawn has the log-prob 0.
    """

    sequences: Tensor
    log_probs: Tensor


class Rollouts(NamedTuple):
    """Completions of one step, ``mask`` (N, ANSWER_LENGTH) 1.0 on those tokens that the policy drew.

    ``policy`` is what the trained policy says of them before the update, ``base`` what the reference policy says,
    ``slopes`` (N, ANSWER_LENGTH) what a gradient step does to each token's entropy (see ``opefo``), ``output`` what
    the model's routers did.
    """

    drawn: Drawn
    mask: Tensor
    policy: Scores
    base: Scores
    slopes: Tensor
    output: Output

    @property
    def sequences(self) -> Tensor:
        """Prompt and answer, (N, LENGTH)."""
        return self.drawn.sequences


@torch.no_grad()
def draw_next(model: LoopMoE, ids: Tensor, random: Generator, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """The next token of each row of ``ids`` (N, length) and its log-prob as it was drawn; both of shape (N, 1).

    An answer holds digits and the end token, nothing else. Raises PolicyDestroyed.
    """
    likely = _allowed(model(ids).logits[:, -1] / temperature).log_softmax(-1)
    if not torch.isfinite(likely).all():
        raise PolicyDestroyed("the policy's probabilities are not finite; the parameters were destroyed")
    tokens = torch.multinomial(likely.exp(), 1, generator=random)
    return tokens, likely.gather(1, tokens)


def draw(model: LoopMoE, prompts: Tensor, random: Generator, temperature: float = 1.0) -> Drawn:
    """Complete ``prompts`` (N, PROMPT_LENGTH); raises PolicyDestroyed."""
    nothing = torch.zeros(len(prompts), dtype=torch.int64)
    blank = torch.full((len(prompts), task.ANSWER_LENGTH), task.END)
    return go_on(model, torch.cat([prompts, blank], 1), nothing, random, temperature)


def go_on(model: LoopMoE, sequences: Tensor, depths: Tensor, random: Generator, temperature: float = 1.0) -> Drawn:
    """Complete ``sequences`` (N, LENGTH) anew behind their first ``depths`` (N,) answer tokens."""
    ids = sequences[:, : task.PROMPT_LENGTH]
    log_probs = []
    for place in range(task.ANSWER_LENGTH):
        tokens, said = draw_next(model, ids, random, temperature)
        given = (depths > place)[:, None]
        tokens = torch.where(given, sequences[:, [task.PROMPT_LENGTH + place]], tokens)
        log_probs.append(said.masked_fill(given, 0.0))
        ids = torch.cat([ids, tokens], 1)
    return Drawn(ids, torch.cat(log_probs, 1))


@torch.no_grad()
def scored(model: LoopMoE, base: LoopMoE, drawn: Drawn, depths: Tensor) -> Rollouts:
    """What policy and reference policy say of completions that were drawn behind ``depths`` (N,) given tokens."""
    sequences = drawn.sequences
    output = model(sequences[:, :-1])
    log_probs = answer_log_probs(output.logits)
    of_base = score(base(sequences[:, :-1]).logits, sequences)
    slopes = entropy_slope(log_probs, sequences[:, task.PROMPT_LENGTH :])
    own = torch.arange(task.ANSWER_LENGTH) >= depths[:, None]
    mask = task.answer_mask(sequences) * own
    return Rollouts(drawn, mask, score(output.logits, sequences), of_base, slopes, output)


def answer_log_probs(logits: Tensor) -> Tensor:
    """Log-probs of all tokens at each place of the answer, (N, ANSWER_LENGTH, vocabulary).

    What is never drawn has no probability here either: an entropy bonus was seen to put its entropy there.
    """
    return _allowed(logits[:, task.PROMPT_LENGTH - 1 :]).log_softmax(-1)


def _allowed(logits: Tensor) -> Tensor:
    """``logits`` (..., vocabulary) without the tokens that no answer holds."""
    forbidden = torch.arange(logits.shape[-1]) >= task.EQUALS
    return logits.masked_fill(forbidden, _FORBIDDEN)


def score(logits: Tensor, sequences: Tensor) -> Scores:
    """Scores of the answers in ``sequences`` under ``logits`` (N, LENGTH - 1, vocabulary)."""
    all_log_probs = answer_log_probs(logits)
    answers = sequences[:, task.PROMPT_LENGTH :, None]
    log_probs = all_log_probs.gather(2, answers).squeeze(2)
    return Scores(log_probs, -(all_log_probs.exp() * all_log_probs).sum(-1))
