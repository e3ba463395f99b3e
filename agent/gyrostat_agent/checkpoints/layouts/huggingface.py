"""Hugging Face: ``checkpoint-N/``, as transformers' Trainer and TRL write it.

Weights are model.safetensors, or shards with model.safetensors.index.json, or pytorch_model.bin, or an adapter; beside
them optimizer.pt, scheduler.pt, rng_state*.pth, and trainer_state.json, which is written last. With FSDP or DeepSpeed
the weights are in folders below, in the layouts of those. Weights of mode 0600 are normal.
Source: transformers/trainer.py, _save_checkpoint.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gyrostat_agent.checkpoints.layouts import dcp, deepspeed
from gyrostat_agent.checkpoints.layouts.contents import Contents, File, How, lacking
from gyrostat_agent.checkpoints.layouts.folder import Listed, folders, json_object, listing, marked
from gyrostat_agent.checkpoints.reference import CheckpointError, Stamp

name = "huggingface"
signs = ("trainer_state.json", "model*.safetensors", "adapter_model*", "pytorch_model*", "training_args.bin")

_FOLDER = re.compile(r"checkpoint-([0-9]{1,15})")
_STATE = "trainer_state.json"
_INDEX = re.compile(r"(?:model|pytorch_model|adapter_model)[\w.-]*\.index\.json")
_TORCH = (".pt", ".pth", ".bin", ".ckpt")
_BESIDE = re.compile(r"(?:scheduler\.pt|scaler\.pt|rng_state(?:_\d+)?\.pth|training_args\.bin)")
_OPTIMIZER = re.compile(r"(?:.*/)?(?:optimizer(?:_\d+)?(?:/.*|\.pt|\.bin)|\w*optim_states\.pt)")
_RANDOM = re.compile(r"rng_state_(\d{1,6})\.pth")


def matches(folder_name: str) -> int | None:
    """The step of ``checkpoint-N``."""
    match = _FOLDER.fullmatch(folder_name)
    return int(match[1]) if match else None


def find(root: str) -> dict[str, Stamp]:
    """The checkpoints under ``root`` that have a trainer_state.json."""
    stamps = {
        os.path.join(root, each): marked(root, each, _STATE) for each in folders(root) if matches(each) is not None
    }
    return {path: stamp for path, stamp in stamps.items() if stamp is not None}


def read(folder: int, folder_name: str) -> Contents:
    """What is in the folder; raises CheckpointError."""
    found = listing(folder)
    if _STATE not in found:
        raise CheckpointError(f"{_STATE}, which is written last, is missing: half-written, or being deleted")
    state = json_object(folder, _STATE)
    step = _whole(state.get("global_step"))
    if step is None:
        raise CheckpointError(f"{_STATE} has no global_step")
    files = {path: file_of(path, each) for path, each in found.items() if "/" not in path}
    expected, problems = _indexed(folder, files)
    for part in (dcp.below(folder, found), deepspeed.below(folder, found)):
        files.update(part.files)
        expected.update(part.expected)
        problems += part.problems
    files.update({path: file_of(path, each) for path, each in found.items() if path not in files})
    problems += _ranks(files)
    if not any(file.weights and not _OPTIMIZER.fullmatch(path) for path, file in files.items()):
        problems.append("it holds no weights of the model: there is nothing to go back to")
    return Contents(
        matches(folder_name) or 0, step, found[_STATE].mtime_ns / 1e9, files, expected,
        knobs=_learning_rate(state), problems=tuple(problems),
    )  # fmt: skip


def complete(contents: Contents, siblings: Sequence[Mapping[str, int]]) -> list[str]:
    """What is missing or too short."""
    return lacking(contents, siblings)


def file_of(path: str, listed: Listed) -> File:
    """How a file is read, by its name alone: what may hold weights is taken to hold some."""
    leaf = path.rpartition("/")[2]
    if leaf.endswith(".safetensors"):
        return File(listed.bytes, How.SAFETENSORS, weights=True)
    if leaf.endswith(_TORCH):
        return File(listed.bytes, How.TORCHZIP, weights=not _BESIDE.fullmatch(leaf))
    if leaf.endswith((".distcp", ".npz", ".npy", ".h5", ".pkl", ".msgpack")):
        return File(listed.bytes, How.OPAQUE, weights=True)
    return File(listed.bytes, How.JSON if leaf.endswith(".json") else How.PLAIN)


def _indexed(folder: int, files: dict[str, File]) -> tuple[dict[str, int], list[str]]:
    """What the indexes say must be there; the shards' tensors are noted in ``files``."""
    expected, problems = dict[str, int](), list[str]()
    for index in [path for path in files if _INDEX.fullmatch(path)]:
        said = json_object(folder, index).get("weight_map")
        if not isinstance(said, dict) or not said or not all(isinstance(each, str) for each in said.values()):
            problems.append(f"{index} has no weight_map of tensor to file")
            continue
        tensors = dict[str, set[str]]()
        for tensor, shard in said.items():
            tensors.setdefault(shard, set()).add(tensor)
        for shard, names in tensors.items():
            if "/" in shard or not shard.endswith((".safetensors", ".bin")):
                problems.append(f"{index} names {shard[:80]!a}, which is no file of weights in this folder")
            else:
                expected[shard] = 1
                if shard in files:
                    files[shard] = files[shard]._replace(tensors=frozenset(names))
        problems += _strays(index, files, tensors)
    return expected, problems


def _strays(index: str, files: Mapping[str, File], tensors: Mapping[str, object]) -> list[str]:
    """Shards that are there and that the index does not know: it is of another save."""
    shard = re.compile(re.escape(index.partition(".")[0]) + r"-\d+-of-\d+\.(?:safetensors|bin)")
    return [f"{path} is not in {index}" for path in files if shard.fullmatch(path) and path not in tensors]


def _ranks(files: Mapping[str, File]) -> list[str]:
    """A hole in the numbers of the ranks' random states."""
    ranks = {int(match[1]) for match in map(_RANDOM.fullmatch, files) if match}
    return [
        f"rng_state_{rank}.pth is missing" for rank in range(min(max(ranks, default=0), 10**5)) if rank not in ranks
    ]


def _learning_rate(state: Mapping[str, Any]) -> dict[str, float]:
    log = state.get("log_history")
    for entry in reversed(log if isinstance(log, list) else []):
        rate = entry.get("learning_rate") if isinstance(entry, dict) else None
        if isinstance(rate, (int, float)) and not isinstance(rate, bool) and 0 <= rate < 1e9:
            return {"lr": float(rate)}
    return {}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None
