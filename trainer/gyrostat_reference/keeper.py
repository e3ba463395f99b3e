"""Keeper: sees to it that checkpoints are written: the regular ones, one that is owed, the last.

Writing goes on beside the training and may fail there. A failure is told and counted; a checkpoint that is owed,
because a death before the next regular one would go on from what was gone back from, is owed until it lies there.
"""

from collections.abc import Callable
from pathlib import Path

from gyrostat_reference.checkpoint import Checkpoint
from gyrostat_reference.ranks import Ranks
from gyrostat_reference.writers import Writer


class Keeper:
    """``writer`` is None where a run keeps no checkpoints. All ranks call alike."""

    def __init__(self, writer: Writer | None, ranks: Ranks, say: Callable[[str], None]) -> None:
        self.writer, self._ranks, self._say = writer, ranks, say
        self.owed = False
        self.failed = 0
        self._paying = False
        self._newest = -1

    @property
    def busy(self) -> bool:
        """True while this rank writes."""
        return self.writer is not None and self.writer.busy

    def begin(self, snapshot: Callable[[], Checkpoint]) -> Path | None:
        """Start writing what ``snapshot`` gives; the folder it will be, or None where none was begun."""
        if self.writer is None:
            return None
        checkpoint = snapshot()
        folder = self.writer.begin(checkpoint)
        if folder is not None:
            self._paying, self.owed = self._paying or self.owed, False
            self._newest = checkpoint.manifest.step
        return folder

    def watch(self) -> None:
        """Tell of a checkpoint that could not be written, once a step; a collective."""
        if self.writer is None:
            return
        new = self.writer.failed - self.failed
        failed, busy = self._ranks.sums([float(new), float(self.writer.busy)])
        if failed:
            self._say(f"checkpoint not written: {self.writer.fault or 'another rank could not'}")
            self.failed, self._newest = self.writer.failed, -1
            self.owed = self.owed or self._paying
        if not busy:
            self._paying = False

    def finish(self, step: int, snapshot: Callable[[], Checkpoint]) -> None:
        """Write the last step, where it is not written, and what is owed; returns when it lies there."""
        if self.writer is None:
            return
        self.writer.wait()
        self.watch()
        if self.owed or self._newest != step:
            self.begin(snapshot)
            self.writer.wait()
            self.watch()
