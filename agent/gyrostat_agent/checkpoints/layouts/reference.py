"""The reference trainer's own: ``step-N[-sM]`` with a manifest.json that names every file, its size and digest.

A thin view of ``checkpoints.reference``, so that it stands in the table with the others; ``examine`` hands such a
folder to ``verify``, which knows the digests.
"""

import re
from collections.abc import Mapping, Sequence

from gyrostat_agent.checkpoints import reference
from gyrostat_agent.checkpoints.layouts.contents import Contents, File, How, lacking
from gyrostat_agent.checkpoints.layouts.folder import listing
from gyrostat_agent.checkpoints.reference import Limits, Stamp

name = "reference"
signs = (reference.MANIFEST,)

_FOLDER = re.compile(r"step-([0-9]{1,15})(?:-s[0-9]{1,9}(?:-[0-9]{1,9})?)?")


def matches(folder_name: str) -> int | None:
    """The step of ``step-N``, ``step-N-sM`` or ``step-N-sM-K``."""
    match = _FOLDER.fullmatch(folder_name)
    return int(match[1]) if match else None


def find(root: str) -> dict[str, Stamp]:
    """The checkpoints under ``root`` that have a manifest."""
    return reference.find(root)


def read(folder: int, folder_name: str) -> Contents:
    """What the manifest says; raises CheckpointError."""
    said = reference.read_manifest(folder, Limits())
    found = listing(folder)
    files = {path: File(found[path].bytes, *_how(path)) for path in said.files if path in found}
    expected = {path: file.bytes for path, file in said.files.items()}
    return Contents(
        matches(folder_name) or 0, said.step, said.saved_at, files, expected, said.segment, said.data_cursor,
        said.knobs, reference.FORMAT,
    )  # fmt: skip


def complete(contents: Contents, siblings: Sequence[Mapping[str, int]]) -> list[str]:
    """What is missing or too short."""
    return lacking(contents, siblings)


def _how(path: str) -> tuple[str, bool]:
    if path.endswith(".safetensors"):
        return How.SAFETENSORS, True
    return (How.PLAIN, False) if path.endswith(".json") else (How.OPAQUE, True)
