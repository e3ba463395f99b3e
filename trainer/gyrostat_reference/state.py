"""TrainingState: a copy of the weights and the optimizer's moments, taken and put back.

StepGuard's undo and the checkpoints use the same copy: 1 M floats, about a millisecond.
"""

from typing import NamedTuple

from torch import Tensor
from torch.optim import Optimizer

from gyrostat_reference.model import LoopMoE

MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps for a parameter


class TrainingState(NamedTuple):
    """``weights`` by parameter name; ``moments`` by ``<moment>/<parameter name>``, empty before the first step."""

    weights: dict[str, Tensor]
    moments: dict[str, Tensor]


def capture(model: LoopMoE, optimizer: Optimizer) -> TrainingState:
    """Copy what the next optimizer step would change."""
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    moments = {
        f"{moment}/{name}": optimizer.state[p][moment].clone()
        for name, p in model.named_parameters()
        if p in optimizer.state
        for moment in MOMENTS
    }
    return TrainingState(weights, moments)


def put_back(state: TrainingState, model: LoopMoE, optimizer: Optimizer, *, moments: bool = True) -> None:
    """Make model and optimizer what they were, bit for bit; without ``moments`` the optimizer starts afresh."""
    optimizer.state.clear()
    for name, parameter in model.named_parameters():
        parameter.data.copy_(state.weights[name])
        parameter.grad = None
        if moments and state.moments:
            optimizer.state[parameter] = {m: state.moments[f"{m}/{name}"].clone() for m in MOMENTS}
