"""Checkpoints that are saved at moments of a test's choosing, and looks at them by the same clock."""

import os
from pathlib import Path

from gyrostat_agent.sources.checkpointtimes import CheckpointTimes, Saved

BEGIN = 1_000_000.0  # Unix seconds of the first look


class Saving:
    """A root that is looked at once a second; what a test writes into it bears the second, counted from the first look,
    at which it is written, and what comes before has been looked at by then. ``skew``: by how much the file server's
    clock is ahead.
    """

    def __init__(self, root: Path, skew: float = 0.0) -> None:
        self.root, self.now, self._skew = root, BEGIN, skew
        self.times = CheckpointTimes([str(root)])
        self.fault = ""
        self._told: list[Saved] = []

    def until(self, second: float) -> list[Saved]:
        """Look each second up to this one; what was told since this was asked last."""
        while self.now <= BEGIN + second:
            look = self.times.look(self.now)
            self._told += look.saved
            self.fault = look.faults[str(self.root)]
            self.now += 1.0
        told, self._told = self._told, []
        return told

    def folder(self, path: str, second: float) -> None:
        """A folder is made; it and the one around it change."""
        self._come_to(second)
        place = self.root / path
        place.mkdir(parents=True)
        self._touch(place, second)
        if place.parent != self.root:
            self._touch(place.parent, second)

    def file(self, path: str, second: float, size: int = 1000) -> None:
        """A file is written to, or made; where it is made, the folder around it changes."""
        self._come_to(second)
        place = self.root / path
        fresh = not place.exists()
        place.write_bytes(b"x" * size)
        self._touch(place, second)
        if fresh:
            self._touch(place.parent, second)

    def remove(self, path: str, second: float) -> None:
        """A file goes."""
        self._come_to(second)
        (self.root / path).unlink()
        self._touch((self.root / path).parent, second)

    def rename(self, old: str, new: str) -> None:
        """What is in it keeps its times."""
        (self.root / old).rename(self.root / new)

    def _come_to(self, second: float) -> None:
        self._told = self.until(second)

    def _touch(self, place: Path, second: float) -> None:
        at = int((BEGIN + second + self._skew) * 1e9)
        os.utime(place, ns=(at, at))
