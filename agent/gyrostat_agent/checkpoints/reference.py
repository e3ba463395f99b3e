"""The reference trainer's checkpoints, read with distrust: which there are, what a manifest says, what sizes are.

Whoever can write a checkpoint can write anything into it, so nothing here follows a link, opens what is no regular
file, reads more than a limit allows, or takes a file's name for a path. Called by ``verify``, in the child, and by
the source, in the loop. Not promised: that a file holds what the manifest says; that is ``verify``.
"""

import errno
import json
import math
import mmap
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import xxhash

from gyrostat_rules.inputs import CheckpointSeen, Fit

FORMAT = "gyrostat-reference/1"
MANIFEST = "manifest.json"
DIGEST = "xxh3_128:"
_FOLDER = re.compile(r"step-([0-9]{1,15})(?:-s([0-9]{1,9})(?:-[0-9]{1,9})?)?")
_DIGEST = re.compile(DIGEST + "[0-9a-f]{32}")
_LARGEST = 2**53  # beyond it JSON readers disagree about whole numbers
_SAID = 3  # problems told of one checkpoint; a person needs no more to see that it is bad


class CheckpointError(ValueError):
    """A checkpoint that must not be believed, in a sentence."""


class Limits(NamedTuple):
    """How much of a checkpoint is read before it is called absurd."""

    manifest_bytes: int = 4 << 20
    files: int = 10_000
    header_bytes: int = 100_000_000  # what the safetensors library itself allows
    json_bytes: int = 64 << 20


class Stamp(NamedTuple):
    """What tells a manifest from a later one without reading it."""

    mtime_ns: int
    bytes: int
    inode: int


class File(NamedTuple):
    """Size and digest of a file, as the manifest has them."""

    bytes: int
    digest: str


class Manifest(NamedTuple):
    """What a checkpoint says of itself. ``digest`` is that of the manifest's bytes, ``saved_at`` Unix seconds."""

    digest: str
    step: int
    segment: int
    saved_at: float
    last_directive: int
    data_cursor: int
    knobs: Mapping[str, float]
    files: Mapping[str, File]


def find(root: str) -> dict[str, Stamp]:
    """The checkpoints under ``root`` that have a manifest, by path; raises OSError where it cannot be listed.

    A folder without one is still being written, or is being deleted. A root that is not there holds none.
    """
    try:
        names = [name for name in os.listdir(root) if _FOLDER.fullmatch(name)]
    except FileNotFoundError:
        return {}
    stamps = ((path, stamp(path)) for path in (os.path.join(root, name) for name in names))
    return {path: found for path, found in stamps if found is not None}


def stamp(path: str) -> Stamp | None:
    """What tells one writing of a manifest from another; None where there is none."""
    try:
        found = os.lstat(os.path.join(path, MANIFEST))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stamp(found.st_mtime_ns, found.st_size, found.st_ino)


@contextmanager
def opened_folder(path: str) -> Iterator[int]:
    """A descriptor of the checkpoint's folder: what is opened through it is in this folder, whatever is renamed."""
    try:
        fd = os.open(os.path.abspath(path), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise CheckpointError("gone") from None
    except NotADirectoryError:
        raise CheckpointError("not a folder; a link is not followed") from None
    except OSError as error:
        raise CheckpointError(denied(error, path) or f"cannot be opened: {error.strerror}") from None
    except ValueError:
        raise CheckpointError("not a path: it holds a NUL") from None
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def opened(folder: int, name: str) -> Iterator[tuple[int, os.stat_result]]:
    """A descriptor of a regular file in ``folder`` and what fstat says of it; raises CheckpointError."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        raise CheckpointError(f"{name} is missing") from None
    except OSError as error:
        raise CheckpointError(f"{name} {_why_closed(error, name, folder)}") from None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise CheckpointError(f"{name} is not a regular file")
        yield fd, found
    finally:
        os.close(fd)


def denied(error: OSError, path: str, folder: int | None = None) -> str:
    """Who may not read the file and who may, where that is what the error says; else ''."""
    if error.errno not in (errno.EACCES, errno.EPERM):
        return ""
    try:
        owner = os.stat(path, dir_fd=folder, follow_symlinks=False).st_uid
    except OSError:
        return f"cannot be read by user {os.geteuid()}: nothing is certified; run the agent as the trainer's user"
    return unreadable(owner)


def unreadable(owner: int) -> str:
    """Why a file of that user cannot be read, and what to do."""
    who = f"cannot be read by user {os.geteuid()}, it is user {owner}'s: nothing is certified"
    return f"{who}; run the agent with UID {owner}"


def _why_closed(error: OSError, name: str, folder: int) -> str:
    if error.errno == errno.ELOOP:
        return "is a link; a link is not followed"
    return denied(error, name, folder) or f"cannot be opened: {error.strerror}"


def mapped(fd: int) -> memoryview:
    """The bytes of a file, to be read from front to back; a file that is cut short meanwhile is a SIGBUS."""
    size = os.fstat(fd).st_size
    if not size:
        return memoryview(b"")  # nothing cannot be mapped
    found = mmap.mmap(fd, size, prot=mmap.PROT_READ)
    found.madvise(mmap.MADV_SEQUENTIAL)
    return memoryview(found)


def read_manifest(folder: int, limits: Limits) -> Manifest:
    """Read and check ``manifest.json`` in ``folder``; raises CheckpointError."""
    with opened(folder, MANIFEST) as (fd, found):
        if found.st_size > limits.manifest_bytes:
            raise CheckpointError(f"{MANIFEST} has {found.st_size} bytes; at most {limits.manifest_bytes} are read")
        with open(fd, "rb", closefd=False) as file:
            body = file.read(limits.manifest_bytes + 1)
    try:
        return _manifest(decode(body), DIGEST + xxhash.xxh3_128_hexdigest(body), limits)
    except KeyError as error:
        raise CheckpointError(f"{MANIFEST} says nothing of {error}") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{MANIFEST} cannot be read: {error}") from None


def measure(folder: int, manifest: Manifest) -> list[str]:
    """What is wrong with the files' presence and sizes, a sentence each; nothing of them is read."""
    problems = []
    for name, file in manifest.files.items():
        try:
            with opened(folder, name) as (_, found):
                if found.st_size < file.bytes:
                    problems.append(f"{name} is truncated: {found.st_size} of {file.bytes} bytes")
                elif found.st_size > file.bytes:
                    problems.append(f"{name} is longer than it was written: {found.st_size} bytes, not {file.bytes}")
        except CheckpointError as error:
            problems.append(str(error))
    return problems


def told(problems: list[str]) -> str:
    """The first few problems, and how many more there are."""
    more = f"; and {len(problems) - _SAID} more" if len(problems) > _SAID else ""
    return "; ".join(problems[:_SAID]) + more


def seen(path: str, manifest: Manifest, fit: str, why: str = "") -> CheckpointSeen:
    """A verdict on a checkpoint whose manifest can be read."""
    said = manifest
    return CheckpointSeen(
        path, said.step, said.segment, said.digest, fit, why, said.saved_at, said.last_directive, said.data_cursor,
        dict(said.knobs),
    )  # fmt: skip


def unread(path: str, why: str) -> CheckpointSeen:
    """Unfit, of a checkpoint whose manifest was not read: its name tells the step, its folder the time."""
    match = _FOLDER.fullmatch(os.path.basename(path))
    try:
        saved_at = os.lstat(path).st_mtime
    except (OSError, ValueError):
        saved_at = 0.0
    step, segment = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    return CheckpointSeen(path, step, segment, "", Fit.UNFIT, why, saved_at)


def decode(body: bytes) -> Any:
    """JSON whose numbers are all finite and whose names occur once; raises ValueError or RecursionError."""
    return json.loads(body, parse_constant=finite, parse_float=lambda s: finite(float(s)), object_pairs_hook=_once)


def finite(value: object) -> float:
    """``value`` where it is a finite number; raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]} is not a finite number")
    return float(value)


def whole(value: object) -> int:
    """``value`` where it is a whole number from 0 to 2**53; raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise ValueError(f"{str(value)[:40]} is not a whole number of at least 0")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _manifest(raw: Mapping[str, Any], digest: str, limits: Limits) -> Manifest:
    if raw["format"] != FORMAT:
        raise ValueError(f"its format is {str(raw['format'])[:40]!r}, not {FORMAT!r}")
    if not raw["files"] or len(raw["files"]) > limits.files:
        raise ValueError(f"it names {len(raw['files'])} files; 1 to {limits.files} are believed")
    files = {_plain(name): File(whole(file["bytes"]), _digest(file["digest"])) for name, file in raw["files"].items()}
    if not any(name.endswith(".safetensors") for name in files):
        raise ValueError("it names no .safetensors file: there is nothing to go back to")
    knobs = {name: finite(value) for name, value in raw["knobs"].items()}
    return Manifest(
        digest, whole(raw["step"]), whole(raw["segment"]), finite(raw["time"]), whole(raw["last_directive"]),
        whole(raw["data_cursor"]), knobs, files,
    )  # fmt: skip


def _plain(name: str) -> str:
    """``name`` where it can only be a file in the folder itself."""
    if name.startswith(".") or name in ("", MANIFEST) or len(name) > 255 or not re.fullmatch(r"[\w.+=@ -]+", name):
        raise ValueError(f"{name[:80]!r} is not a plain file name")
    return name


def _digest(value: object) -> str:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ValueError(f"{str(value)[:40]!r} is not a digest as {DIGEST} and 32 hex digits")
    return value
