"""Reading: a checkpoint, whole or in shards, loaded only after everything was verified.

The bytes that were verified are the bytes that are loaded: nobody can swap a file in between. Nothing is unpickled.
A checkpoint with a value that is not finite is complete and still refused. Every rank reads all files and takes its
part of the whole tensors, so that any number of ranks can go on from any other's checkpoint. A model too large for
one process would need the reader of torch's distributed checkpoint, which reads the shards too.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from gyrostat_reference.checkpoint import Checkpoint, running_in
from gyrostat_reference.folder import bytes_of, inside, verified
from gyrostat_reference.manifest import MANIFEST, STATE, CheckpointError, Manifest, digest_of, whole
from gyrostat_reference.ranks import Ranks
from gyrostat_reference.state import TrainingState

T = TypeVar("T")


def read(
    root: Path, path: str | os.PathLike[str], expected: TrainingState, ranks: Ranks, digest: str = ""
) -> Checkpoint:
    """Verify and load the checkpoint at ``path``, whole or sharded; a collective.

    ``expected`` is the model's ``outline``; ``digest`` the manifest's, '' for any. The tensors are whole. Raises
    CheckpointError on all ranks where it is not fit for one of them: none has touched a thing.
    """
    return agreed(ranks, lambda: _read(inside(root, path), expected, digest))


def agreed(ranks: Ranks, action: Callable[[], T]) -> T:
    """What ``action`` returns on this rank; raises CheckpointError on all ranks where it raised on any."""
    failure: Exception | None = None
    try:
        done = action()
    except Exception as error:  # whatever it is, the others must not wait for this rank
        failure = error
    reason = "" if failure is None else str(failure) or type(failure).__name__
    reasons = ranks.gathered(reason.encode())
    for rank, said in enumerate(reasons):
        if said:
            where = f"rank {rank}: " if ranks.world > 1 else ""
            raise CheckpointError(where + said.decode()) from failure
    return done


def assembled(contents: Mapping[str, bytes], expected: TrainingState) -> TrainingState:
    """Whole tensors out of the ``.safetensors`` files among ``contents``, by name; nothing is believed unchecked.

    Raises ValueError unless names, shapes and types are those ``expected``, every element is there once, and finite.
    """
    wanted = {**expected.weights, **expected.moments}
    made, filled = dict[str, Tensor](), dict[str, Tensor]()
    for file, data in contents.items():
        if file.endswith(".safetensors"):
            for name, (piece, offset) in _pieces(file, data).items():
                if name not in wanted:
                    raise ValueError(f"{file} holds {name}, which this model has not")
                if name not in made:
                    made[name] = torch.empty(wanted[name].shape, dtype=wanted[name].dtype)
                    filled[name] = torch.zeros(wanted[name].shape, dtype=torch.bool)
                _fill(f"{name} in {file}", made[name], filled[name], piece, offset)
    moments = expected.moments if any(name in made for name in expected.moments) else {}
    for name in (*expected.weights, *moments):
        if name not in made or not filled[name].all():
            raise ValueError(f"{name} is not there, or not all of it")
        if not torch.isfinite(made[name]).all():
            raise ValueError(f"{name} holds a value that is not finite")
    return TrainingState({n: made[n] for n in expected.weights}, {n: made[n] for n in moments})


def _read(folder: Path, expected: TrainingState, digest: str) -> Checkpoint:
    body = bytes_of(folder / MANIFEST)
    if digest and digest_of(body) != digest:
        raise CheckpointError(f"{folder.name}: {MANIFEST} has digest {digest_of(body)}, not {digest}")
    manifest = Manifest.decode(body)
    contents = {name: verified(folder, name, manifest) for name in manifest.files}
    try:
        training = assembled(contents, expected)
        checkpoint = Checkpoint(manifest, training, running_in(contents[STATE], manifest))
        _ = checkpoint.knobs
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, RecursionError) as error:
        raise CheckpointError(f"{folder.name}: {error}") from None
    return checkpoint


def _pieces(file: str, data: bytes) -> dict[str, tuple[Tensor, list[int]]]:
    """Each tensor of a safetensors file, and where in the whole tensor it begins (DCP_SHARDING_INFO of the header)."""
    try:
        tensors = load(data)
    except SafetensorError as error:
        raise ValueError(f"{file}: the tensors cannot be read: {error}") from None
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    told: dict[str, Any] = json.loads(header.get("__metadata__", {}).get("DCP_SHARDING_INFO", "{}"))
    begins = {name: told[name]["saved_offsets"] if told else [0] * tensor.dim() for name, tensor in tensors.items()}
    return {name: (tensor, [whole(at) for at in begins[name]]) for name, tensor in tensors.items()}


def _fill(who: str, made: Tensor, filled: Tensor, piece: Tensor, offset: list[int]) -> None:
    """Lay ``piece`` at ``offset``; raises ValueError where it does not belong there."""
    ends = [begin + size for begin, size in zip(offset, piece.shape, strict=True)]
    if (
        piece.dtype != made.dtype
        or len(ends) != made.dim()
        or any(e > s for e, s in zip(ends, made.shape, strict=True))
    ):
        raise ValueError(f"{who} is {piece.dtype} to {tuple(ends)}, not {made.dtype} {tuple(made.shape)}")
    place = tuple(slice(begin, end) for begin, end in zip(offset, ends, strict=True))
    if filled[place].any():
        raise ValueError(f"{who} lies over another part of it")
    made[place] = piece
    filled[place] = True
