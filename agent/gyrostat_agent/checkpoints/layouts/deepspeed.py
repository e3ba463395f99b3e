"""DeepSpeed: ``global_stepN/``, with the model's states for each model-parallel rank and ZeRO's for each data rank.

How many there must be stands in the model's states (dp_world_size, mp_world_size). ``latest`` beside the folder, or
in ``checkpoint-N`` with Hugging Face, is written last. Source: deepspeed/runtime/engine.py, save_checkpoint.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gyrostat_agent.checkpoints.layouts.contents import Contents, File, How, lacking
from gyrostat_agent.checkpoints.layouts.dcp import Part
from gyrostat_agent.checkpoints.layouts.folder import (
    Listed,
    listing,
    torch_file,
    tracked_up_to,
    unfinished,
    written_at,
)
from gyrostat_agent.checkpoints.pickled import Unreadable, field_of, whole_of
from gyrostat_agent.checkpoints.reference import CheckpointError, Stamp

name = "deepspeed"
signs = ("*model_states.pt", "*optim_states.pt")

TRACKER = "latest"
_FOLDER = re.compile(r"global_step([0-9]{1,15})")
_MODEL = re.compile(r"(?:zero_pp_rank_(\d+)_)?mp_rank_(\d+)_?model_states\.pt")
_ZERO = re.compile(r"((?:bf16_|fp16_)?zero_pp_rank_)(\d+)_mp_rank_(\d+)(_?optim_states\.pt)")
_MOST = 100_000  # ranks


class Said(NamedTuple):
    """What the model's states say of the run."""

    step: int | None = None
    samples: int = -1
    data_ranks: int = 0
    model_ranks: int = 0
    stage: int = 0
    tag: str = ""


def matches(folder_name: str) -> int | None:
    """The step of ``global_stepN``."""
    match = _FOLDER.fullmatch(folder_name)
    return int(match[1]) if match else None


def find(root: str) -> dict[str, Stamp]:
    """The checkpoints under ``root`` that are no newer than what ``latest`` names, where there is one."""
    return tracked_up_to(root, TRACKER, matches)


def read(folder: int, folder_name: str) -> Contents:
    """What is in the folder; raises CheckpointError."""
    found = listing(folder)
    named = matches(folder_name) or 0
    said, expected = _said(folder, "", found)
    files = {path: _file(path, each) for path, each in found.items()}
    return Contents(
        named, named if said.step is None else said.step, written_at(found), files,
        expected, data_cursor=said.samples, tag=said.tag, problems=unfinished(folder, TRACKER, named),
    )  # fmt: skip


def complete(contents: Contents, siblings: Sequence[Mapping[str, int]]) -> list[str]:
    """What is missing or too short."""
    return lacking(contents, siblings)


def below(folder: int, found: Mapping[str, Listed]) -> Part:
    """The checkpoint of this layout that is in a folder below, as Hugging Face has it."""
    files, expected, problems = dict[str, File](), dict[str, int](), list[str]()
    for each in sorted({path.partition("/")[0] for path in found if "/" in path and path.endswith("_states.pt")}):
        inside = {path: listed for path, listed in found.items() if path.startswith(each + "/")}
        said, lacks = _said(folder, each + "/", inside)
        files.update({path: _file(path, listed) for path, listed in inside.items()})
        expected.update(lacks)
        if said.step is not None and matches(each) is not None and said.step != matches(each):
            problems.append(f"{each} holds step {said.step}")
    return Part(files, expected, tuple(problems))


def _file(path: str, listed: Listed) -> File:
    if path.endswith(".pt"):
        return File(listed.bytes, How.TORCHZIP, weights=True)
    return File(listed.bytes)


def _said(folder: int, prefix: str, found: Mapping[str, Listed]) -> tuple[Said, dict[str, int]]:
    """What the first file of the model's states says, and which files there must be for that."""
    inside = [path[len(prefix) :] for path in found]
    models = sorted(path for path in inside if _MODEL.fullmatch(path))
    if not models:
        return Said(), {f"{prefix}mp_rank_00_model_states.pt": 1}
    try:
        said = _of(torch_file(folder, prefix + models[0]).value)
    except Unreadable:
        said = Said()  # told of in the pass over all of it
    except ValueError as error:
        raise CheckpointError(f"{prefix}{models[0]} cannot be read: {error}") from None
    return said, {prefix + path: 1 for path in _expected(said, models, inside)}


def _expected(said: Said, models: list[str], inside: list[str]) -> list[str]:
    zero = [match for match in map(_ZERO.fullmatch, inside) if match]
    head, tail = (zero[0][1], zero[0][4]) if zero else ("zero_pp_rank_", "_optim_states.pt")
    data = max([said.data_ranks, *(int(match[2]) + 1 for match in zero)])
    model = max([said.model_ranks, *(int(match[3]) + 1 for match in zero)])
    if data * model > _MOST:
        raise CheckpointError(f"it is said to be of {data * model} ranks; at most {_MOST} are believed")
    partitioned = any(match and match[1] for match in map(_MODEL.fullmatch, models))
    names = [f"mp_rank_{rank:02d}_model_states.pt" for rank in range(model) if not partitioned]
    for rank in range(model):
        for replica in range(data):
            if zero or said.stage:
                names.append(f"{head}{replica}_mp_rank_{rank:02d}{tail}")
            if partitioned:
                names.append(f"zero_pp_rank_{replica}_mp_rank_{rank:02d}_model_states.pt")
    return names


def _of(value: Any) -> Said:
    stage = whole_of(field_of(field_of(value, "ds_config"), "zero_optimization"), "stage")
    samples, tag = whole_of(value, "global_samples"), field_of(value, "ds_version")
    return Said(
        whole_of(value, "global_steps"), -1 if samples is None else samples,
        whole_of(value, "dp_world_size") or 0, whole_of(value, "mp_world_size") or 0,
        stage or 0, tag if isinstance(tag, str) else "",
    )  # fmt: skip
