"""Checkpoints of a Lightning run in folders that the sidecar reads: ``checkpoint-N/`` with Lightning's own file in it.

Lightning's ``.ckpt`` alone is one file, and the sidecar looks at folders. The folder is laid out as Hugging Face's
are: ``lightning.ckpt``, whose tensors are read without unpickling it, and ``trainer_state.json``, written last. A
folder appears whole, by a rename.
"""

import json
import os
import re
import shutil
import time
from contextlib import suppress
from typing import Any, NamedTuple

_FOLDER = re.compile(r"checkpoint-([0-9]{1,15})")
_CKPT, _STATE = "lightning.ckpt", "trainer_state.json"


class Kept(NamedTuple):
    """A checkpoint that is there: its folder and what its trainer_state.json says. ``time``: Unix seconds."""

    folder: str
    step: int
    segment: int
    last_directive: int
    time: float


def kept(root: str) -> list[Kept]:
    """The finished checkpoints under ``root``, the one to go on from last; none where it cannot be listed."""
    try:
        names = [name for name in os.listdir(root) if _FOLDER.fullmatch(name)] if root else []
    except OSError:
        return []
    found = [each for name in names if (each := _read(os.path.join(root, name))) is not None]
    return sorted(found, key=lambda each: (each.segment, each.step, each.time))


def file_in(folder: str) -> str:
    """Where Lightning's own file lies in a checkpoint's folder."""
    return os.path.join(folder, _CKPT)


def save(trainer: Any, root: str, *, segment: int, last_directive: int, keep: int) -> str:
    """Write a checkpoint of the last finished step, and return its folder. All ranks call it alike.

    Raises what Lightning and the file system raise; a half-written one is never seen under its name.
    """
    step = int(trainer.global_step)
    folder, draft = os.path.join(root, f"checkpoint-{step}"), os.path.join(root, f".checkpoint-{step}.tmp")
    reason = trainer.strategy.broadcast(_prepared(draft) if trainer.is_global_zero else "")
    if reason:  # on all ranks alike: the others would wait for rank 0 in what comes now
        raise OSError(reason)
    trainer.save_checkpoint(file_in(draft))  # waits for all ranks
    if trainer.is_global_zero:
        state = {"global_step": step, "segment": segment, "last_directive": last_directive, "time": time.time()}
        _write(os.path.join(draft, _STATE), json.dumps(state).encode())
        _delete(folder)  # of a stretch that was left: what may be needed of it is pinned
        os.rename(draft, folder)
        for old in kept(root)[: -max(keep, 1)]:
            _delete(old.folder)
    return folder


def _prepared(draft: str) -> str:
    """Make the folder that is written to; why it cannot be, or ''."""
    try:
        shutil.rmtree(draft, ignore_errors=True)  # of a process that was killed while it wrote
        os.makedirs(draft)
        return ""
    except OSError as error:
        return f"{draft} cannot be made: {error.strerror}; give GyrostatCallback a folder that can be written"


def _read(folder: str) -> Kept | None:
    try:
        with open(os.path.join(folder, _STATE), "rb") as file:
            state = json.load(file)
        numbers = [int(state[name]) for name in ("global_step", "segment", "last_directive")]
        return Kept(folder, numbers[0], numbers[1], numbers[2], float(state["time"]))
    except (OSError, ValueError, KeyError, TypeError):  # half-written, or somebody else's
        return None


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _delete(folder: str) -> None:
    """Delete a checkpoint, what makes it one first: nobody takes what is left for whole."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, _STATE))
    shutil.rmtree(folder, ignore_errors=True)
