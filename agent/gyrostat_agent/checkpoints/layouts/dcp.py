"""torch DCP: a folder of ``*.distcp`` with a ``.metadata``, which is written last and names every item's place.

Each item, a tensor's chunk or an object, is one stream of torch.save; what .metadata says of its type and size is
compared with what lies there. Source: torch/distributed/checkpoint/{filesystem,metadata}.py.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gyrostat_agent.checkpoints.layouts.contents import Contents, File, How, Slice, lacking
from gyrostat_agent.checkpoints.layouts.folder import Listed, body, folders, listing, marked, opened_below
from gyrostat_agent.checkpoints.pickled import Made, Pairs, PickleLimits, Unreadable, field_of
from gyrostat_agent.checkpoints.pickled import read as read_pickle
from gyrostat_agent.checkpoints.rebuilt import size_of, sizes, whole
from gyrostat_agent.checkpoints.reference import CheckpointError, Stamp, mapped
from gyrostat_agent.checkpoints.torchzip import saved

name = "dcp"
signs = (".metadata", "*.distcp")

MARK = ".metadata"
_FOLDER = re.compile(r"(?:[A-Za-z][\w.-]*?[-_])?([0-9]{1,15})")
_PATH = re.compile(r"[\w.+=@-][\w.+=@ -]*")
_STEPS = ("step", "global_step", "iteration")
_LIMITS = PickleLimits()


class Part(NamedTuple):
    """What one .metadata says: its files, how many bytes each must have, and what is wrong."""

    files: Mapping[str, File]
    expected: Mapping[str, int]
    problems: tuple[str, ...] = ()
    tag: str = ""


class Chunk(NamedTuple):
    """Type and sizes of a piece of a tensor; ``shape`` is None for an object."""

    dtype: str
    shape: tuple[int, ...] | None


def matches(folder_name: str) -> int | None:
    """The step of a name that ends in a number, such as ``step-100``."""
    match = _FOLDER.fullmatch(folder_name)
    return int(match[1]) if match else None


def find(root: str) -> dict[str, Stamp]:
    """The folders under ``root`` that have a .metadata."""
    stamps = {os.path.join(root, each): marked(root, each, MARK) for each in folders(root) if matches(each) is not None}
    return {path: stamp for path, stamp in stamps.items() if stamp is not None}


def read(folder: int, folder_name: str) -> Contents:
    """What is in the folder; raises CheckpointError."""
    found = listing(folder)
    if MARK not in found:
        raise CheckpointError(f"{MARK}, which is written last, is missing: half-written, or being deleted")
    said = part(folder, "", found)
    files = {**{path: plain(path, each) for path, each in found.items()}, **said.files}
    named = matches(folder_name) or 0
    step = _step(folder, said.files)
    return Contents(
        named, named if step is None else step, found[MARK].mtime_ns / 1e9, files, said.expected,
        tag=said.tag, problems=said.problems,
    )  # fmt: skip


def complete(contents: Contents, siblings: Sequence[Mapping[str, int]]) -> list[str]:
    """What is missing or too short."""
    return lacking(contents, siblings)


def plain(path: str, listed: Listed) -> File:
    """A file that .metadata does not name: an opaque one where it is called as if it held tensors."""
    if path.endswith(".distcp"):
        return File(listed.bytes, How.OPAQUE, weights=True)
    if path.endswith((".pt", ".pth", ".bin")):
        return File(listed.bytes, How.TORCHZIP, weights=True)
    return File(listed.bytes)


def below(folder: int, found: Mapping[str, Listed]) -> Part:
    """All checkpoints of this layout in folders below, together: FSDP under ``checkpoint-N`` has one for each model."""
    files, expected, problems = dict[str, File](), dict[str, int](), list[str]()
    for path in found:
        prefix, slash, leaf = path.rpartition("/")
        if slash and leaf == MARK:
            said = part(folder, prefix + slash, found)
            files.update(said.files)
            expected.update(said.expected)
            problems += said.problems
    unmarked = {path.rpartition("/")[0] for path in found if "/" in path and path.endswith(".distcp")}
    problems += [f"{each}/{MARK} is missing" for each in sorted(unmarked) if f"{each}/{MARK}" not in found]
    return Part(files, expected, tuple(problems))


def part(folder: int, prefix: str, found: Mapping[str, Listed]) -> Part:
    """What ``prefix``.metadata says; raises CheckpointError where it is damaged."""
    here = {path: each for path, each in found.items() if path.startswith(prefix) and path.endswith(".distcp")}
    try:
        if found[prefix + MARK].bytes > _LIMITS.bytes:
            raise Unreadable(f"{found[prefix + MARK].bytes} bytes; at most {_LIMITS.bytes} are read")
        root = read_pickle(body(folder, prefix + MARK, _LIMITS.bytes), _LIMITS)
        chunks, places, gaps = dict(_chunks(root)), list(_places(root)), list(_gaps(root))
    except Unreadable as error:
        opaque = {path: File(each.bytes, How.OPAQUE, weights=True) for path, each in here.items()}
        opaque[prefix + MARK] = File(found[prefix + MARK].bytes, How.OPAQUE, weights=True)
        return Part(opaque, {}, tag=f"unread: {error}")
    except (ValueError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{prefix}{MARK} cannot be read: {error}") from None
    placed: dict[str, list[Slice]] = {}
    for key, path, start, end, unread in places:
        chunk = chunks.get(key, Chunk("", None))
        placed.setdefault(prefix + path, []).append(Slice(key[0], start, end, chunk.dtype, chunk.shape, unread))
    lost = chunks.keys() - {place[0] for place in places}
    files = {
        path: File(found[path].bytes, How.DCP, True, tuple(sorted(slices, key=lambda each: each.start)))
        for path, slices in placed.items()
        if path in found
    }
    problems = [*(f"{each[0]} is in no file, says {prefix}{MARK}" for each in sorted(lost)), *gaps]
    expected = {path: max(each.end for each in slices) for path, slices in placed.items()}
    version = field_of(root, "version")
    return Part(files, expected, tuple(problems), version if isinstance(version, str) else "")


Key = tuple[str, tuple[int, ...]]


def _entries(root: Any) -> Iterator[tuple[str, Made]]:
    entries = field_of(root, "state_dict_metadata")
    if not isinstance(root, Made) or root.maker.name != "Metadata" or not isinstance(entries, Pairs):
        raise ValueError("it is no Metadata of torch.distributed.checkpoint")
    for key, value in entries:
        if not isinstance(key, str) or not isinstance(value, Made):
            raise ValueError("an entry without a name")
        yield key, value


def _chunks(root: Any) -> Iterator[tuple[Key, Chunk]]:
    """Every piece that must be stored: name and offsets, type and sizes."""
    for key, value in _entries(root):
        if value.maker.name == "BytesStorageMetadata":
            yield (key, ()), Chunk("", None)
            continue
        dtype = size_of(value_of(field_of(value, "properties"), "dtype"))[0]
        for each in field_of(value, "chunks") or []:
            yield (key, sizes(field_of(each, "offsets"))), Chunk(dtype, sizes(field_of(each, "sizes")))


def _gaps(root: Any) -> Iterator[str]:
    """Tensors whose pieces do not make up the whole."""
    for key, value in _entries(root):
        if value.maker.name != "BytesStorageMetadata":
            pieces = [math.prod(sizes(field_of(each, "sizes"))) for each in field_of(value, "chunks") or []]
            if sum(pieces) != (entire := math.prod(sizes(field_of(value, "size")))):
                yield f"the pieces of {key[:80]} have {sum(pieces)} values, it has {entire}"


def value_of(properties: Any, key: str) -> Any:
    """``key`` of a TensorProperties, whose state is a tuple with the type first, and of others a dict."""
    state = properties.state if isinstance(properties, Made) else None
    return state[0] if isinstance(state, tuple) and state else field_of(properties, key)


def _places(root: Any) -> Iterator[tuple[Key, str, int, int, str]]:
    """Where each piece is stored: name and offsets, file, first byte, byte behind the last, why it cannot be read."""
    stored = field_of(root, "storage_data")
    if not isinstance(stored, Pairs):
        raise ValueError("it does not say where anything is stored")
    for index, place in stored:
        fqn, offset, path = field_of(index, "fqn"), field_of(index, "offset"), field_of(place, "relative_path")
        if not isinstance(fqn, str) or not isinstance(path, str) or not _PATH.fullmatch(path):
            raise ValueError(f"an item is said to be in {str(path)[:80]!a}, which is no file of this folder")
        start, length = whole(field_of(place, "offset")), whole(field_of(place, "length"))
        unread = "is stored compressed or otherwise changed" if field_of(place, "transform_descriptors") else ""
        yield (fqn, () if offset is None else sizes(offset)), path, start, start + length, unread


def _step(folder: int, files: Mapping[str, File]) -> int | None:
    """The step that the checkpoint itself stores, where it stores a plain one."""
    for path, file in files.items():
        for each in file.slices:
            if each.name in _STEPS and each.shape is None and each.end <= file.bytes:
                with opened_below(folder, path) as (fd, _):
                    try:
                        value = saved(mapped(fd)[each.start : each.end]).value
                        return whole(value)
                    except ValueError:
                        return None  # no plain number; if it is damaged, the pass over all of it says so
    return None
