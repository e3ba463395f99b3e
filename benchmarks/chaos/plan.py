"""Plan: what the children of a chaos run are told at their start, in its folder's ``plan.json``."""

import json
import os
from pathlib import Path
from typing import NamedTuple

FOLDER = "GYROSTAT_CHAOS_FOLDER"  # environment of all children
LIVES = "agent.lives"  # a line of each life of the agent: its PID


class Plan(NamedTuple):
    """``failpoint``: where the agent's first life dies. ``upgrade``: how its later lives differ, ``form`` or ``rules``.

    ``control``: what is odd about the trainer's, ``late``, ``mute``, ``deaf`` or ``harmful``; ``every``: steps between
    two looks of a late one.
    """

    failpoint: str = ""
    upgrade: str = ""
    control: str = ""
    every: int = 1

    def write(self, folder: Path) -> None:
        """Lay it into a run's folder; raises OSError."""
        (folder / "plan.json").write_text(json.dumps(self._asdict()), encoding="utf-8")


def told() -> tuple[str, Plan]:
    """This child's folder and plan; raises KeyError, OSError where it is no child of a chaos run."""
    folder = os.environ[FOLDER]
    return folder, Plan(**json.loads(Path(folder, "plan.json").read_text(encoding="utf-8")))


def trainer_file(folder: str | Path, rank: int) -> Path:
    """Where a rank's process writes its PID."""
    return Path(folder, f"trainer-{rank}.pid")
