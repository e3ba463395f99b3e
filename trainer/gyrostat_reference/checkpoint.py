"""Checkpoint: all that a trainer must get back, and the folders that hold one.

Nothing is pickled. ``writer`` writes whole ones, ``shards`` those of many ranks, ``reading`` reads either.
"""

import json
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import save

from gyrostat_reference.folder import bytes_of
from gyrostat_reference.knobs import KnobValues, restored
from gyrostat_reference.manifest import FOLDER, MANIFEST, MODEL, OPTIMIZER, STATE, CheckpointError, Manifest, whole
from gyrostat_reference.running import Running
from gyrostat_reference.state import TrainingState


class Checkpoint(NamedTuple):
    """A checkpoint in memory; the manifest's ``files`` are empty until it is written. ``running`` is of each rank."""

    manifest: Manifest
    training: TrainingState
    running: tuple[Running, ...]

    @property
    def knobs(self) -> KnobValues:
        """How the knobs stood; raises ValueError where they are not ours."""
        return restored(self.manifest.knobs)

    def files(self) -> dict[str, bytes]:
        """The contents of every file but the manifest."""
        place = self.manifest.place
        state = {
            "ranks": [running.encode() for running in self.running],
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
                found.append((path, Manifest.decode(bytes_of(path / MANIFEST))))
            except CheckpointError:
                continue
    return sorted(found, key=lambda each: each[1].age)


def unreadable(root: Path) -> list[str]:
    """Why a folder under ``root`` that has a manifest is no checkpoint, a line each."""
    reasons = []
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        if FOLDER.match(path.name) and (path / MANIFEST).exists():
            try:
                Manifest.decode(bytes_of(path / MANIFEST))
            except CheckpointError as error:
                reasons.append(f"{path.name}: {error}")
    return reasons


def running_in(data: bytes, manifest: Manifest) -> tuple[Running, ...]:
    """Read ``state.json``; raises ValueError where it contradicts the manifest or holds no generator's state."""
    raw = json.loads(data)
    place = manifest.place
    stated = (whole(raw["data_cursor"]), whole(raw["data_seen"]), sorted(whole(i) for i in raw["passed_over"]))
    if stated != (place.cursor, place.seen, sorted(place.passed_over)):
        raise ValueError(f"{STATE} and {MANIFEST} disagree about where the data stood")
    if not raw["ranks"]:
        raise ValueError(f"{STATE} holds no rank's state")
    return tuple(Running.decode(each) for each in raw["ranks"])
