"""Examine: is a checkpoint of any layout complete and finite? Digest and finiteness in one pass over each file.

Called in the child, as ``verify`` is and for the same reason: a file that is cut short while it is mapped is a SIGBUS.
Other trainers write no digests, so a flipped byte that makes another finite number shows only where its sum is
written (CRC-32 of small records) or against the digest of a former verdict, which whoever keeps verdicts compares.
"""

import json
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import xxhash

from gyrostat_agent.checkpoints.layouts import of
from gyrostat_agent.checkpoints.layouts import reference as own
from gyrostat_agent.checkpoints.layouts.contents import Contents, File, How, Layout, Slice
from gyrostat_agent.checkpoints.layouts.folder import listing, opened_below
from gyrostat_agent.checkpoints.pickled import Unreadable
from gyrostat_agent.checkpoints.reference import DIGEST, CheckpointError, Limits, mapped, opened_folder, told
from gyrostat_agent.checkpoints.tensors import Tensor, tensors
from gyrostat_agent.checkpoints.torchzip import covering, saved
from gyrostat_agent.checkpoints.verify import nonfinite, scan, verify
from gyrostat_rules.inputs import UNTOLD, CheckpointSeen, Fit

_DEFAULTS = Limits()
_SIBLINGS = 3


class Passed(NamedTuple):
    """What a pass over a file found: its digest, what is wrong, and why not all of it could be read, or ''."""

    digest: str
    problems: list[str]
    unread: str = ""


class Read(NamedTuple):
    """Which bytes of a file are which tensor's, what is wrong with that, and why not all could be read, or ''."""

    tensors: list[Tensor]
    problems: tuple[str, ...] = ()
    unread: str = ""


def examine(path: str, limits: Limits = _DEFAULTS) -> CheckpointSeen:
    """The checkpoint at ``path``, judged: verified, attested (what holds weights cannot all be read), or unfit.

    ``digest`` is xxh3_128 over a line for each file in the order of their paths: path, NUL, its own xxh3_128.
    Raises nothing for what a checkpoint may hold; a file that shrinks meanwhile ends the process with SIGBUS.
    """
    layout = of(path)
    if layout is None:
        return _unread(path, layout, "it has the name of no checkpoint that is known here")
    if layout.name == own.name:
        return verify(path, limits)
    try:
        with opened_folder(path) as folder:
            contents = layout.read(folder, os.path.basename(os.path.abspath(path)))
            problems = layout.complete(contents, list(_siblings(path, layout)))
            if problems:
                return _seen(path, contents, "", Fit.UNFIT, told(problems))
            passed = {name: _passed(folder, name, file, limits) for name, file in sorted(contents.files.items())}
            return _judged(path, contents, passed)
    except (CheckpointError, Unreadable) as error:
        return _unread(path, layout, str(error))
    except (OSError, ValueError, MemoryError, RecursionError) as error:
        return _unread(path, layout, f"could not be verified: {error or 'too little memory'}")


def _judged(path: str, contents: Contents, passed: Mapping[str, Passed]) -> CheckpointSeen:
    lines = "".join(f"{name}\0{each.digest}\n" for name, each in passed.items())
    digest = DIGEST + xxhash.xxh3_128_hexdigest(lines.encode())
    problems = [f"{name}: {why}" for name, each in passed.items() for why in each.problems]
    if problems:
        return _seen(path, contents, digest, Fit.UNFIT, told(problems))
    for name, each in passed.items():
        if each.unread and contents.files[name].weights:
            return _seen(path, contents, digest, Fit.ATTESTED, f"{name}: {each.unread}")
    return _seen(path, contents, digest, Fit.VERIFIED)


def _passed(folder: int, name: str, file: File, limits: Limits) -> Passed:
    """One pass over a file."""
    with opened_below(folder, name) as (fd, before):
        data = mapped(fd)
        try:
            found = _read(data, file, limits)
        except Unreadable as error:
            found = Read([], unread=str(error))
        except (ValueError, RecursionError) as error:
            found = Read([], (str(error) or "nested without end",))
        digest, suspects = scan(data, found.tensors)
        problems = [*found.problems, *nonfinite(data, found.tensors, suspects)]
        after = os.fstat(fd)
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or len(data) != file.bytes:
            problems.append("changed while it was read")
    return Passed(digest, problems, found.unread)


def _read(data: memoryview, file: File, limits: Limits) -> Read:
    """The tensors of a file; raises ValueError where it is damaged, Unreadable where it may be good."""
    if file.how == How.SAFETENSORS:
        return _compared(Read(tensors(data, limits.header_bytes)), file)
    if file.how == How.TORCHZIP:
        found = saved(data)
        return _compared(Read(found.tensors, unread=found.unread), file)
    if file.how == How.JSON:
        _check_json(data, limits)
    if file.how == How.DCP:
        return _sliced(data, file.slices)
    return Read([], unread="its numbers cannot be checked" if file.how == How.OPAQUE else "")


def _check_json(data: memoryview, limits: Limits) -> None:
    """Raise ValueError or RecursionError where it cannot be parsed; a number in it may be NaN, a log may hold one."""
    if len(data) > limits.json_bytes:
        raise Unreadable(f"{len(data)} bytes of JSON; at most {limits.json_bytes} are read")
    json.loads(bytes(data))


def _compared(found: Read, file: File) -> Read:
    """Are the tensors those that the index says?"""
    if file.tensors is None:
        return found
    names = {tensor.name for tensor in found.tensors if tensor.name}
    lost, strange = sorted(file.tensors - names), sorted(names - file.tensors)
    problems = [f"tensor {name[:80]} is not in it, as the index says" for name in lost[:2]]
    problems += [f"tensor {name[:80]} is in it, of which the index says nothing" for name in strange[:2]]
    return found._replace(problems=(*found.problems, *problems))


def _sliced(data: memoryview, slices: tuple[Slice, ...]) -> Read:
    spans, problems, unread, behind = list[Tensor](), list[str](), "", 0
    for each in slices:
        if each.start < behind or each.end > len(data):
            raise ValueError(f"item {each.name[:80]} lies over another, or behind the end of the file")
        behind = each.end
        try:
            found = _item(data[each.start : each.end], each)
        except Unreadable as error:
            found = Read([], unread=str(error))
        except (ValueError, RecursionError) as error:
            found = Read([], (str(error),))
        spans += found.tensors
        problems += (f"item {each.name[:80]}: {why}" for why in found.problems)
        unread = unread or (f"item {each.name[:80]}: {found.unread}" if found.unread else "")
    return Read(list(covering(spans, 0, len(data))), tuple(problems), unread)


def _item(data: memoryview, each: Slice) -> Read:
    """The tensors of one item, at their places in the file."""
    if each.unread:
        return Read([], unread=each.unread)
    found = saved(data)
    problems = list[str]()
    if each.shape is not None:
        there = [(tensor.dtype, tensor.shape) for tensor in found.rebuilt]
        if there != [(each.dtype, each.shape)]:
            problems.append(f"{there[:1] or 'no tensor'} is there, {(each.dtype, each.shape)} is what .metadata says")
    moved = [_moved(tensor, each) for tensor in found.tensors if tensor.dtype]
    return Read(moved, tuple(problems), found.unread)


def _moved(tensor: Tensor, each: Slice) -> Tensor:
    name = f"{each.name}.{tensor.name}" if tensor.name else each.name
    return tensor._replace(name=name, start=tensor.start + each.start, end=tensor.end + each.start)


def _siblings(path: str, layout: Layout) -> Iterator[Mapping[str, int]]:
    """The sizes of the files in the nearest checkpoints of this layout beside this one."""
    root, name = os.path.split(os.path.abspath(path))
    step = layout.matches(name) or 0
    others = [each for each in layout.find(root) if each != os.path.join(root, name) and of(each) is layout]
    nearest = sorted(others, key=lambda each: (abs((layout.matches(os.path.basename(each)) or 0) - step), each))
    for each in islice(nearest, _SIBLINGS):
        try:
            with opened_folder(each) as folder:
                yield {found: listed.bytes for found, listed in listing(folder).items()}
        except (CheckpointError, OSError):
            continue  # it is being deleted, or is bad itself


def _seen(path: str, contents: Contents, digest: str, fit: str, why: str = "") -> CheckpointSeen:
    said = contents
    return CheckpointSeen(
        path, said.step, said.segment, digest, fit, why, said.saved_at, 0, said.data_cursor, dict(said.knobs)
    )


def _unread(path: str, layout: Layout | None, why: str) -> CheckpointSeen:
    """Unfit, of a checkpoint whose contents were not read: its name tells the step, its folder the time."""
    try:
        saved_at = os.lstat(path).st_mtime
    except (OSError, ValueError):
        saved_at = 0.0
    step = layout.matches(os.path.basename(os.path.abspath(path))) if layout else 0
    return CheckpointSeen(path, step or 0, UNTOLD, "", Fit.UNFIT, why, saved_at)
