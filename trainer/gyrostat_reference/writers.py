"""Writers: who writes a checkpoint, and in what form: one process all of it, rank 0 for all, or each rank its part."""

from pathlib import Path
from typing import Protocol

from gyrostat_reference.checkpoint import Checkpoint
from gyrostat_reference.faults import Fuse
from gyrostat_reference.policy import Policy
from gyrostat_reference.ranks import Ranks
from gyrostat_reference.settings import Settings
from gyrostat_reference.shards import ShardWriter
from gyrostat_reference.state import TrainingState
from gyrostat_reference.writer import CheckpointWriter


class Writer(Protocol):
    """What the trainer asks of a writer; all ranks ask alike."""

    root: Path
    fault: str

    @property
    def failed(self) -> int:
        """How many could not be written; ``fault`` says why the last one could not."""

    @property
    def busy(self) -> bool:
        """True while this rank is writing."""

    def begin(self, checkpoint: Checkpoint) -> Path | None:
        """Start writing; the folder it will be, or None where one is under way."""

    def wait(self) -> None:
        """Return when this rank writes nothing."""


class RankZeroWriter:
    """Rank 0 writes whole tensors for all; the others are told the folder's name."""

    def __init__(self, root: Path, keep: int, fuse: Fuse, ranks: Ranks) -> None:
        self.root, self._ranks = root, ranks
        self._writer = CheckpointWriter(root, keep, fuse) if ranks.rank == 0 else None
        self.fault = ""
        ranks.gathered(b"")  # nobody looks for checkpoints before rank 0 has tidied up

    @property
    def failed(self) -> int:
        """Rank 0's; the others wrote none."""
        self.fault = self._writer.fault if self._writer is not None else ""
        return self._writer.failed if self._writer is not None else 0

    @property
    def busy(self) -> bool:
        """True while rank 0 is writing; the others never are."""
        return self._writer is not None and self._writer.busy

    def begin(self, checkpoint: Checkpoint) -> Path | None:
        """A collective."""
        folder = self._writer.begin(checkpoint) if self._writer is not None else None
        name = self._ranks.gathered(folder.name.encode() if folder else b"")[0].decode()
        return self.root / name if name else None

    def wait(self) -> None:
        """Return when rank 0, if this is it, writes nothing."""
        if self._writer is not None:
            self._writer.wait()


def writer_of(settings: Settings, fuse: Fuse, ranks: Ranks, policy: Policy) -> Writer | None:
    """The writer that a run asks for; None where it keeps no checkpoints."""
    root, keep = settings.checkpoints, settings.keep
    if root is None:
        return None
    if is_sharded(settings):
        return ShardWriter(root, keep, fuse, ranks, policy.model)
    return CheckpointWriter(root, keep, fuse) if ranks.world == 1 else RankZeroWriter(root, keep, fuse, ranks)


def captured(settings: Settings, policy: Policy) -> TrainingState:
    """What the run's writer wants of the tensors: this rank's part, or whole ones, which is a collective."""
    return policy.capture() if is_sharded(settings) or settings.sharding != "fsdp2" else policy.whole()


def is_sharded(settings: Settings) -> bool:
    """True where each rank writes its part."""
    return (settings.checkpoint_format or ("sharded" if settings.sharding == "fsdp2" else "whole")) == "sharded"
