"""The stage: the folder of one demonstration, made ready and emptied of an older one."""

import os
import shutil
from pathlib import Path

from gyrostat_agent.demo.errors import DemoError
from gyrostat_agent.demo.scenarios import RUNS, Layout, Scenario

_SIGN = ".gyrostat-demo"  # without it a folder is somebody else's, and nothing in it is deleted


def folder_of(scenario: Scenario, seed: int, out: str | None, alone: bool) -> Path:
    """Where one demonstration goes: ``out`` itself where it is the only one, else a folder of its own."""
    if out is not None and alone:
        return Path(out).absolute()
    return Path(out or "runs").absolute() / f"demo-{scenario.name}-{seed}"


def prepare(folder: Path) -> dict[str, Layout]:
    """An empty layout for each of the three runs; raises DemoError where the folder is not ours to use."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()) and not (folder / _SIGN).exists():
            raise DemoError(f"{folder} holds other files; give an empty folder with --out")
        (folder / _SIGN).touch()
        layouts = {name: Layout(folder / name) for name in RUNS}
        for layout in layouts.values():
            _renew(layout)
    except OSError as error:
        raise DemoError(f"{error.filename or folder}: {error.strerror}; give another folder with --out") from None
    return layouts


def _renew(layout: Layout) -> None:
    """A trainer that found an older run's checkpoints would go on from them instead of beginning."""
    if layout.folder.exists():
        shutil.rmtree(layout.folder)
    os.mkdir(layout.folder, 0o700)
    os.mkdir(layout.run_dir, 0o700)
