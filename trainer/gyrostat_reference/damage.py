"""Damage: what disks, kernels and careless people do to a checkpoint that was complete.

Each takes the folder of a checkpoint, whole or in shards: of shards, the first is damaged, or the last is lost.
"""

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

from gyrostat_reference.manifest import MANIFEST, MODEL, OPTIMIZER, File, Manifest, digest_of

_HEADER = 8  # bytes that tell the header's length in a safetensors file


def truncate(folder: Path) -> None:
    """Half of the weights: a full disk, a copy that was cut off."""
    _halve(_weights(folder))


def flip(folder: Path) -> None:
    """One bit in the middle of the weights: memory or disk."""
    data = bytearray(_weights(folder).read_bytes())
    data[len(data) // 2] ^= 1
    _weights(folder).write_bytes(data)


def lose(folder: Path) -> None:
    """No moments: half of a deletion."""
    whole = folder / OPTIMIZER
    (whole if whole.exists() else _shards(folder)[-1]).unlink()


def cut_manifest(folder: Path) -> None:
    """Half a manifest: written without a sync, before the power went."""
    _halve(folder / MANIFEST)


def spoil(folder: Path) -> None:
    """A NaN among the weights, and digests that fit: written so by whoever saved it."""
    path = _weights(folder)
    data = bytearray(path.read_bytes())
    at = _first_weight(data)
    data[at : at + 4] = struct.pack("<f", float("nan"))
    path.write_bytes(data)
    manifest = Manifest.decode((folder / MANIFEST).read_bytes())
    files = {**manifest.files, path.name: File(len(data), digest_of(bytes(data)))}
    (folder / MANIFEST).write_bytes(manifest._replace(files=files).encode())


WAYS: Mapping[str, Callable[[Path], None]] = {
    "truncate": truncate, "flip": flip, "lose": lose, "cut_manifest": cut_manifest, "spoil": spoil,
}  # fmt: skip


def _halve(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _weights(folder: Path) -> Path:
    whole = folder / MODEL
    return whole if whole.exists() else _shards(folder)[0]


def _shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def _first_weight(data: bytearray) -> int:
    """Where in a safetensors file the first tensor lies that is float32 and, by its name, no moment."""
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(bytes(data[_HEADER : _HEADER + length]))
    begins = [
        entry["data_offsets"][0]
        for name, entry in header.items()
        if "/" not in name and entry.get("dtype") == "F32" and entry["data_offsets"][0] < entry["data_offsets"][1]
    ]
    return _HEADER + int(length) + int(min(begins))
