"""Shards: checkpoints that every rank writes its part of.

torch's distributed checkpoint (DCP) writes a ``.safetensors`` file a rank; no file is pickled. Tensors that every
rank holds are dealt out, sharded ones stay with their rank. Rank 0 adds ``state.json`` and the manifest when all
shards lie there, and renames: whoever sees the folder sees all of it. All ranks need the same checkpoint root.
"""

import json
import os
import shutil
import threading
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gyrostat_reference.checkpoint import Checkpoint, complete
from gyrostat_reference.faults import Fuse
from gyrostat_reference.folder import names, sync_folder, write_file
from gyrostat_reference.manifest import MANIFEST, STATE, CheckpointError, File, digest_of
from gyrostat_reference.ranks import Ranks
from gyrostat_reference.reading import agreed
from gyrostat_reference.state import TrainingState, held, like

_BUSY = b"busy"  # no folder bears this name


class ShardWriter:
    """Writes under ``root`` what all ranks hold of ``model``, and deletes the oldest beyond ``keep``.

    To be made, begun and waited for by all ranks alike; raises CheckpointError where torch is too old. ``missed``,
    ``failed`` and ``fault`` are as CheckpointWriter's.
    """

    def __init__(self, root: Path, keep: int, fuse: Fuse, ranks: Ranks, model: nn.Module) -> None:
        self.root, self._keep, self._fuse = root, keep, fuse
        self._ranks, self._beside = ranks, ranks.aside()
        # Asked now, not in the thread: FSDP2 answers by sharding again, under a rollout that holds the weights whole.
        self._layout = dict(held(model))
        self._thread: threading.Thread | None = None
        self.missed = self.failed = 0
        self.fault = ""
        _storage(root)  # now, for a person to read, rather than in the thread
        agreed(ranks, self._tidy)

    @property
    def busy(self) -> bool:
        """True while this rank writes; another may have finished."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, checkpoint: Checkpoint) -> Path | None:
        """Start writing what this rank captured; the folder, or None where any rank is still writing (counted)."""
        folder = next(path for path in names(self.root, checkpoint.manifest) if not os.path.lexists(path)).name
        said = self._ranks.gathered(_BUSY if self.busy else folder.encode())
        if _BUSY in said:
            self.missed += 1
            return None
        chosen = self.root / said[0].decode()
        self._thread = threading.Thread(target=self._write, args=(checkpoint, chosen), name="checkpoint")
        self._thread.start()
        return chosen

    def wait(self) -> None:
        """Return when this rank is not writing: the checkpoint is there, or has failed on all ranks."""
        if self._thread is not None:
            self._thread.join()

    def _tidy(self) -> None:
        if self._ranks.rank == 0:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for stale in self.root.glob(".step-*.tmp"):  # left by processes that were killed while they wrote
                shutil.rmtree(stale, ignore_errors=True)

    def _write(self, checkpoint: Checkpoint, folder: Path) -> None:
        unfinished = self.root / f".{folder.name}.tmp"
        try:
            self._write_folder(checkpoint, unfinished, folder)
        except (CheckpointError, RuntimeError) as error:  # RuntimeError: another rank is gone
            self.failed += 1
            self.fault = f"{folder.name}: {error}"
            if self._ranks.rank == 0:
                shutil.rmtree(unfinished, ignore_errors=True)  # a full disk should not stay full of it

    def _write_folder(self, checkpoint: Checkpoint, unfinished: Path, folder: Path) -> None:
        ranks = self._beside
        agreed(ranks, lambda: unfinished.mkdir(mode=0o700) if ranks.rank == 0 else None)
        _save(self._placed(checkpoint.training), unfinished, ranks)
        mine = agreed(ranks, lambda: _measured(unfinished, ranks.rank))
        self._fuse.reached("checkpoint.files")
        files = {name: File(*file) for each in ranks.gathered(mine) for name, file in json.loads(each).items()}
        agreed(ranks, lambda: self._finish(checkpoint, files, unfinished, folder) if ranks.rank == 0 else None)
        self._fuse.reached("checkpoint.renamed")

    def _placed(self, training: TrainingState) -> dict[str, Tensor]:
        """The copies under the names of the whole format, each with its place in the whole tensor."""
        placed = {name: like(part, self._layout[name]) for name, part in training.weights.items()}
        for name, part in training.moments.items():
            moment, _, parameter = name.partition("/")
            placed[name] = part if moment == "step" else like(part, self._layout[parameter])
        return placed

    def _finish(self, checkpoint: Checkpoint, files: dict[str, File], unfinished: Path, folder: Path) -> None:
        for name, file in files.items():
            if not (unfinished / name).is_file() or (unfinished / name).stat().st_size != file.bytes:
                raise CheckpointError(f"{name} is not where rank 0 writes; all ranks must share {self.root}")
        body = checkpoint._replace(training=TrainingState({}, {})).files()[STATE]
        files = files | {STATE: File(len(body), digest_of(body))}
        write_file(unfinished / STATE, body)
        write_file(unfinished / MANIFEST, checkpoint.manifest._replace(files=files).encode())
        sync_folder(unfinished)
        unfinished.rename(folder)
        sync_folder(self.root)
        for old, _ in complete(self.root)[: -self._keep]:
            (old / MANIFEST).unlink()  # first, so that a half deleted checkpoint is an incomplete one
            shutil.rmtree(old)


def _storage(folder: Path) -> Any:
    """DCP's writer of ``.safetensors``; raises CheckpointError where torch is too old for it."""
    try:
        from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter

        return HuggingFaceStorageWriter(str(folder), save_distributed=True)
    except (ImportError, TypeError):
        raise CheckpointError(
            f"torch {torch.__version__} cannot write a checkpoint in shards, 2.13 can: update it, or write whole ones"
        ) from None


def _save(tensors: dict[str, Tensor], folder: Path, ranks: Ranks) -> None:
    """Write this rank's shards and sync them; raises CheckpointError on all ranks where one cannot."""
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.state_dict_saver import save

    storage = _storage(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice to its caller about what is meant here
            save(tensors, storage_writer=storage, process_group=ranks.group, no_dist=ranks.world == 1)
    except CheckpointException as error:  # a BaseException; its text is every rank's stack trace
        rank, (cause, _) = next(iter(error.failures.items()))
        raise CheckpointError(f"rank {rank}: {cause}") from None


def _measured(folder: Path, rank: int) -> bytes:
    """Size and digest of each of this rank's shards as they lie in the folder, as JSON."""
    found = {}
    for path in folder.glob(f"shard-{rank + 1:05d}-*.safetensors"):
        data = path.read_bytes()
        found[path.name] = [len(data), digest_of(data)]
    return json.dumps(found).encode()
