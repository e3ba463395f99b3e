"""Folder: a checkpoint's files as they lie on disk, read without trusting them and written so that they stay."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gyrostat_reference.manifest import CheckpointError, Manifest, digest_of

_LARGEST = 1 << 28  # bytes of one file; ours have 3 MB
_LARGEST_TEXT = 1 << 22  # of one that is JSON


def inside(root: Path, path: str | os.PathLike[str]) -> Path:
    """``path`` as a real folder under ``root``, reached without links; raises CheckpointError."""
    base = Path(os.path.abspath(root))
    folder = Path(os.path.abspath(base / path))
    if base not in folder.parents:
        raise CheckpointError(f"{path} is not inside the checkpoint root {base}")
    for part in (folder, *folder.parents):
        if part == base:
            break
        if part.is_symlink() or not part.is_dir():
            raise CheckpointError(f"{part} is not a folder; a link is not followed")
    return folder


def verified(folder: Path, name: str, manifest: Manifest) -> bytes:
    """The contents of a file that the manifest lists; raises CheckpointError unless size and digest are as it says."""
    data, expected = bytes_of(folder / name), manifest.files[name]
    if len(data) != expected.bytes:
        raise CheckpointError(f"{folder.name}: {name} has {len(data)} bytes, not {expected.bytes}")
    if digest_of(data) != expected.digest:
        raise CheckpointError(f"{folder.name}: {name} has digest {digest_of(data)}, not {expected.digest}")
    return data


def bytes_of(path: Path) -> bytes:
    """The contents of a regular file; raises CheckpointError where it is missing, a link or too large."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise CheckpointError(f"{path.parent.name}: {path.name} cannot be opened: {error.strerror}") from None
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        largest = _LARGEST_TEXT if path.suffix == ".json" else _LARGEST
        if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
            raise CheckpointError(f"{path.parent.name}: {path.name} is no regular file of at most {largest} bytes")
        return file.read(largest)


def names(root: Path, manifest: Manifest) -> Iterator[Path]:
    """Names for a checkpoint, the plainest first; the segment tells a step that was done again."""
    name = f"step-{manifest.step:08d}"
    yield root / name
    yield root / f"{name}-s{manifest.segment}"
    again = 2
    while True:
        yield root / f"{name}-s{manifest.segment}-{again}"
        again += 1


def write_file(path: Path, data: bytes) -> None:
    """Write a new file and sync it; raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)


def sync_folder(path: Path) -> None:
    """Make the names in a folder last."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
