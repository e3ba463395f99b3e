"""Where a checkpoint comes from: whose layout it has, its step, and what it says of its own files.

Called by ``upload``. Not promised: that a checkpoint of another layout than the reference trainer's is whole; only
what a layout shows by its files' names is seen.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gyrostat_agent.archive.errors import ArchiveError
from gyrostat_agent.archive.folder import Source
from gyrostat_agent.checkpoints.reference import FORMAT, MANIFEST, File, Limits, read_manifest

_STEP = re.compile(r"(?:step|checkpoint|ckpt|iter)[-_]?0*([0-9]{1,15})")
_NAMED = {"iter_": "megatron", "global_step": "deepspeed", "checkpoint-": "huggingface"}


class Origin(NamedTuple):
    """A checkpoint's format, its step or -1, and size and digest of files as its manifest has them."""

    format: str
    step: int
    files: Mapping[str, File]


def origin(name: str, folder: int, sources: Sequence[Source]) -> Origin:
    """What the open ``folder`` called ``name`` is; raises ArchiveError where it shows that it is not whole.

    CheckpointError comes from a manifest that must not be believed.
    """
    paths = {source.path for source in sources}
    if not paths:
        raise ArchiveError("the folder is empty; is it still being written, or being deleted?")
    if MANIFEST in paths:
        manifest = read_manifest(folder, Limits())
        return Origin(FORMAT, manifest.step, manifest.files)
    found = _STEP.search(name)
    return Origin(_format(name, paths), int(found[1]) if found else -1, {})


def _format(name: str, paths: set[str]) -> str:
    if ".metadata" in paths:
        return "dcp"
    if any(path.endswith(".distcp") and "/" not in path for path in paths):
        raise ArchiveError("there are .distcp files but no .metadata: the save has not ended; wait until it has")
    return next((format for start, format in _NAMED.items() if name.startswith(start)), "folder")
