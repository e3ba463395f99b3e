"""Records: what a sick disk or a late network does to record files between the trainer and its agent.

The agent is stopped for a moment, so that there is something it has not read; the trainer goes on writing.
"""

import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path

from chaos.stage import Stage
from gyrostat.wire.frames import HEADER, MAGIC

_SECONDS = 4.0  # for which the agent sleeps: a few steps
_FRAMES = 2  # at least, that must have come meanwhile to have their places changed


def cut(stage: Stage, amount: float) -> Generator[float, None, None]:
    """The file's end is gone."""
    yield from _while_asleep(stage, lambda path, since: _cut(path, since, amount))


def copied(stage: Stage, amount: float) -> Generator[float, None, None]:
    """The file's end is there twice."""
    yield from _while_asleep(stage, _copied)


def swapped(stage: Stage, amount: float) -> Generator[float, None, None]:
    """Two frames in the wrong order."""
    yield from _while_asleep(stage, _swapped)


def flipped(stage: Stage, amount: float) -> Generator[float, None, None]:
    """One byte in the middle."""
    yield from _while_asleep(stage, _flipped)


def deleted(stage: Stage, amount: float) -> Generator[float, None, None]:
    """The file is gone."""
    yield from _while_asleep(stage, lambda path, since: _deleted(path))


def _while_asleep(stage: Stage, act: Callable[[Path, int], str]) -> Generator[float, None, None]:
    agent, path = stage.agent, _newest(stage)
    try:
        stage.send("the agent", [agent], signal.SIGSTOP)
        since = path.stat().st_size if path is not None else 0
        yield _SECONDS
        if path is not None and path.exists():
            stage.say(f"{path.name}: {act(path, since)}")
        else:
            stage.say("there is no record file")
    finally:
        stage.send("the agent", [agent], signal.SIGCONT)


def _newest(stage: Stage) -> Path | None:
    """The file that rank 0 of the trainer writes now."""
    found = sorted((stage.layout.run_dir / "records").glob("trainer-00000-*"))
    return found[-1] if found else None


def _cut(path: Path, since: int, share: float) -> str:
    size = path.stat().st_size
    keep = size - int((size - since) * share)
    os.truncate(path, keep)
    return f"cut from {size} to {keep} bytes"


def _copied(path: Path, since: int) -> str:
    data = path.read_bytes()[since:]
    with path.open("ab") as file:
        file.write(data)
    return f"its last {len(data)} bytes are there twice"


def _swapped(path: Path, since: int) -> str:
    data = path.read_bytes()
    starts = [at for at in range(since, len(data)) if data.startswith(MAGIC, at)]
    if len(starts) < _FRAMES:
        return "too little came to change places"
    first, second = data[starts[-2] : starts[-1]], data[starts[-1] :]
    with path.open("r+b") as file:
        file.seek(starts[-2])
        file.write(second + first)
    return f"the last two frames ({len(first)} and {len(second)} bytes) changed places"


def _flipped(path: Path, since: int) -> str:
    size = path.stat().st_size
    if size <= since + HEADER.size:
        return "too little came to damage"
    at = (since + size) // 2
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 0xFF]))
    return f"byte {at} is another"


def _deleted(path: Path) -> str:
    path.unlink()
    return "deleted"
