"""Disks: small ones in memory, mounted under a run's folder, and filled to the last byte for a while.

Needs the right to mount; the play is then given a mount namespace of its own (``unshare --mount``), so that nothing
stays mounted whatever ends it.
"""

import errno
import os
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

from chaos.draw import Draw
from chaos.stage import Stage

_SIZES = {"disk_full_run": "24m", "disk_full_checkpoints": "128m"}
_FILL = ".fill"
_CHUNK = 1 << 16
NAMESPACE = ("unshare", "--mount", "--propagation", "private")


def needed(draw: Draw) -> bool:
    """True where a draw needs a disk of its own."""
    return any(name in _SIZES for name in (d.name for d in draw.disturbances))


def possible() -> bool:
    """True where this process may mount in a namespace of its own."""
    if os.getuid() or shutil.which(NAMESPACE[0]) is None:
        return False
    return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


def mount(stage: Stage) -> None:
    """Give the run the disks that its draw asks for; raises CalledProcessError."""
    for name, where in (("disk_full_run", stage.layout.run_dir), ("disk_full_checkpoints", stage.layout.checkpoints)):
        if stage.draw.has(name):
            options = f"size={_SIZES[name]},mode=0700"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "chaos", str(where)], check=True)
    _room_for_notes(stage)


def _room_for_notes(stage: Stage) -> None:
    """A block for the trainer's notes of what has struck: on a full disk a fault would strike again after a restart."""
    if stage.draw.has("disk_full_checkpoints"):
        for rank in range(stage.draw.ranks):
            (stage.layout.checkpoints / f".struck-{rank}").write_text("\n", encoding="ascii")


def keep(stage: Stage) -> None:
    """Copy what lies on them to the folder behind, which outlives the namespace."""
    for where in (stage.layout.run_dir, stage.layout.checkpoints):
        if where.is_mount():
            aside = where.with_name(f"{where.name}.kept")
            shutil.copytree(where, aside, dirs_exist_ok=True, ignore=shutil.ignore_patterns(_FILL))
            subprocess.run(["umount", "--lazy", str(where)], check=True)
            shutil.rmtree(where, ignore_errors=True)
            aside.rename(where)


def run_full(stage: Stage, amount: float) -> Generator[float, None, None]:
    """The run directory: journal and records."""
    yield from _full(stage, stage.layout.run_dir, amount)


def checkpoints_full(stage: Stage, amount: float) -> Generator[float, None, None]:
    """The checkpoints, their pins and the ledger."""
    yield from _full(stage, stage.layout.checkpoints, amount)


def _full(stage: Stage, where: Path, seconds: float) -> Generator[float, None, None]:
    fill = where / _FILL
    try:
        stage.say(f"{where.name}: full, {_fill(fill)} bytes")
        left = seconds
        while left > 0:
            yield 0.5
            left -= 0.5
            _fill(fill)  # what was deleted meanwhile makes no room
    finally:
        fill.unlink(missing_ok=True)
        stage.say(f"{where.name}: room again")


def _fill(fill: Path) -> int:
    """Write until nothing more fits; bytes written so far."""
    size = _CHUNK
    with fill.open("ab", buffering=0) as file:
        while size:
            try:
                file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2
    return fill.stat().st_size
