"""CheckpointWriter: writes checkpoints beside the training, one at a time.

The caller hands over copies; a thread writes them. Files are fsynced, the manifest last, then the folder takes
its name in one rename: whoever sees the name sees a complete checkpoint. A name that is taken is never written
to again, because the older folder may be certified.
"""

import os
import shutil
import threading
from pathlib import Path

from gyrostat_reference.checkpoint import Checkpoint, complete
from gyrostat_reference.faults import Fuse
from gyrostat_reference.folder import names, sync_folder, write_file
from gyrostat_reference.manifest import MANIFEST, File, digest_of


class CheckpointWriter:
    """Writes under ``root`` and deletes the oldest beyond ``keep``.

    ``missed`` counts checkpoints not begun because one was under way, ``failed`` those that the disk refused;
    ``fault`` says why the last one was refused.
    """

    def __init__(self, root: Path, keep: int, fuse: Fuse) -> None:
        self.root, self._keep, self._fuse = root, keep, fuse
        self._thread: threading.Thread | None = None
        self.missed = self.failed = 0
        self.fault = ""
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for stale in root.glob(".step-*.tmp"):  # left by a process that was killed while it wrote
            shutil.rmtree(stale, ignore_errors=True)

    @property
    def busy(self) -> bool:
        """True while a checkpoint is being written."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, checkpoint: Checkpoint) -> Path | None:
        """Start writing; the folder it will be, or None where one is under way (counted)."""
        if self.busy:
            self.missed += 1
            return None
        folder = next(p for p in names(self.root, checkpoint.manifest) if not os.path.lexists(p))
        self._thread = threading.Thread(target=self._write, args=(checkpoint, folder), name="checkpoint")
        self._thread.start()
        return folder

    def wait(self) -> None:
        """Return when nothing is being written."""
        if self._thread is not None:
            self._thread.join()

    def _write(self, checkpoint: Checkpoint, folder: Path) -> None:
        unfinished = self.root / f".{folder.name}.tmp"
        try:
            self._write_folder(checkpoint, unfinished, folder)
            self._rotate()
        except (OSError, ValueError) as error:  # ValueError: a knob that JSON cannot hold, set by hand
            self.failed += 1
            self.fault = f"{folder.name}: {error.strerror if isinstance(error, OSError) else error}"
            shutil.rmtree(unfinished, ignore_errors=True)  # a full disk should not stay full of it

    def _write_folder(self, checkpoint: Checkpoint, unfinished: Path, folder: Path) -> None:
        unfinished.mkdir(mode=0o700)
        contents = checkpoint.files()
        for name, data in contents.items():
            write_file(unfinished / name, data)
        self._fuse.reached("checkpoint.files")
        files = {name: File(len(data), digest_of(data)) for name, data in contents.items()}
        write_file(unfinished / MANIFEST, checkpoint.manifest._replace(files=files).encode())
        sync_folder(unfinished)
        unfinished.rename(folder)
        sync_folder(self.root)
        self._fuse.reached("checkpoint.renamed")

    def _rotate(self) -> None:
        for folder, _ in complete(self.root)[: -self._keep]:
            (folder / MANIFEST).unlink()  # first, so that a half deleted checkpoint is an incomplete one
            shutil.rmtree(folder)
