"""TrainingState: a copy of the weights and the optimizer's moments, taken and put back.

StepGuard's undo and the checkpoints use the same copy: 1 M floats, about a millisecond. A plain model, one under DDP
and one under FSDP2 are treated alike: of a sharded tensor a rank copies its own part. Give the module itself, never
DDP's wrapper, whose names are others.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor
    from typing_extensions import TypeIs

MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps for a parameter


class TrainingState(NamedTuple):
    """``weights`` by name, persistent buffers among them; ``moments`` by ``<moment>/<parameter name>``.

    There are no moments before the first step. All tensors are plain.
    """

    weights: dict[str, Tensor]
    moments: dict[str, Tensor]


@torch.no_grad()
def capture(model: nn.Module, optimizer: Optimizer) -> TrainingState:
    """Copy what the next optimizer step would change; of a sharded tensor, this rank's part."""
    weights = {name: local(tensor).clone() for name, tensor in held(model)}
    return TrainingState(weights, {name: local(tensor).clone() for name, tensor in _moments(model, optimizer)})


@torch.no_grad()
def whole(model: nn.Module, optimizer: Optimizer) -> TrainingState:
    """The same with every tensor whole. A collective: where the model is sharded, all ranks ask, in the same order."""
    weights = {name: _gathered(tensor) for name, tensor in held(model)}
    return TrainingState(weights, {name: _gathered(tensor) for name, tensor in _moments(model, optimizer)})


def outline(model: nn.Module) -> TrainingState:
    """Names, shapes and types of the whole state after a step, without the numbers (tensors of device meta)."""
    weights = {name: torch.empty(t.shape, dtype=t.dtype, device="meta") for name, t in held(model)}
    scalar = torch.empty((), dtype=torch.float32, device="meta")
    moments = {
        f"{moment}/{name}": scalar if moment == "step" else weights[name]
        for name, tensor in held(model)
        if isinstance(tensor, nn.Parameter)
        for moment in MOMENTS
    }
    return TrainingState(weights, moments)


@torch.no_grad()
def put_back(state: TrainingState, model: nn.Module, optimizer: Optimizer, *, moments: bool = True) -> None:
    """Make model and optimizer what they were, bit for bit; without ``moments`` the optimizer starts afresh.

    ``state`` is what this rank captured, or whole tensors, of which a rank takes its part without asking the others.
    """
    optimizer.state.clear()
    for name, tensor in held(model):
        local(tensor).copy_(_part(state.weights[name], tensor))
        if isinstance(tensor, nn.Parameter):
            tensor.grad = None
            if moments and f"{MOMENTS[0]}/{name}" in state.moments:
                optimizer.state[tensor] = {m: _moment(m, state.moments[f"{m}/{name}"], tensor) for m in MOMENTS}


def held(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and persistent buffers by name, not copies; FSDP2 shards what it had gathered before it answers."""
    yield from model.state_dict(keep_vars=True).items()


def sharded(tensor: Tensor) -> "TypeIs[DTensor]":
    """True of a DTensor; told by what it can do, because importing its class needs torch 2.5."""
    return hasattr(tensor, "to_local")


def local(tensor: Tensor) -> Tensor:
    """What this rank holds of ``tensor``, not a copy. Call it without gradients."""
    return tensor.to_local() if sharded(tensor) else tensor


def like(part: Tensor, tensor: Tensor) -> Tensor:
    """``part``, which is one rank's, sharded as ``tensor`` is; no collective, nothing copied."""
    if not sharded(tensor):
        return part
    made: Tensor = type(tensor).from_local(
        part, tensor.device_mesh, tensor.placements, run_check=False, shape=tensor.shape, stride=tensor.stride()
    )
    return made


def _moments(model: nn.Module, optimizer: Optimizer) -> Iterator[tuple[str, Tensor]]:
    for name, tensor in held(model):
        if tensor in optimizer.state:
            yield from ((f"{moment}/{name}", optimizer.state[tensor][moment]) for moment in MOMENTS)


def _gathered(tensor: Tensor) -> Tensor:
    return (tensor.full_tensor() if sharded(tensor) else tensor).detach().clone()


def _part(source: Tensor, tensor: Tensor) -> Tensor:
    """What this rank holds of ``source``, where ``tensor`` is sharded and ``source`` whole."""
    if not sharded(tensor) or source.shape == local(tensor).shape:
        return source
    from torch.distributed.tensor import distribute_tensor  # of torch 2.5; whoever shards has it

    # src_data_rank=None: every rank has the whole and cuts, instead of rank 0 sending
    cut = distribute_tensor(source.to(tensor.device), tensor.device_mesh, tensor.placements, src_data_rank=None)
    return cut.to_local()


def _moment(moment: str, source: Tensor, parameter: Tensor) -> Tensor:
    """A moment as AdamW keeps it: sharded as the parameter is and on its device, ``step`` a plain scalar."""
    if moment == "step":
        return source.clone()
    return like(_part(source, parameter).to(local(parameter).device, copy=True), parameter)
