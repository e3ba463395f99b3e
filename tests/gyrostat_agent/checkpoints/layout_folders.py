"""Checkpoints as other trainers write them: small, by torch.save, safetensors and torch.distributed.checkpoint."""

import argparse
import json
import random
import warnings
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoint_folders import packed

torch: Any = pytest.importorskip("torch", reason="these checkpoints are written by torch")

Value = float | None


def model(seed: int = 0, spoilt: Value = None) -> "OrderedDict[str, Any]":
    """Weights of two layers, float32 and bfloat16; ``spoilt`` lands somewhere in the last one."""
    torch.manual_seed(seed)
    weights = OrderedDict(
        (name, torch.randn(shape).to(dtype))
        for name, shape, dtype in [
            ("embed.weight", (30, 16), torch.float32),
            ("layers.0.weight", (16, 16), torch.bfloat16),
            ("layers.0.bias", (16,), torch.float32),
            ("head.weight", (40, 16), torch.float32),
        ]
    )
    if spoilt is not None:
        weights["head.weight"][seed % 40, seed % 16] = spoilt
    return weights


def optimizer(seed: int = 0, spoilt: Value = None) -> dict[str, Any]:
    """The state of a real AdamW after one step."""
    parameters = [torch.nn.Parameter(each.float()) for each in model(seed).values()]
    adam = torch.optim.AdamW(parameters, lr=1e-3)
    for each in parameters:
        each.grad = torch.randn_like(each)
    adam.step()
    if spoilt is not None:
        adam.state[parameters[-1]]["exp_avg_sq"][seed % 40, 3] = spoilt
    state: dict[str, Any] = adam.state_dict()
    return state


def randomness() -> dict[str, Any]:
    return {"python": random.getstate(), "numpy": np.random.get_state(), "cpu": torch.random.get_rng_state()}


def _bytes(tensor: Any) -> tuple[str, bytes]:
    kind = {"torch.float32": "F32", "torch.bfloat16": "BF16"}[str(tensor.dtype)]
    return kind, bytes(tensor.contiguous().view(torch.uint8).numpy().tobytes())


def huggingface(root: Path, step: int = 40, shards: int = 1, spoilt: Value = None, where: str = "model") -> Path:
    """``checkpoint-N`` as transformers' Trainer writes it; ``where`` says in what ``spoilt`` is."""
    folder = root / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    _weights(folder, model(step, spoilt if where == "model" else None), shards)
    torch.save(optimizer(step, spoilt if where == "optimizer" else None), folder / "optimizer.pt")
    torch.save({"last_epoch": step, "_last_lr": [1e-3], "lr_lambdas": [None]}, folder / "scheduler.pt")
    torch.save(randomness(), folder / "rng_state.pth")
    (folder / "config.json").write_text('{"model_type": "mixtral"}')
    log = [{"loss": float("nan"), "learning_rate": 0.0005, "step": step}]
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step, "log_history": log}))
    return folder


def _weights(folder: Path, weights: dict[str, Any], shards: int) -> None:
    names = list(weights)
    if shards == 1:
        (folder / "model.safetensors").write_bytes(packed({name: _bytes(weights[name]) for name in names}))
        return
    files = [f"model-{shard + 1:05d}-of-{shards:05d}.safetensors" for shard in range(shards)]
    placed = {name: files[index % shards] for index, name in enumerate(names)}
    for file in files:
        inside = {name: _bytes(weights[name]) for name in names if placed[name] == file}
        (folder / file).write_bytes(packed(inside))
    index = {"metadata": {"total_size": 1}, "weight_map": placed}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def dcp(root: Path, step: int = 40, spoilt: Value = None, where: str = "model", name: str = "step-{}") -> Path:
    """A real save of torch.distributed.checkpoint by one process, in two files."""
    from torch.distributed import checkpoint

    folder = root / name.format(step)
    state = {
        "model": model(step, spoilt if where == "model" else None),
        "optimizer": optimizer(step, spoilt if where == "optimizer" else None),
        "step": step,
        "data": {"seen": [1, 2, step]},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no process group is meant
        writer = checkpoint.FileSystemWriter(folder, thread_count=2)
        checkpoint.save(state, storage_writer=writer, no_dist=True)
    return folder


def megatron(root: Path, step: int = 200, spoilt: Value = None, where: str = "model") -> Path:
    """``iter_N`` with one file for each of two tensor-parallel and two pipeline-parallel ranks."""
    folder = root / f"iter_{step:07d}"
    for tensor in range(2):
        for pipeline in range(2):
            bad = spoilt if (tensor, pipeline) == (1, 1) else None
            place = folder / f"mp_rank_{tensor:02d}_{pipeline:03d}"
            place.mkdir(parents=True)
            torch.save(_rank(step, bad, where, seed=10 * tensor + pipeline), place / "model_optim_rng.pt")
    (root / "latest_checkpointed_iteration.txt").write_text(str(step))
    return folder


def _rank(step: int, spoilt: Value, where: str, seed: int) -> dict[str, Any]:
    args = argparse.Namespace(
        tensor_model_parallel_size=2,
        pipeline_model_parallel_size=2,
        consumed_train_samples=step * 8,
        params_dtype=torch.bfloat16,
    )
    return {
        "args": args, "checkpoint_version": 3.0, "iteration": step,
        "model": model(seed, spoilt if where == "model" else None),
        "optimizer": {"optimizer": optimizer(seed, spoilt if where == "optimizer" else None), "fp32_from_fp16": [[]]},
        "rng_state": [{"np_rng_state": np.random.get_state(), "torch_rng_state": torch.get_rng_state()}],
    }  # fmt: skip


def megatron_dist(root: Path, step: int = 200, spoilt: Value = None, where: str = "model") -> Path:
    """``iter_N`` as a distributed checkpoint, torch_dist."""
    folder = dcp(root, step, spoilt, where, name="iter_{:07d}")
    args = argparse.Namespace(
        tensor_model_parallel_size=2, pipeline_model_parallel_size=1, consumed_train_samples=step * 8
    )
    torch.save({"args": args, "checkpoint_version": 3.0, "iteration": step}, folder / "common.pt")
    (folder / "metadata.json").write_text('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
    (root / "latest_checkpointed_iteration.txt").write_text(str(step))
    return folder


def deepspeed(root: Path, step: int = 60, spoilt: Value = None, where: str = "model") -> Path:
    """``global_stepN`` of ZeRO 2 on four data-parallel ranks."""
    folder = root / f"global_step{step}"
    folder.mkdir(parents=True)
    states = {
        "module": model(step, spoilt if where == "model" else None), "buffer_names": [], "optimizer": None,
        "param_shapes": [OrderedDict((name, each.shape) for name, each in model(step).items())],
        "lr_scheduler": {"last_batch_iteration": step}, "skipped_steps": 0, "global_steps": step,
        "global_samples": step * 16, "dp_world_size": 4, "mp_world_size": 1,
        "ds_config": {"zero_optimization": {"stage": 2}}, "ds_version": "0.18.2",
    }  # fmt: skip
    torch.save(states, folder / "mp_rank_00_model_states.pt")
    for rank in range(4):
        torch.manual_seed(rank)
        moments = {"exp_avg": torch.randn(500), "exp_avg_sq": torch.rand(500), "step": step}
        if spoilt is not None and where == "optimizer" and rank == 3:
            moments["exp_avg"][77] = spoilt
        state = {
            "base_optimizer_state": {"state": {0: moments}, "param_groups": [{"lr": 1e-3, "params": [0]}]},
            "single_partition_of_fp32_groups": [torch.randn(500)], "zero_stage": 2, "partition_count": [4],
        }  # fmt: skip
        saved = {"optimizer_state_dict": state, "ds_version": "0.18.2"}
        torch.save(saved, folder / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    (root / "latest").write_text(f"global_step{step}")
    return folder


def sharded(root: Path, step: int = 40, spoilt: Value = None, where: str = "model") -> Path:
    return huggingface(root, step, 3, spoilt, where)


def single(root: Path, step: int = 40, spoilt: Value = None, where: str = "model") -> Path:
    return huggingface(root, step, 1, spoilt, where)


def zero_below(root: Path, step: int = 40, spoilt: Value = None, where: str = "model") -> Path:
    """``checkpoint-N`` of the Trainer under DeepSpeed: ZeRO's states in a folder below."""
    folder = huggingface(root, step, 1, spoilt if where == "model" else None)
    (folder / "optimizer.pt").unlink()
    deepspeed(folder, step, spoilt if where == "optimizer" else None, where)
    return folder


def fsdp_below(root: Path, step: int = 40, spoilt: Value = None, where: str = "model") -> Path:
    """``checkpoint-N`` of the Trainer under FSDP: weights as DCP in a folder below."""
    folder = huggingface(root, step, 1)
    (folder / "model.safetensors").unlink()
    dcp(folder, step, spoilt, where, name="pytorch_model_fsdp_0")
    return folder


WRITERS: dict[str, Callable[..., Path]] = {
    "huggingface": single, "huggingface-sharded": sharded, "huggingface-zero": zero_below,
    "huggingface-fsdp": fsdp_below, "dcp": dcp, "megatron": megatron, "megatron-dist": megatron_dist,
    "deepspeed": deepspeed,
}  # fmt: skip
