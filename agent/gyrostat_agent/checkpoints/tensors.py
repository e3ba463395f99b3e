"""The header of a safetensors file: which bytes belong to which tensor, and of what type they are.

Format: 8 bytes little-endian length, that many bytes of JSON, then the tensors' bytes without a hole or an overlap
(huggingface/safetensors, "Format"). Called by ``verify``. Everything is checked against the file's size before it
is believed; nothing is imported that could run what a file holds.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat_agent.checkpoints.reference import decode, whole

WIDTH = {
    "BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "U32": 4, "I32": 4, "U64": 8, "I64": 8,
    "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F16": 2, "BF16": 2, "F32": 4, "F64": 8, "C64": 8,
}  # fmt: skip
_LENGTH = 8


class Tensor(NamedTuple):
    """A tensor's name, type, and the bytes of the file that hold it."""

    name: str
    dtype: str
    start: int
    end: int


def tensors(data: memoryview, limit: int) -> list[Tensor]:
    """The tensors of a file in the order of their bytes, which they cover from the header to the end.

    ``limit`` is the most bytes of header that are read. Raises ValueError, or RecursionError where the JSON is
    nested without end.
    """
    length = int.from_bytes(data[:_LENGTH], "little")
    if len(data) < _LENGTH or length > min(limit, len(data) - _LENGTH):
        raise ValueError(f"the header is said to have {length} bytes, the file has {len(data)}")
    begin = _LENGTH + length
    raw = decode(bytes(data[_LENGTH:begin]))
    if not isinstance(raw, dict):
        raise ValueError("the header is not a JSON object")
    found = sorted(
        (_tensor(name, entry, begin) for name, entry in raw.items() if name != "__metadata__"),
        key=lambda tensor: (tensor.start, tensor.end),
    )
    _check_cover(found, begin, len(data))
    return found


def _tensor(name: str, entry: Mapping[str, Any], begin: int) -> Tensor:
    try:
        dtype, shape, (low, high) = entry["dtype"], [whole(size) for size in entry["shape"]], entry["data_offsets"]
        start, end = begin + whole(low), begin + whole(high)
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"the header's entry for tensor {name[:80]} is malformed") from None
    if not isinstance(dtype, str) or dtype not in WIDTH:
        raise ValueError(f"tensor {name[:80]} has the type {str(dtype)[:20]}, whose numbers cannot be checked here")
    if end - start != math.prod(shape) * WIDTH[dtype]:
        raise ValueError(f"tensor {name[:80]} has {end - start} bytes, which does not fit {dtype} {shape[:8]}")
    return Tensor(name, dtype, start, end)


def _check_cover(found: list[Tensor], begin: int, size: int) -> None:
    """Raise ValueError unless every byte behind the header is in one tensor: what is in none is checked by nobody."""
    at = begin
    for tensor in found:
        if tensor.start != at:
            raise ValueError(f"tensor {tensor.name[:80]} begins at byte {tensor.start}, the one before ends at {at}")
        at = tensor.end
    if at != size:
        raise ValueError(f"the tensors end at byte {at}, the file at {size}")
