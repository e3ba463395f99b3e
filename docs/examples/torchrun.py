"""The same under torchrun, with DDP or FSDP2: all ranks skip, turn a knob and stop at the same step.

::

    gyrostat run -- torchrun --standalone --nproc-per-node 2 docs/examples/torchrun.py
    gyrostat run -- torchrun --standalone --nproc-per-node 2 docs/examples/torchrun.py --fsdp

Batch 30 of the last rank alone is bad. On GPUs: backend "nccl" for the default group.
"""

import argparse

import torch
from torch import distributed
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import gyrostat
from gyrostat.integrations.torch_distributed import TorchCollective

BAD = 30
turned = {"lr_scale": 1.0, "stop": 0.0}


def turn(**changed: float) -> None:
    """Set a knob, or the wish to stop."""
    turned.update(changed)


def batch_of(step: int, rank: int, world: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Yours: each rank has its own."""
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(step * world + rank))
    return x, x.sum(1, keepdim=True) * (float("nan") if (step, rank) == (BAD, world - 1) else 1.0)


def wrapped(model: torch.nn.Module, fsdp: bool) -> torch.nn.Module:
    """The model on all ranks: sharded by FSDP2, or copied by DDP."""
    if not fsdp:
        return DistributedDataParallel(model)
    for layer in model.children():
        fully_shard(layer)
    return fully_shard(model)


def whole(value: torch.Tensor) -> float:
    """A number from a tensor; of FSDP2's DTensor the full value, which is a collective: call it on all ranks."""
    return float(value.full_tensor() if hasattr(value, "full_tensor") else value)


def train(model: torch.nn.Module, steps: int, rank: int, world: int) -> tuple[gyrostat.StepGuard, gyrostat.Control]:
    """Train, and tell and obey; the guard, which knows how many steps were passed over, and the control."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    telemetry = gyrostat.Telemetry()  # rank and world are torchrun's
    ranks = TorchCollective(distributed.new_group(backend="gloo"))  # a group of its own, beside DDP's
    scale = gyrostat.Knob(
        "lr_scale", lambda: turned["lr_scale"], lambda value: turn(lr_scale=value), 0.01, 1.0, max_factor=2.0
    )
    control = gyrostat.Control(telemetry, [scale], {"stop": lambda _: turn(stop=1.0)}, collective=ranks)
    guard = gyrostat.StepGuard(agree=ranks.agree_max)
    for step in range(1, steps + 1):
        control.apply(step)
        if turned["stop"]:
            break
        x, y = batch_of(step, rank, world)
        optimizer.param_groups[0]["lr"] = 1e-2 * turned["lr_scale"]
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        values = {"loss": loss.item(), "grad_norm": whole(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))}
        if guard.allows(step, **values):
            optimizer.step()
        telemetry.record(step, **values, lr_scale=turned["lr_scale"], **guard.values())
    distributed.barrier()  # the last vote is on its way: let it arrive
    telemetry.close()
    return guard, control


def main() -> None:
    """One rank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fsdp", action="store_true", help="shard by FSDP2; DDP without")
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(0)
    model = wrapped(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)), given.fsdp)
    guard, control = train(model, given.steps, rank, world)
    finite = all(whole(p.isfinite().all()) for p in model.parameters())
    print(f"TRAINED rank={rank} finite={finite} skipped={guard.skipped}", flush=True)
    distributed.destroy_process_group()
    del model  # before control: what of the last vote gloo's threads still hold must not be theirs alone
    del control


if __name__ == "__main__":
    main()
