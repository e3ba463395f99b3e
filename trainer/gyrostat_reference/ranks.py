"""Ranks: the processes that train one model together, and what they ask of each other.

``Alone`` is one process and knows nothing of torch.distributed; ``Together`` is what torchrun started. Every call is
a collective: all ranks make the same calls in the same order, or they wait for each other until the timeout ends it.
Small numbers travel by gloo between the hosts' memories, so that no call synchronises a device. Two threads must not
share a group: ``aside`` gives the second its own.

    RankLost(RuntimeError)      a collective failed: a rank is gone, hangs, or does something else
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn
from torch import distributed as dist

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule

T = TypeVar("T")
_TIMEOUT = 60.0  # seconds; longer than a slow rank's step, far shorter than gloo's own half an hour


class RankLost(RuntimeError):
    """Another rank is gone or does not answer; this process cannot go on without it."""


class Ranks(Protocol):
    """What the trainer asks of its fellow ranks; ``group`` is for torch's own functions, None in one process."""

    rank: int
    world: int
    group: dist.ProcessGroup | None

    def sums(self, values: Sequence[float]) -> list[float]:
        """Each value's sum over the ranks in float64, the same bits on every rank; NaN stays NaN."""

    def gathered(self, data: bytes) -> list[bytes]:
        """Every rank's bytes, in rank order."""

    def largest(self, value: float) -> float:
        """The largest of the ranks' values; NaN is the largest of all."""

    def aside(self) -> "Ranks":
        """The same ranks over a group of their own, for another thread."""

    def close(self) -> None:
        """Leave the group; the last call, after writers and whatever else has threads were waited for."""


class Alone:
    """One process: every answer is its own."""

    rank, world = 0, 1
    group: dist.ProcessGroup | None = None

    def sums(self, values: Sequence[float]) -> list[float]:
        """The values."""
        return [float(value) for value in values]

    def gathered(self, data: bytes) -> list[bytes]:
        """The bytes."""
        return [data]

    def largest(self, value: float) -> float:
        """The value."""
        return float(value)

    def aside(self) -> "Alone":
        """Itself."""
        return self

    def close(self) -> None:
        """Do nothing."""


class Together:
    """The ranks of a gloo group; ``timeout`` in seconds. Raises RankLost from every call where one is gone."""

    def __init__(self, timeout: float = _TIMEOUT) -> None:
        self._timeout = timeout
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        made = self._asked(lambda: dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout)))
        self.group: dist.ProcessGroup | None = cast(dist.ProcessGroup, made)

    def sums(self, values: Sequence[float]) -> list[float]:
        """Gathered, then added in rank order: a reduction may add in another order on each rank."""
        rows = self._all(torch.tensor(list(values), dtype=torch.float64))
        return [sum(column) for column in zip(*(row.tolist() for row in rows), strict=True)]

    def gathered(self, data: bytes) -> list[bytes]:
        """Every rank's bytes, padded on the way to the longest; nothing is pickled."""
        sizes = [int(size) for size in self._all(torch.tensor([len(data)]))]
        padded = torch.zeros(max(sizes), dtype=torch.uint8)
        padded[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else 0
        rows = self._all(padded) if max(sizes) else [padded] * self.world
        return [row[:size].numpy().tobytes() for row, size in zip(rows, sizes, strict=True)]

    def largest(self, value: float) -> float:
        """Gathered, not reduced: gloo's maximum lets a NaN pass unseen where it comes second."""
        return float(torch.stack(self._all(torch.tensor(value, dtype=torch.float64))).max())  # max() of torch keeps NaN

    def aside(self) -> "Together":
        """A collective too: all ranks make the group together."""
        return Together(self._timeout)

    def close(self) -> None:
        """End torch.distributed in this process, all groups of it; waits for nobody."""
        if dist.is_initialized():
            dist.destroy_process_group()

    def _all(self, mine: Tensor) -> list[Tensor]:
        rows = [torch.empty_like(mine) for _ in range(self.world)]
        self._asked(lambda: dist.all_gather(rows, mine, self.group))
        return rows

    def _asked(self, collective: Callable[[], T]) -> T:
        try:
            return collective()
        except RuntimeError as error:
            raise _lost(f"rank {self.rank} of {self.world}", self._timeout, error) from None


def joined(environ: Mapping[str, str], timeout: float = _TIMEOUT) -> Ranks:
    """The ranks that torchrun started, or this process alone where WORLD_SIZE is absent or 1.

    ``timeout`` in seconds bounds every wait for another rank, those of DDP and FSDP2 too. Raises ValueError where
    torchrun's variables are incomplete, RankLost where not all ranks come.
    """
    if environ.get("WORLD_SIZE", "1") == "1":
        return Alone()
    try:
        rank, world, port = (int(environ[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
        place = f"tcp://{environ['MASTER_ADDR']}:{port}"
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"WORLD_SIZE={environ['WORLD_SIZE']} asks for several ranks, but {error} is missing or no number: "
            "start the ranks with torchrun"
        ) from None
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        dist.init_process_group(backend, place, timedelta(seconds=timeout), world, rank)
    except RuntimeError as error:
        raise _lost(f"rank {rank} of {world}", timeout, error) from None
    return Together(timeout)


def spread(model: nn.Module, how: Literal["ddp", "fsdp2"], ranks: Ranks) -> nn.Module:
    """What the loss calls ``forward`` on; every rank begins with rank 0's weights. One process: the model itself.

    Both average gradients over the ranks. A loss that is a mean over the *global* batch is therefore, on each rank,
    ``local sum / global count * world``, with the count from ``ranks.sums``. Every rank makes the same number of
    forwards that end in a backward; a rank without tokens calls it too, on a loss of ``0 * sum``.

    Names, ``capture`` and rollouts want ``model``, not what is returned. FSDP2 shards in place: make the optimizer
    afterwards, and roll out under ``unsharded(model)``.
    """
    if ranks.world == 1:
        return model
    for tensor in (*model.parameters(), *model.buffers()):
        dist.broadcast(tensor.detach(), 0)
    if how == "ddp":
        return _replicated(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard  # of torch 2.6

    mesh = init_device_mesh(next(model.parameters()).device.type, (ranks.world,))
    # 1. The root alone: a shard for the block would gather it again in each of its loops.
    # 2. reshard_after_forward: a root is left whole by default, and after a rollout zero_grad would then clear the
    #    whole parameters' gradients and not the shards', which would go on adding up (seen: another norm at step 2).
    fully_shard(model, mesh=mesh, reshard_after_forward=True)
    return model


@contextmanager
def unsharded(model: nn.Module) -> Iterator[None]:
    """Hold the weights whole while rolling out: one collective at the start, none in the forwards.

    So ranks may make different numbers of them, under ``no_grad``. Changes nothing of a model that isn't sharded.
    """
    if not hasattr(model, "unshard"):  # FSDPModule; asked by what it can do, as importing its class needs torch 2.6
        yield
        return
    whole = cast("FSDPModule", model)
    whole.unshard()
    whole.set_reshard_after_forward(False)
    try:
        yield
    finally:
        whole.set_reshard_after_forward(True)
        whole.reshard()


def clip(parameters: Iterable[Tensor], largest: float) -> Tensor:
    """Clip gradients to the global norm ``largest``; the norm before, a plain scalar, the same on all ranks.

    A collective where the parameters are sharded.
    """
    norm = nn.utils.clip_grad_norm_(parameters, largest)
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm


def _replicated(model: nn.Module) -> nn.Module:
    """DDP that leaves buffers alone: the trainer computes them alike on all ranks. No parameter is ever unused."""
    wrapper: Callable[..., nn.Module] = nn.parallel.DistributedDataParallel
    renamed = "forward_sync_buffers" in inspect.signature(wrapper).parameters  # torch 2.13 warns of the old name
    return wrapper(model, **{"forward_sync_buffers" if renamed else "broadcast_buffers": False})


def _lost(who: str, timeout: float, error: RuntimeError) -> RankLost:
    first = str(error).strip().partition("\n")[0]
    return RankLost(
        f"{who}: another rank is gone, or did not answer within {timeout:g} s ({first}). "
        "That rank's own output says why; start all ranks again, and they go on from the last checkpoint"
    )
