"""Megatron: ``iter_0000200/``, as one file a model-parallel rank or as a distributed checkpoint (``torch_dist``).

``latest_checkpointed_iteration.txt`` beside the folder is written last. How many ranks there must be stands in the
arguments that are saved with the first one. zarr is opaque. Source: megatron/training/checkpointing.py.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gyrostat_agent.checkpoints.layouts import dcp
from gyrostat_agent.checkpoints.layouts.contents import Contents, File, How, lacking
from gyrostat_agent.checkpoints.layouts.folder import (
    Listed,
    json_object,
    listing,
    torch_file,
    tracked_up_to,
    unfinished,
    written_at,
)
from gyrostat_agent.checkpoints.pickled import Unreadable, field_of, whole_of
from gyrostat_agent.checkpoints.reference import CheckpointError, Stamp

name = "megatron"
signs = ("mp_rank_*", "metadata.json", "common.pt")

TRACKER = "latest_checkpointed_iteration.txt"
_FOLDER = re.compile(r"iter_([0-9]{1,15})")
_RANK = re.compile(r"mp_rank_(\d{1,6}(?:_\d{1,6}){0,2})/(model_optim_rng|model_rng|distrib_optim|optim)\.pt")
_MODEL, _COMMON, _BACKEND = "model_optim_rng", "common.pt", "metadata.json"
_MOST = 100_000  # ranks


class Said(NamedTuple):
    """What the saved arguments say of the run."""

    step: int | None = None
    samples: int = -1
    ranks: tuple[int, ...] = ()  # tensor, pipeline and expert parallel; those of 1 are not in the folders' names
    tag: str = ""


def matches(folder_name: str) -> int | None:
    """The step of ``iter_0000200``."""
    match = _FOLDER.fullmatch(folder_name)
    return int(match[1]) if match else None


def find(root: str) -> dict[str, Stamp]:
    """The checkpoints under ``root`` that are no newer than what the tracker names, where there is one."""
    return tracked_up_to(root, TRACKER, matches)


def read(folder: int, folder_name: str) -> Contents:
    """What is in the folder; raises CheckpointError."""
    found = listing(folder)
    named = matches(folder_name) or 0
    problems = unfinished(folder, TRACKER, named)
    files = {path: _file(path, each) for path, each in found.items()}
    if dcp.MARK in found or _BACKEND in found or _COMMON in found:
        said, expected, more = _distributed(folder, found, files)
        problems += more
    else:
        said, expected = _by_rank(folder, found)
    return Contents(
        named, named if said.step is None else said.step, written_at(found), files,
        expected, data_cursor=said.samples, tag=said.tag, problems=problems,
    )  # fmt: skip


def complete(contents: Contents, siblings: Sequence[Mapping[str, int]]) -> list[str]:
    """What is missing or too short."""
    return lacking(contents, siblings)


def _file(path: str, listed: Listed) -> File:
    if path.endswith(".pt"):
        return File(listed.bytes, How.TORCHZIP, weights=True)
    opaque = path.endswith(".distcp") or "/" in path  # zarr: a folder a tensor
    return File(listed.bytes, How.OPAQUE, weights=True) if opaque else File(listed.bytes)


def _distributed(
    folder: int, found: Mapping[str, Listed], files: dict[str, File]
) -> tuple[Said, dict[str, int], tuple[str, ...]]:
    """A distributed checkpoint: what common.pt says, what must be there; ``files`` learns what .metadata says."""
    expected = {_COMMON: 1, _BACKEND: 1}
    said = _of_file(folder, _COMMON) if _COMMON in found else Said()
    backend = json_object(folder, _BACKEND).get("sharded_backend") if _BACKEND in found else None
    if backend not in (None, "torch_dist"):
        return said, expected, ()  # zarr and whatever comes: opaque, so attested at best
    expected[dcp.MARK] = 1
    if dcp.MARK not in found:
        return said, expected, ()
    part = dcp.part(folder, "", found)
    files.update(part.files)
    expected.update(part.expected)
    return said, expected, part.problems


def _by_rank(folder: int, found: Mapping[str, Listed]) -> tuple[Said, dict[str, int]]:
    matches_of = [match for match in map(_RANK.fullmatch, found) if match]
    first = next((path for path in found if path.endswith(f"/{_MODEL}.pt")), "")
    if not first:
        return Said(), {f"mp_rank_00/{_MODEL}.pt": 1}
    said = _of_file(folder, first)
    kinds = sorted({match[2] for match in matches_of})
    ranks = set(_ranks(said.ranks)) or {match[1] for match in matches_of}
    return said, {f"mp_rank_{rank}/{kind}.pt": 1 for rank in ranks for kind in kinds}


def _ranks(counts: tuple[int, ...]) -> Iterator[str]:
    """The numbers in the folders' names for so many tensor-, pipeline- and expert-parallel ranks."""
    if not counts:
        return
    tensor, *others = counts
    if tensor * others[0] * others[1] > _MOST:
        raise CheckpointError(
            f"it is said to be of {tensor * others[0] * others[1]} ranks; at most {_MOST} are believed"
        )
    for first, *rest in itertools.product(range(tensor), *(range(each) for each in others if each > 1)):
        yield "_".join([f"{first:02d}", *(f"{each:03d}" for each in rest)])


def _of_file(folder: int, path: str) -> Said:
    try:
        return _of(torch_file(folder, path).value)
    except Unreadable:
        return Said()  # told of in the pass over all of it
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def _of(value: Any) -> Said:
    args = field_of(value, "args")
    sizes = [
        whole_of(args, f"{kind}_model_parallel_size") or (1 if kind == "expert" else 0)
        for kind in ("tensor", "pipeline", "expert")
    ]
    samples, version = whole_of(args, "consumed_train_samples"), field_of(value, "checkpoint_version")
    return Said(
        whole_of(value, "iteration"), -1 if samples is None else samples, tuple(sizes) if all(sizes) else (),
        str(version) if isinstance(version, (float, str)) else "",
    )  # fmt: skip
