"""Lessons small enough to work out by hand: what a model says is given as logits."""

import torch
from torch import Generator, Tensor

from gyrostat_reference import task
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import Lesson, Loss, Minibatch, loss_of
from gyrostat_reference.model import Output
from gyrostat_reference.opefo import entropy_slope
from gyrostat_reference.rollout import Drawn, Rollouts, answer_log_probs, score

BARE = KnobValues(router_aux_coef=0.0, router_z_coef=0.0)  # of all losses the clipped policy gradient alone


def spoken(rows: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Sequences that answer one digit, and logits (rows, LENGTH - 1, VOCABULARY) for them."""
    random = Generator().manual_seed(seed)
    sequences = torch.tensor([[task.FIRST_COUNT, 3, task.EQUALS, 0, 0, 0, task.END]]).repeat(rows, 1)
    sequences[:, 3:6] = torch.randint(0, task.MODULUS, (rows, 3), generator=random)
    return sequences, torch.randn(rows, task.LENGTH - 1, task.VOCABULARY, generator=random, dtype=dtype)


def output(logits: Tensor, balance: float = 0.0, z: float = 0.0) -> Output:
    """What a model would put out that says ``logits``; of its routers the two losses alone."""
    none = torch.zeros(1, 1, 1, dtype=torch.int64)
    return Output(logits, none, torch.tensor(balance), torch.tensor(z), (), torch.zeros(1))


def rollouts(sequences: Tensor, logits: Tensor, mask: Tensor | None = None) -> Rollouts:
    """Rollouts whose policy and reference both say ``logits``."""
    said, log_probs = score(logits, sequences), answer_log_probs(logits)
    slopes = entropy_slope(log_probs, sequences[:, task.PROMPT_LENGTH :])
    mask = task.answer_mask(sequences) if mask is None else mask
    return Rollouts(Drawn(sequences, said.log_probs), mask, said, said, slopes, output(logits))


def loss(rows: Lesson, logits: Tensor, knobs: KnobValues = BARE, bonus: float = 0.0) -> Loss:
    """The loss of all of ``rows`` as one minibatch of one rank."""
    return loss_of(output(logits), Minibatch(rows, float(rows.mask.sum()), float(rows.learn.sum())), knobs, bonus)
