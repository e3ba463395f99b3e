"""Copies: pins of what can be neither cloned nor linked, within a budget of bytes; the most needed first.

Made one at a time, in a child, of what has been verified and is to be kept; never counted before the copy was read back
and has the digest of what was verified. The budget is a hard limit: one that is needed is not given up for one that is
not there yet, so that it should hold two. Called by Pins, in the loop.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gyrostat_agent.checkpoints import foreign
from gyrostat_agent.checkpoints.copier import Copier, Order
from gyrostat_agent.checkpoints.layouts.folder import Listed
from gyrostat_rules.keeping import Keep

DRAFT = ".draft"
LEAST_FREE = 0.05  # of the disk: what keeps a trainer from writing its next checkpoint protects nobody
_MARK = ".copy"  # an empty file beside a pin that is a copy: no name in a checkpoint's own folder
_MOST_WANTED = 64


class Wanted(NamedTuple):
    """A checkpoint that could not be linked: where it is, and the sizes and times of its files."""

    path: str
    files: Mapping[str, Listed]

    @property
    def bytes(self) -> int:
        """Of all its files."""
        return sum(each.bytes for each in self.files.values())


def mark_of(folder: str, name: str) -> str:
    """The file that says of a pin in ``folder`` that it is a copy."""
    return os.path.join(folder, f".{name}{_MARK}")


class Copies:
    """Those in ``folder``. ``fault`` says why one that is needed is not there, or is ''."""

    def __init__(self, folder: str, most_bytes: int, copier: Copier) -> None:
        self.fault = ""
        self._folder, self._most, self._copier = folder, most_bytes, copier
        self._wanted: dict[str, Wanted] = {}
        self._in_hand = ""

    def want(self, path: str, files: Mapping[str, Listed]) -> None:
        """Copy it when it is known to be needed."""
        newest = [*self._wanted.items()][1 - _MOST_WANTED :]
        self._wanted = dict(newest) | {os.path.basename(path): Wanted(path, files)}

    def tend(self, keep: Keep, digests: Mapping[str, str]) -> None:
        """Take in the copy that is done; begin the next. ``digests`` are of those that are verified, by name."""
        if self._in_hand and not self._took_in():
            return
        for name in keep.names:
            wanted = self._wanted.get(name)
            if wanted is None or name not in digests or self._is_there(name, wanted):
                continue
            self._begin(name, wanted, digests[name])
            return

    def close(self) -> None:
        """Break off what is in hand; its draft goes with the next start."""
        self._copier.close()
        self._in_hand = ""

    def _begin(self, name: str, wanted: Wanted, digest: str) -> None:
        if self._held() + wanted.bytes > self._most:
            self.fault = (
                f"a copy of {wanted.bytes} bytes does not fit in the {self._most} of --pin-bytes beside those that are "
                "needed; rotation may take the last healthy checkpoint"
            )
            return
        if self._is_full(wanted.bytes):
            self.fault = (
                "a copy would leave less than 5 % of the disk free; rotation may take the last healthy checkpoint"
            )
            return
        place = os.path.join(self._draft(name), name)
        shutil.rmtree(self._draft(name), ignore_errors=True)
        try:
            os.makedirs(place, mode=0o700)
            self._copier.start(Order(wanted.path, place, list(wanted.files), digest))
        except OSError as error:
            self._failed(name, error.strerror or str(error))
            return
        self._in_hand = name

    def _took_in(self) -> bool:
        """False while the copy in hand is being made."""
        said = self._copier.ended()
        if said is None:
            return False
        name, self._in_hand = self._in_hand, ""
        if said:
            self._failed(name, said)
        else:
            try:
                self._put(name)
                self.fault = ""
            except OSError as error:
                self._failed(name, error.strerror or str(error))
        shutil.rmtree(self._draft(name), ignore_errors=True)
        return True

    def _put(self, name: str) -> None:
        """The whole draft takes its name; marked before, so that none is held that is not counted."""
        with open(mark_of(self._folder, name), "ab"):
            pass
        place = os.path.join(self._folder, name)
        if os.path.lexists(place):
            os.rename(place, os.path.join(self._draft(name), "old"))
        os.rename(os.path.join(self._draft(name), name), place)

    def _failed(self, name: str, why: str) -> None:
        """It is not tried again. That rotation was faster is no fault of anybody's."""
        wanted = self._wanted.pop(name, None)
        if wanted is not None and os.path.lexists(wanted.path):
            self.fault = f"{name} cannot be copied: {why}; rotation may take the last healthy checkpoint"

    def _is_there(self, name: str, wanted: Wanted) -> bool:
        found = foreign.files(os.path.join(self._folder, name))
        return found is not None and dict(found) == dict(wanted.files)

    def _held(self) -> int:
        """Bytes of the copies that are there."""
        found = (foreign.files(os.path.join(self._folder, name)) or {} for name in self._copies())
        return sum(each.bytes for files in found for each in files.values())

    def _copies(self) -> Sequence[str]:
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        return [name[1 : -len(_MARK)] for name in names if name.startswith(".") and name.endswith(_MARK)]

    def _is_full(self, more: int) -> bool:
        try:
            disk = os.statvfs(self._folder)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize - more < LEAST_FREE * disk.f_blocks * disk.f_frsize

    def _draft(self, name: str) -> str:
        return os.path.join(self._folder, f".{name}.copy{DRAFT}")
