"""Verify: is a checkpoint complete, as it was written, and finite? Digest and finiteness in one pass over a map.

Called in the child, never in the sidecar's own process: a file that is cut short while it is mapped is a SIGBUS.
The digest is compared with what the trainer wrote; a flipped byte can be a finite number, and a number that is not
finite can be written down faithfully, so neither check stands for the other.

Finiteness of float32 and float64 blocks is asked of a product with ones, row by row, and of the squares of the sums:
NaN and inf survive both, and finite values may overflow, so in a block that is suspected they are counted.
(A plain ``dot(v, v)`` reads both operands and takes 8 % longer for the whole pass.) Narrow floats are compared as
whole numbers: above its sign bit, a number that is not finite is at least the pattern of inf.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from gyrostat_agent.checkpoints.reference import (
    DIGEST,
    CheckpointError,
    File,
    Limits,
    Manifest,
    decode,
    mapped,
    measure,
    opened,
    opened_folder,
    read_manifest,
    seen,
    told,
    unread,
)
from gyrostat_agent.checkpoints.tensors import Tensor, tensors
from gyrostat_rules.inputs import CheckpointSeen, Fit

_BLOCK = 512 << 10  # half a second-level cache: the digest reads from there what the check has just fetched
_ROW = 1024
_ONES = {kind: np.ones(_ROW, kind) for kind in ("<f4", "<f8")}
_DEFAULTS = Limits()

_WIDE = {"F32": "<f4", "F64": "<f8", "C64": "<f4"}
_NARROW = {  # integer type and pattern of the first value that is not finite, sign bit off
    "F16": ("2", 0x7C00), "BF16": ("2", 0x7F80),
    "F8_E4M3": ("1", 0x7F), "F8_E5M2": ("1", 0x7C),
}  # fmt: skip
_UNSIGNED_SCALE = "F8_E8M0"  # no sign, one NaN: 0xff

Array = NDArray[Any]


class Run(NamedTuple):
    """A stretch of a file that is checked in one way."""

    start: int
    end: int
    dtype: str


def verify(path: str, limits: Limits = _DEFAULTS) -> CheckpointSeen:
    """The checkpoint at ``path``, judged: verified, attested (a file of it cannot be read without unpickling), unfit.

    Raises nothing for what a checkpoint may hold; a file that shrinks meanwhile ends the process with SIGBUS.
    """
    try:
        with opened_folder(path) as folder:
            manifest = read_manifest(folder, limits)
            problems = measure(folder, manifest) or list(_problems(folder, manifest, limits))
    except CheckpointError as error:
        return unread(path, str(error))
    except (OSError, ValueError, MemoryError) as error:  # ValueError: it shrank just before it was mapped
        return unread(path, f"could not be verified: {error or 'too little memory'}")
    if problems:
        return seen(path, manifest, Fit.UNFIT, told(problems))
    opaque = [name for name in manifest.files if not name.endswith((".safetensors", ".json"))]
    if opaque:
        return seen(path, manifest, Fit.ATTESTED, f"{opaque[0]}: as it was written, but its numbers cannot be checked")
    return seen(path, manifest, Fit.VERIFIED)


def _problems(folder: int, manifest: Manifest, limits: Limits) -> Iterator[str]:
    """What is wrong with the files' contents, a sentence each."""
    for name, file in manifest.files.items():
        try:
            with opened(folder, name) as (fd, before):
                yield from (f"{name}: {why}" for why in _wrong(name, fd, file, limits))
                after = os.fstat(fd)
                if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                    yield f"{name} changed while it was read"
        except CheckpointError as error:
            yield str(error)


def _wrong(name: str, fd: int, file: File, limits: Limits) -> Iterator[str]:
    data, layout, malformed = mapped(fd), list[Tensor](), ""
    try:
        layout = _layout(name, data, limits)
    except (ValueError, RecursionError) as error:
        malformed = str(error)
    digest, suspects = scan(data, layout)
    if digest != file.digest:
        yield f"digest differs: written {file.digest}, found {digest}"
    if malformed:
        yield malformed
    yield from nonfinite(data, layout, suspects)


def _layout(name: str, data: memoryview, limits: Limits) -> list[Tensor]:
    """The tensors of a file that holds some; raises ValueError where it, or a JSON file, cannot be read."""
    if name.endswith(".safetensors"):
        return tensors(data, limits.header_bytes)
    if name.endswith(".json"):
        if len(data) > limits.json_bytes:
            raise ValueError(f"{len(data)} bytes of JSON; at most {limits.json_bytes} are read")
        decode(bytes(data))
    return []


def scan(data: memoryview, layout: list[Tensor]) -> tuple[str, list[Run]]:
    """Digest of ``data``, and the blocks of it in which a number may not be finite: one pass, in blocks of 512 KiB."""
    digest, suspects = xxhash.xxh3_128(), list[Run]()
    with np.errstate(all="ignore"):  # an overflow of the dot product is expected, and confirmed
        for run in _runs(layout, len(data)):
            check = _check_of(run.dtype)
            for start in range(run.start, run.end, _BLOCK):
                block = data[start : min(start + _BLOCK, run.end)]
                if check is not None and not check(block):  # first: it streams from memory faster than the digest
                    suspects.append(Run(start, start + len(block), run.dtype))
                digest.update(block)
    return DIGEST + digest.hexdigest(), suspects


def nonfinite(data: memoryview, layout: list[Tensor], suspects: Iterable[Run]) -> Iterator[str]:
    """A sentence for each tensor that holds a number that is not finite; only the blocks suspected are read."""
    counts: dict[str, int] = {}
    at = 0
    for block in suspects:
        while layout[at].end <= block.start:
            at += 1
        for tensor in layout[at:]:
            if tensor.start >= block.end:
                break
            piece = data[max(tensor.start, block.start) : min(tensor.end, block.end)]
            counts[tensor.name] = counts.get(tensor.name, 0) + _count(piece, tensor.dtype)
    for name, count in counts.items():
        if count:
            yield f"{count} value{'s' * (count > 1)} of tensor {name[:80]} {'are' if count > 1 else 'is'} not finite"


def _runs(layout: list[Tensor], size: int) -> Iterator[Run]:
    """Neighbours of one type together, so that a thousand small tensors cost no more than a large one."""
    begin = layout[0].start if layout else size
    yield Run(0, begin, "")
    for dtype, group in groupby(layout, key=lambda tensor: tensor.dtype):
        members = list(group)
        yield Run(members[0].start, members[-1].end, dtype)


def _check_of(dtype: str) -> Callable[[memoryview], bool] | None:
    """The check that all numbers of a block are finite, or None where they cannot be otherwise."""
    if dtype in _WIDE:
        kind = np.dtype(_WIDE[dtype])
        return lambda block: _finite_wide(np.frombuffer(block, kind))
    if dtype in _NARROW:
        width, first = _NARROW[dtype]
        signed, unsigned, sign = np.dtype(f"<i{width}"), np.dtype(f"<u{width}"), 1 << (8 * int(width) - 1)
        # two maxima and no temporary: of those without a sign, then of those with one
        return lambda block: bool(
            np.frombuffer(block, signed).max() < first and np.frombuffer(block, unsigned).max() < (first | sign)
        )
    if dtype == _UNSIGNED_SCALE:
        return lambda block: bool(np.frombuffer(block, np.uint8).max() < 0xFF)
    return None


def _finite_wide(values: Array) -> bool:
    rows = len(values) // _ROW
    sums, rest = values[: rows * _ROW].reshape(rows, _ROW) @ _ONES[values.dtype.str], values[rows * _ROW :]
    return math.isfinite(np.dot(sums, sums) + np.dot(rest, rest))


def _count(piece: memoryview, dtype: str) -> int:
    """How many numbers of ``piece`` are not finite."""
    if dtype in _WIDE:
        return int(np.count_nonzero(~np.isfinite(np.frombuffer(piece, _WIDE[dtype]))))
    if dtype == _UNSIGNED_SCALE:
        return bytes(piece).count(0xFF)
    width, first = _NARROW[dtype]
    values = np.frombuffer(piece, f"<u{width}")
    return int(np.count_nonzero((values & (2 ** (8 * int(width) - 1) - 1)) >= first))
