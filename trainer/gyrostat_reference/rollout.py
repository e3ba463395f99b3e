"""Rollouts: answers drawn from the policy, and what the policy says of them.

Called by the trainer once a step. Randomness comes in as a generator: the same state gives the same answers.
"""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from gyrostat_reference import task
from gyrostat_reference.model import LoopMoE

_FORBIDDEN = -1e9


class PolicyDestroyed(Exception):
    """The policy gives no probabilities any more: its parameters are not finite."""


class Scores(NamedTuple):
    """The policy's word on given answers: ``log_probs`` and ``entropies`` (nats), both (N, ANSWER_LENGTH)."""

    log_probs: Tensor
    entropies: Tensor


class Rollouts(NamedTuple):
    """Completions of one step. ``sequences`` (N, LENGTH), ``mask`` (N, ANSWER_LENGTH), ``counts`` as in Output.

    ``policy`` is what the policy that drew them says of them, ``base`` what the base policy says.
    """

    sequences: Tensor
    mask: Tensor
    policy: Scores
    base: Scores
    counts: Tensor


@torch.no_grad()
def sample(model: LoopMoE, prompts: Tensor, random: Generator) -> Tensor:
    """Complete ``prompts`` (N, PROMPT_LENGTH) at temperature 1; raises PolicyDestroyed."""
    ids = prompts
    for _ in range(task.ANSWER_LENGTH):
        logits = model(ids).logits[:, -1]
        logits[:, task.EQUALS :] = _FORBIDDEN  # an answer holds digits and the end token
        likely = logits.softmax(-1)
        if not torch.isfinite(likely).all():
            raise PolicyDestroyed("the policy's probabilities are not finite; the parameters were destroyed")
        ids = torch.cat([ids, torch.multinomial(likely, 1, generator=random)], 1)
    return ids


@torch.no_grad()
def roll_out(model: LoopMoE, base: LoopMoE, prompts: Tensor, random: Generator) -> Rollouts:
    """Draw one completion for each row of ``prompts`` and score it; raises PolicyDestroyed."""
    sequences = sample(model, prompts, random)
    output = model(sequences[:, :-1])
    policy = score(output.logits, sequences)
    of_base = score(base(sequences[:, :-1]).logits, sequences)
    return Rollouts(sequences, task.answer_mask(sequences), policy, of_base, output.counts)


def score(logits: Tensor, sequences: Tensor) -> Scores:
    """Scores of the answers in ``sequences`` under ``logits`` (N, LENGTH - 1, vocabulary)."""
    all_log_probs = logits[:, task.PROMPT_LENGTH - 1 :].log_softmax(-1)
    answers = sequences[:, task.PROMPT_LENGTH :, None]
    log_probs = all_log_probs.gather(2, answers).squeeze(2)
    return Scores(log_probs, -(all_log_probs.exp() * all_log_probs).sum(-1))
