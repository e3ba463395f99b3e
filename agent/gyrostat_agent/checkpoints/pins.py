"""Pins: second names of checkpoints, under which a trainer's rotation does not look for them.

A pin is a folder of the same name in ``gyrostat-pins/`` beside the checkpoints, its files clones of theirs where the
file system can (a reflink), else hard links: neither costs a byte while the checkpoint itself is there. A trainer that
writes a checkpoint anew in place writes into a hard link too: it does so after it has gone back, when the pin is of a
stretch that was left, and at use sizes and times say so. What can be neither is copied where a budget was given
(``pincopies``), else it is not pinned, and that is said. Called by CheckpointSource, in the loop: nothing here reads
what a file holds.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from gyrostat_agent.checkpoints import foreign
from gyrostat_agent.checkpoints.copier import ChildCopier, Copier
from gyrostat_agent.checkpoints.layouts.folder import Listed
from gyrostat_agent.checkpoints.pincopies import DRAFT as _DRAFT
from gyrostat_agent.checkpoints.pincopies import LEAST_FREE, Copies, mark_of
from gyrostat_agent.checkpoints.pinfiles import LINKLESS, second_name
from gyrostat_agent.checkpoints.reference import MANIFEST, CheckpointError, Stamp, find, opened_folder
from gyrostat_rules.keeping import Keep

FOLDER = "gyrostat-pins"


class Pins:
    """Those under one root; ``most_bytes`` may be copied where nothing else will do."""

    def __init__(self, root: str, most_bytes: int = 0, copier: Copier | None = None) -> None:
        self._root, self._folder = root, os.path.join(root, FOLDER)
        self._unmade = self._crowded = ""
        self._copies = Copies(self._folder, most_bytes, copier or ChildCopier()) if most_bytes else None
        for name in self._names(_DRAFT):  # of an agent that was killed while it made one
            self._remove(name)

    @property
    def fault(self) -> str:
        """Why what is needed is not pinned, or ''."""
        return self._unmade or self._crowded or (self._copies.fault if self._copies else "")

    def find(self) -> tuple[dict[str, Stamp], dict[str, Stamp]]:
        """The pins there are, by path, and those of foreign checkpoints; none where their folder is not ours."""
        try:
            return (find(self._folder), foreign.find(self._folder)) if self._is_ours() else ({}, {})
        except OSError:
            return {}, {}

    def make(self, path: str, files: Iterable[str]) -> None:
        """Pin those files of the checkpoint at ``path``; one that is pinned already stays as it is.

        A pin of what bore the same name before is of another checkpoint, and gives way when the new one is whole.
        """
        name, files = os.path.basename(path), list(files)
        if (old := foreign.files(os.path.join(self._folder, name))) is not None and old == _of(path, files):
            return
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            with self._draft(name) as draft, opened_folder(path) as folder, opened_folder(draft) as target:
                for file in files:
                    second_name(folder, target, file)
            self._unmade = ""
            self._forget(name)
        except OSError as error:
            self._unmade = self._instead(path, files, error)
        except CheckpointError as error:
            well = "missing" in str(error) or str(error) == "gone"
            self._unmade = "" if well else f"{name} cannot be pinned: {error}"

    def let_go(self, keep: Keep, digests: Mapping[str, str]) -> None:
        """Drop the pins that are judged and not to be kept; of a disk that is nearly full all that can be spared.

        ``digests`` are of the checkpoints that are verified, by name: what is copied must have them.
        """
        names = {name for name in self._names("") if not name.endswith(_DRAFT)}
        wanted = self._spared(keep, names) if self._is_full() else keep.names
        for name in names & keep.judged - set(wanted):
            self._remove(name)
        self._crowded = ""
        if len(wanted) < len(keep.names):
            self._crowded = (
                "less than 5 % of the disk is free: only the best checkpoint, and what is tagged, stays pinned"
            )
        elif self._copies:
            self._copies.tend(keep, digests)

    def close(self) -> None:
        """Break off what is being copied."""
        if self._copies:
            self._copies.close()

    def drop(self, name: str) -> None:
        """Remove the pin of that name, whatever needs it; raises OSError. What is half removed is a draft."""
        gone = os.path.join(self._folder, f".{name}.gone{_DRAFT}")
        os.rename(os.path.join(self._folder, name), gone)
        shutil.rmtree(gone)
        self._forget(name)

    def _instead(self, path: str, files: Iterable[str], error: OSError) -> str:
        """Have it copied where that helps and is allowed; what to say."""
        helps = error.errno in LINKLESS
        if helps and self._copies:
            self._copies.want(path, _of(path, files))
            return ""
        advice = "; --pin-bytes SIZE lets it be copied" if helps else ""
        name = os.path.basename(path)
        return f"{name} cannot be pinned: {error.strerror}; rotation may take the last healthy checkpoint{advice}"

    def _spared(self, keep: Keep, pinned: set[str]) -> tuple[str, ...]:
        """What stays of a full disk: the best, and the best that is pinned, for what is not cannot be pinned now."""
        best = next((name for name in keep.names if name in pinned), "")
        return tuple(name for name in keep.names if name in (*keep.names[: keep.sure], best))

    def _is_ours(self) -> bool:
        return bool(self._root) and os.path.isdir(self._folder) and not os.path.islink(self._folder)

    def _is_full(self) -> bool:
        with contextlib.suppress(OSError):
            disk = os.statvfs(self._folder)
            return disk.f_bavail < LEAST_FREE * disk.f_blocks
        return False

    @contextmanager
    def _draft(self, name: str) -> Iterator[str]:
        """A folder that takes its name when it is whole, and is no more where it never is."""
        if not self._is_ours():
            raise CheckpointError(f"{self._folder} is no folder; a link is not followed")
        draft = os.path.join(self._folder, f".{name}{_DRAFT}")
        os.mkdir(draft, mode=0o700)
        try:
            yield draft
            place = os.path.join(self._folder, name)
            if os.path.lexists(place):
                os.rename(place, os.path.join(self._folder, f".{name}.old{_DRAFT}"))
            os.rename(draft, place)
            self._remove(f".{name}.old{_DRAFT}")
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def _names(self, ending: str) -> list[str]:
        try:
            return [name for name in os.listdir(self._folder) if name.endswith(ending)] if self._is_ours() else []
        except OSError:
            return []

    def _remove(self, name: str) -> None:
        """The manifest first: what is half removed is no checkpoint."""
        path = os.path.join(self._folder, name)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(path, MANIFEST))
        shutil.rmtree(path, ignore_errors=True)
        self._forget(name)

    def _forget(self, name: str) -> None:
        """What bears this name, if anything does, is no copy."""
        with contextlib.suppress(OSError):
            os.unlink(mark_of(self._folder, name))


def _of(path: str, files: Iterable[str]) -> Mapping[str, Listed]:
    """Size and time of those files that are there."""
    found = foreign.files(path) or {}
    return {name: found[name] for name in sorted(files) if name in found}
