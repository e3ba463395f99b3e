"""Index: what an archive is made of and what it is called, as ``index.json``; read with distrust.

A file lies there in parts of one size, each an object whose key has its place and its digest. The digest of the whole
is that of the list of files. Called by ``upload``, ``restore`` and ``catalogue``. Not promised: that the parts hold
what their names say; whoever restores proves it.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import xxhash

from gyrostat_agent.archive import store as objects
from gyrostat_agent.archive.errors import ArchiveError, DamagedError
from gyrostat_agent.archive.paths import apart, inner, plain
from gyrostat_agent.archive.store import Body, Store
from gyrostat_agent.checkpoints.reference import DIGEST, decode, finite, whole

INDEX = "index.json"
VERSION = "gyrostat-archive/1"
PART_BYTES = 8 << 20  # a part is sent within the client's 30 seconds on a line of 1 MB/s, all lanes together
FILES = 10_000
_LARGEST_PART = 16 << 20  # so that the lanes of whoever restores stay below 64 MiB
_INDEX_BYTES = 8 << 20  # 1.9 TB in parts of 8 MiB
_TEXT = 200
_PART = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(DIGEST + "[0-9a-f]{32}")
_TAG = re.compile(r"[\w.+=@-]{1,64}")


class File(NamedTuple):
    """A file of the checkpoint: its path in the folder, bytes, digest, and the hex digests of its parts, in order."""

    path: str
    bytes: int
    digest: str
    parts: tuple[str, ...]


class Index(NamedTuple):
    """An archive. ``step`` is -1 where nobody knows it, ``archived_at`` Unix seconds, ``format`` the checkpoint's."""

    name: str
    run: str
    step: int
    format: str
    tags: tuple[str, ...]
    storage_class: str
    archived_at: float
    part_bytes: int
    files: tuple[File, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def digest(self) -> str:
        """Digest of the whole: of digest, size and path of each file, a line each, by path."""
        lines = (f"{file.digest} {file.bytes} {file.path}\n" for file in sorted(self.files))
        return DIGEST + xxhash.xxh3_128_hexdigest("".join(lines).encode())


def key_of(base: str, file: int, part: int, digest: str) -> str:
    """Where a part lies, below the archive's ``base``: '' or a name with its slash."""
    return f"{base}{file:05d}/{part:06d}-{digest}"


def span(size: int, part: int, part_bytes: int) -> int:
    """Bytes of a file's part."""
    return min(part_bytes, size - part * part_bytes)


def parts_of(size: int, part_bytes: int = PART_BYTES) -> int:
    """How many parts a file has; one of 0 bytes has none."""
    return -(-size // part_bytes)


def tag(word: object) -> str:
    """``word`` where it can be a tag; raises ValueError."""
    if not isinstance(word, str) or not _TAG.fullmatch(word):
        raise ValueError(f"{str(word)[:80]!r} is no tag: 1 to 64 letters, digits and . _ + = @ -")
    return word


def encode(index: Index) -> bytes:
    """The index as JSON; raises ArchiveError where it would be larger than is read again."""
    files = [file._asdict() for file in index.files]
    head = {"archive": VERSION, "digest": index.digest, "bytes": index.bytes}
    body = json.dumps({**head, **index._asdict(), "files": files}, ensure_ascii=False, separators=(",", ":")).encode()
    if len(body) > _INDEX_BYTES:
        raise ArchiveError(f"{index.name} is too large for one archive: its index would have {len(body)} bytes of "
                           f"{_INDEX_BYTES}; archive its folders apart")  # fmt: skip
    return body


def fetched(store: Store, base: str) -> tuple[Index, Body] | None:
    """The index below ``base``, None where there is none; raises StoreError, DamagedError."""
    body = objects.read(store, base + INDEX, _INDEX_BYTES)
    if body is None:
        return None
    try:
        return _index(decode(body.data)), body
    except KeyError as error:
        why = f"it says nothing of {error}"
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        why = str(error)
    raise DamagedError(f"{store.url}: {base}{INDEX} is not to be believed: {why}; nothing is taken from this archive")


def _index(raw: Mapping[str, Any]) -> Index:
    if raw["archive"] != VERSION:
        raise ValueError(f"it is of {str(raw['archive'])[:40]!r}, this Gyrostat reads {VERSION!r}")
    if len(raw["files"]) > FILES:
        raise ValueError(f"it names {len(raw['files'])} files; at most {FILES} are believed")
    size = whole(raw["part_bytes"])
    if not 1 <= size <= _LARGEST_PART:
        raise ValueError(f"its parts have {size} bytes; 1 to {_LARGEST_PART} are believed")
    files = tuple(_file(file, size) for file in raw["files"])
    apart([file.path for file in files])
    step = -1 if raw["step"] == -1 else whole(raw["step"])
    index = Index(
        plain(raw["name"]), _text(raw["run"]), step, _text(raw["format"]), tuple(map(tag, raw["tags"])),
        _text(raw["storage_class"]), finite(raw["archived_at"]), size, files,
    )  # fmt: skip
    if (raw["digest"], raw["bytes"]) != (index.digest, index.bytes):
        raise ValueError("its digest and size are not those of the files that it names")
    return index


def _file(raw: Mapping[str, Any], part_bytes: int) -> File:
    path, size, parts = inner(raw["path"]), whole(raw["bytes"]), tuple(map(_hex, raw["parts"]))
    if len(parts) != parts_of(size, part_bytes):
        raise ValueError(f"{path[:80]!r} has {size} bytes in {len(parts)} parts of {part_bytes}")
    if not isinstance(raw["digest"], str) or not _DIGEST.fullmatch(raw["digest"]):
        raise ValueError(f"{path[:80]!r} has no digest as {DIGEST} and 32 hex digits")
    return File(path, size, raw["digest"], parts)


def _hex(value: object) -> str:
    if not isinstance(value, str) or not _PART.fullmatch(value):
        raise ValueError(f"{str(value)[:40]!r} is no digest of a part")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _TEXT or not value.isprintable():
        raise ValueError(f"{str(value)[:40]!r} is not a short text")
    return value
