"""The environment of the digits task: it looks at a group after each round and says go on, or gives rewards."""

import torch
from torch import Tensor

from gyrostat_reference import task
from gyrostat_reference.faults import verify


def answer(sequences: Tensor, item: int, poison_item: int | None) -> Tensor | None:
    """Rewards (group,) where the answers have their full length, None where another token is due.

    A completion that has ended goes on to that length all the same, as in ``rollout.sample``: the answer mask
    leaves out what follows the end token.
    """
    if sequences.shape[1] < task.LENGTH:
        return None
    return verify(sequences, torch.full((len(sequences),), item), poison_item)
