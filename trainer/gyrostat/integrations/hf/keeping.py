"""Keeping: what steering must not forget over a rollback or a restart, inside ``trainer_state.json``.

Transformers writes what callbacks have to keep into that file, which is the last one of a checkpoint: nothing is
added to a checkpoint that may have been certified already. A checkpoint without our entry is read as of a run that
was never steered.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ENTRY, STATE = "gyrostat", "trainer_state.json"
_CHECKPOINTS = "checkpoint-*"


class Kept(NamedTuple):
    """``drawn``: micro-batches this rank has drawn since the run's beginning, all stretches together."""

    segment: int = 0
    last_directive: int = 0
    drawn: int = 0
    knobs: Mapping[str, float] = {}
    skips: tuple[int, ...] = ()


def keep(state: Any, kept: Kept) -> None:
    """Have the next checkpoint hold it."""
    callbacks = getattr(state, "stateful_callbacks", None)
    if isinstance(callbacks, dict):
        callbacks[ENTRY] = {"args": {}, "attributes": kept._asdict()}


def kept_in(callbacks: object) -> Kept | None:
    """What a checkpoint's ``stateful_callbacks`` hold of ours; None where that is nothing, or not to be read."""
    try:
        said = callbacks[ENTRY]["attributes"]  # type: ignore[index]
        return Kept(
            int(said["segment"]), int(said["last_directive"]), int(said["drawn"]),
            {str(name): float(value) for name, value in said["knobs"].items()},
            tuple(int(step) for step in said["skips"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def state_of(folder: Path) -> dict[str, Any]:
    """A checkpoint's trainer_state.json; raises ValueError where there is none, or another thing."""
    try:
        said = json.loads((folder / STATE).read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder}: {STATE} cannot be read: {error}") from None
    if not isinstance(said, dict) or not isinstance(said.get("global_step"), int):
        raise ValueError(f"{folder}: {STATE} has no global_step")
    return said


def all_kept(root: Path) -> Iterator[Kept]:
    """What the checkpoints under ``root`` hold of ours, in no order."""
    for folder in root.glob(_CHECKPOINTS):
        try:
            found = kept_in(state_of(folder).get("stateful_callbacks"))
        except ValueError:
            continue
        if found is not None:
            yield found
