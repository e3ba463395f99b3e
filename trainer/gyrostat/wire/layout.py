"""The names in a run directory, so that both sides spell them alike.

::

    <run>/records/<role>-00003-<incarnation>.<part>
    <run>/directives/bell, <number>.json, resume.json
    <run>/agent/                                       the sidecar's own; mode 0700
    <checkpoints>/.gyrostat/resume.json                the same again, where the run directory dies with its pod
"""

import os
import re
from typing import NamedTuple

RUN_DIR = "GYROSTAT_RUN_DIR"  # environment: where the supervisor tells its child to write
RUN_NAME = "GYROSTAT_RUN"
_RECORD_FILE = r"([a-z]+)-(\d{5,10})-([0-9a-f]{8,32})\.(\d{3,9})"  # compiled when read: a trainer never does


def shared_resume(root: str) -> str:
    """What a starting trainer should do, beside its checkpoints."""
    return os.path.join(root, ".gyrostat", "resume.json")


class RecordFile(NamedTuple):
    """A record file's name, read. Incarnations sort by their start, parts by number."""

    role: str
    rank: int
    incarnation: str
    part: int

    @property
    def name(self) -> str:
        """The file's name in ``records/``."""
        return f"{self.role}-{self.rank:05d}-{self.incarnation}.{self.part:03d}"

    @classmethod
    def parse(cls, name: str) -> "RecordFile | None":
        """Read a name; None where it is no record file's."""
        found = re.fullmatch(_RECORD_FILE, name, re.ASCII)
        return cls(found[1], int(found[2]), found[3], int(found[4])) if found else None


class RunDirectory(NamedTuple):
    """Paths inside a run directory. Nothing is created or checked here."""

    path: str

    @property
    def records(self) -> str:
        """Where ranks write their record files."""
        return os.path.join(self.path, "records")

    @property
    def directives(self) -> str:
        """Where the sidecar lays directives."""
        return os.path.join(self.path, "directives")

    @property
    def bell(self) -> str:
        """Eight bytes, little-endian: the number of the newest directive."""
        return os.path.join(self.path, "directives", "bell")

    @property
    def resume(self) -> str:
        """What a starting trainer should do."""
        return os.path.join(self.path, "directives", "resume.json")

    @property
    def agent(self) -> str:
        """The sidecar's own folder."""
        return os.path.join(self.path, "agent")

    def directive(self, number: int) -> str:
        """One directive's file."""
        return os.path.join(self.path, "directives", f"{number}.json")
