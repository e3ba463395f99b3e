"""Checkpoint: all that a trainer must get back, read from a folder only after everything was verified.

The bytes that were verified are the bytes that are loaded: nobody can swap a file in between. Nothing is
unpickled. A checkpoint with a value that is not finite is complete and still refused.
"""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Generator, Tensor

from gyrostat_reference.knobs import KnobValues, turned
from gyrostat_reference.manifest import (
    FILES,
    FOLDER,
    MANIFEST,
    MODEL,
    OPTIMIZER,
    STATE,
    CheckpointError,
    Manifest,
    digest_of,
    finite,
    whole,
)  # fmt: skip
from gyrostat_reference.state import MOMENTS, TrainingState

_LARGEST = 1 << 28  # bytes of one file; ours have 3 MB


class Running(NamedTuple):
    """What goes on from step to step beside the tensors: the generator's state, the averages."""

    random: bytes
    averages: Mapping[str, float]


class Checkpoint(NamedTuple):
    """A checkpoint in memory; the manifest's ``files`` are empty until it is written."""

    manifest: Manifest
    training: TrainingState
    running: Running

    @property
    def knobs(self) -> KnobValues:
        """How the knobs stood; raises ValueError where they are not ours."""
        return turned(KnobValues(), self.manifest.knobs)

    def files(self) -> dict[str, bytes]:
        """The contents of every file but the manifest."""
        place = self.manifest.place
        state = {
            "random": self.running.random.hex(), "averages": dict(self.running.averages),
            "data_cursor": place.cursor, "data_seen": place.seen, "passed_over": sorted(place.passed_over),
        }  # fmt: skip
        return {
            MODEL: save(self.training.weights),
            OPTIMIZER: save(self.training.moments),
            STATE: json.dumps(state, sort_keys=True, allow_nan=False).encode(),
        }


def complete(root: Path) -> list[tuple[Path, Manifest]]:
    """The checkpoints under ``root`` whose manifest can be read, oldest first. Their files are not verified."""
    found = []
    for path in root.iterdir() if root.is_dir() else ():
        if FOLDER.match(path.name):
            try:
                found.append((path, Manifest.decode(_bytes_of(path / MANIFEST))))
            except CheckpointError:
                continue
    return sorted(found, key=lambda each: each[1].age)


def read(root: Path, path: str | os.PathLike[str], like: TrainingState, digest: str = "") -> Checkpoint:
    """Verify and load the checkpoint at ``path``; raises CheckpointError saying what is wrong with it.

    ``like`` is the trainer's present state: names, shapes and types must be the same. ``digest`` is the
    manifest's, as a directive names it; '' asks for none.
    """
    folder = _inside(root, path)
    body = _bytes_of(folder / MANIFEST)
    if digest and digest_of(body) != digest:
        raise CheckpointError(f"{folder.name}: {MANIFEST} has digest {digest_of(body)}, not {digest}")
    manifest = Manifest.decode(body)
    contents = {name: _verified(folder, name, manifest) for name in FILES}
    try:
        training = TrainingState(_tensors(contents[MODEL]), _tensors(contents[OPTIMIZER]))
        _check_tensors(training, like)
        checkpoint = Checkpoint(manifest, training, _running(contents[STATE], manifest))
        _ = checkpoint.knobs
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, RecursionError) as error:
        raise CheckpointError(f"{folder.name}: {error}") from None
    return checkpoint


def _inside(root: Path, path: str | os.PathLike[str]) -> Path:
    """``path`` as a real folder under ``root``, reached without links; raises CheckpointError."""
    base = Path(os.path.abspath(root))
    folder = Path(os.path.abspath(base / path))
    if base not in folder.parents:
        raise CheckpointError(f"{path} is not inside the checkpoint root {base}")
    for part in (folder, *folder.parents):
        if part == base:
            break
        if part.is_symlink() or not part.is_dir():
            raise CheckpointError(f"{part} is not a folder; a link is not followed")
    return folder


def _verified(folder: Path, name: str, manifest: Manifest) -> bytes:
    data, expected = _bytes_of(folder / name), manifest.files[name]
    if len(data) != expected.bytes:
        raise CheckpointError(f"{folder.name}: {name} has {len(data)} bytes, not {expected.bytes}")
    if digest_of(data) != expected.digest:
        raise CheckpointError(f"{folder.name}: {name} has digest {digest_of(data)}, not {expected.digest}")
    return data


def _bytes_of(path: Path) -> bytes:
    """The contents of a regular file; raises CheckpointError where it is missing, a link or too large."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise CheckpointError(f"{path.parent.name}: {path.name} cannot be opened: {error.strerror}") from None
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            raise CheckpointError(f"{path.parent.name}: {path.name} is no regular file of at most {_LARGEST} bytes")
        return file.read(_LARGEST)


def _tensors(data: bytes) -> dict[str, Tensor]:
    try:
        return load(data)
    except SafetensorError as error:
        raise ValueError(f"the tensors cannot be read: {error}") from None


def _check_tensors(found: TrainingState, like: TrainingState) -> None:
    """Raise ValueError unless the tensors are ours by name, shape and type, and finite."""
    expected = {f"{moment}/{name}" for moment in MOMENTS for name in like.weights}
    if found.moments and found.moments.keys() != expected:
        raise ValueError(f"{OPTIMIZER} holds other parameters than this model has")
    if found.weights.keys() != like.weights.keys():
        raise ValueError(f"{MODEL} holds other parameters than this model has")
    for name, tensor in (*found.weights.items(), *found.moments.items()):
        moment, _, parameter = name.rpartition("/")
        shape = torch.Size() if moment == "step" else like.weights[parameter].shape
        if tensor.shape != shape or tensor.dtype != torch.float32:
            raise ValueError(f"{name} is {tensor.dtype} of shape {tuple(tensor.shape)}, not float32 {tuple(shape)}")
        if not torch.isfinite(tensor).all():
            raise ValueError(f"{name} holds a value that is not finite")


def _running(data: bytes, manifest: Manifest) -> Running:
    """Read ``state.json``; raises ValueError where it contradicts the manifest or holds no generator's state."""
    raw = json.loads(data)
    place = manifest.place
    stated = (whole(raw["data_cursor"]), whole(raw["data_seen"]), sorted(whole(i) for i in raw["passed_over"]))
    if stated != (place.cursor, place.seen, sorted(place.passed_over)):
        raise ValueError(f"{STATE} and {MANIFEST} disagree about where the data stood")
    random = bytes.fromhex(raw["random"])
    Generator().set_state(torch.frombuffer(bytearray(random), dtype=torch.uint8))  # RuntimeError where it is none
    return Running(random, {str(k): finite(v) for k, v in raw["averages"].items()})
