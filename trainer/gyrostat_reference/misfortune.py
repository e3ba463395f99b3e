"""Misfortune: brings the faults that a run was asked for upon its trainer, each once, at its step."""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from torch import Generator

from gyrostat_reference.checkpoint import complete
from gyrostat_reference.damage import WAYS
from gyrostat_reference.engine import RolloutEngine
from gyrostat_reference.faults import Strike
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.policy import Policy
from gyrostat_reference.ranks import Ranks
from gyrostat_reference.settings import Settings

_AN_HOUR = 3600.0
_TWIN = 7_000_003  # no other generator of a run starts from it


class Unlucky(Protocol):
    """What is struck: the trainer."""

    knobs: KnobValues
    deaf: dict[str, float]
    engine: RolloutEngine
    policy: Policy
    ranks: Ranks
    settings: Settings
    random: Generator
    version: int

    def say(self, line: str, /) -> None:
        """Tell people."""

    def finish_writing(self) -> None:
        """Return when no checkpoint is being written."""


class Misfortune:
    """The faults that have not struck yet. Called by the trainer before each step, behind Control.

    What has struck is noted beside the checkpoints: a person's careless edit is not made again by a restart.
    """

    def __init__(self, strikes: Sequence[Strike], checkpoints: Path | None = None, rank: int = 0) -> None:
        self._notes = checkpoints / f".struck-{rank}" if checkpoints is not None else None
        noted = _noted(self._notes) if self._notes is not None else ()
        self.over = [strike for strike in strikes if _title(strike) in noted]
        self._waiting = [strike for strike in strikes if strike not in self.over]

    def befall(self, trainer: Unlucky, step: int) -> None:
        """Strike with what is due at ``step``."""
        due = [strike for strike in self._waiting if strike.step <= step]
        self._waiting = [strike for strike in self._waiting if strike.step > step]
        for strike in due:
            self._note(strike)
            trainer.say(f"fault {strike.name}: {strike.fault.doc}")
            trainer.knobs = trainer.knobs._replace(**strike.fault.knobs)
            _act(trainer, strike.fault.act)

    def _note(self, strike: Strike) -> None:
        if self._notes is not None:
            with contextlib.suppress(OSError), self._notes.open("a") as file:  # then a restart does it again
                file.write(f"{_title(strike)}\n")


def _title(strike: Strike) -> str:
    return f"{strike.name}@{strike.step}"


def _noted(notes: Path) -> list[str]:
    """The titles in a file, as far as it can be read."""
    try:
        return notes.read_bytes()[:65536].decode(errors="replace").split()
    except OSError:
        return []


def _act(trainer: Unlucky, act: str) -> None:
    """What no knob can do."""
    if act == "freeze_rollouts":
        # Loaded first: without it the engine would stay with the step before, and before step 1 with nothing at all.
        trainer.engine.load(trainer.policy.model, trainer.version + 1)
        trainer.engine.freeze()
    elif act == "deafen":
        trainer.deaf = trainer.knobs._asdict()
    elif act == "deafen_bonus":
        trainer.deaf = {"alpha_max": trainer.knobs.alpha_max}
    elif act == "reseed":
        trainer.random.manual_seed(_TWIN + trainer.settings.seed + 1_000_003 * trainer.ranks.rank)
    elif act == "poison" and trainer.settings.poison_item is None:
        # The engine poisons, from its start; a fault that says its line and does nothing would pass for a cure.
        raise ValueError("nothing is poisoned: give the settings a poison_item, the first of that step's batch")
    elif act in WAYS:
        _damage_newest(trainer, act)
    elif act in ("kill", "stall") and trainer.ranks.rank == trainer.ranks.world - 1:
        if act == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(_AN_HOUR)


def _damage_newest(trainer: Unlucky, way: str) -> None:
    root: Path | None = trainer.settings.checkpoints
    if root is None or trainer.ranks.rank:
        return
    trainer.finish_writing()
    if known := complete(root):
        WAYS[way](known[-1][0])
