"""Manifest: the last file of a checkpoint to be written, which makes it complete, and the digests of the others.

A checkpoint is a folder ``step-00000020``: ``model.safetensors`` and ``optimizer.safetensors``, or instead of them a
``shard-...safetensors`` of each rank; ``state.json``, ``manifest.json``. Its digest, as directives name it, is the
digest of the manifest's bytes.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import xxhash

from gyrostat_reference.data import Place

FORMAT = "gyrostat-reference/1"
MANIFEST, MODEL, OPTIMIZER, STATE = "manifest.json", "model.safetensors", "optimizer.safetensors", "state.json"
FILES = (MODEL, OPTIMIZER, STATE)
SHARD = re.compile(r"shard-\d{5}-model-\d{5}-of-\d{5}\.safetensors")
_LARGEST_NUMBER = 2**53
_HUGE = 1e300  # compared with a whole number of any size; turning such a one into a float would overflow
FOLDER = re.compile(r"^step-\d{8}(-s\d+(-\d+)?)?$")


class CheckpointError(ValueError):
    """A checkpoint that must not be loaded, with the reason."""


class File(NamedTuple):
    """A file's size and digest."""

    bytes: int
    digest: str


class Manifest(NamedTuple):
    """What a checkpoint says of itself. ``place`` is where the data stood, ``time`` Unix seconds.

    ``identity``: what makes it this run's, by name: seed and shape. Another run's items are other prompts.
    """

    step: int
    segment: int
    last_directive: int
    time: float
    place: Place
    knobs: Mapping[str, float]
    files: Mapping[str, File]
    identity: Mapping[str, int] = {}

    def encode(self) -> bytes:
        """The bytes of ``manifest.json``."""
        raw = {
            "format": FORMAT, "step": self.step, "segment": self.segment, "last_directive": self.last_directive,
            "time": self.time, "data_cursor": self.place.cursor, "data_seen": self.place.seen,
            "passed_over": sorted(self.place.passed_over), "knobs": dict(self.knobs),
            "identity": dict(self.identity), "files": {name: file._asdict() for name, file in self.files.items()},
        }  # fmt: skip
        return json.dumps(raw, indent=1, sort_keys=True, allow_nan=False).encode()

    @classmethod
    def decode(cls, body: bytes) -> "Manifest":
        """Read ``manifest.json``; raises CheckpointError."""
        try:
            return cls._from(json.loads(body))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise CheckpointError(f"{MANIFEST} cannot be read: {type(error).__name__}: {error}") from None

    @classmethod
    def _from(cls, raw: Mapping[str, Any]) -> "Manifest":
        if raw["format"] != FORMAT:
            raise ValueError(f"the format is {raw['format']!r}, not {FORMAT!r}")
        names = set(raw["files"])
        if names != set(FILES) and not (
            len(names) > 1 and STATE in names and all(map(SHARD.fullmatch, names - {STATE}))
        ):
            raise ValueError(
                f"it lists {', '.join(sorted(raw['files']))}, not {', '.join(FILES)} or a shard of each rank"
            )
        files = {name: File(whole(f["bytes"]), str(f["digest"])) for name, f in raw["files"].items()}
        place = Place(
            whole(raw["data_cursor"]), whole(raw["data_seen"]), frozenset(whole(i) for i in raw["passed_over"])
        )
        return cls(
            whole(raw["step"]), whole(raw["segment"]), whole(raw["last_directive"]), finite(raw["time"]),
            place, {str(k): finite(v) for k, v in raw["knobs"].items()}, files,
            {str(k): whole(v) for k, v in raw.get("identity", {}).items()},
        )  # fmt: skip

    @property
    def age(self) -> tuple[int, int, float]:
        """Sorts checkpoints from old to new: what came after a jump back is newer, whatever its step."""
        return self.segment, self.step, self.time


def digest_of(data: bytes) -> str:
    """``xxh3_128:`` and the hash in hex."""
    return f"xxh3_128:{xxhash.xxh3_128_hexdigest(data)}"


def whole(value: object) -> int:
    """``value`` where it is a whole number of at least 0; raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST_NUMBER:
        raise ValueError(f"{str(value)[:40]} is not a whole number from 0 to 2**53")
    return value


def finite(value: object) -> float:
    """``value`` where it is a finite number; raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_HUGE < value < _HUGE:
        raise ValueError(f"{str(value)[:40]} is not a finite number")
    return float(value)
