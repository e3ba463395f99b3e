"""EventProto: what one of TensorBoard's Event messages says in numbers: its time, its step, its scalars.

Read by ``scalarevents`` alone. Histograms, images, text and whatever else stands in an Event are passed over. Source:
tensorboard/compat/proto/{event,summary,tensor,tensor_shape}.proto.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from gyrostat_agent.sources.protowire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    Value,
    doubles,
    fields,
    floats,
    key,
    signed,
    varint,
)

LONGEST = 512  # bytes of a tag: longer ones are somebody's text
_WALL_TIME, _STEP, _SUMMARY = key(1, FIXED64), key(2, VARINT), key(5, BYTES)
_VALUE = key(1, BYTES)
_TAG, _SIMPLE, _TENSOR = key(1, BYTES), key(2, FIXED32), key(8, BYTES)
_SHAPE, _DIMENSION, _CONTENT, _TYPE = key(2, BYTES), key(2, BYTES), key(4, BYTES), key(1, VARINT)
_FLOATS, _FLOAT, _DOUBLES, _DOUBLE = key(5, BYTES), key(5, FIXED32), key(6, BYTES), key(6, FIXED64)
_IS_FLOAT, _IS_DOUBLE = 1, 2  # DT_FLOAT, DT_DOUBLE


class Event(NamedTuple):
    """``wall_time`` in Unix seconds; ``scalars`` are (tag, value), most often one."""

    wall_time: float
    step: int
    scalars: list[tuple[str, float]]


def event(data: bytes) -> Event:
    """The Event in ``data``. Raises MalformedError where that is none."""
    wall_time, step = 0.0, 0
    scalars: list[tuple[str, float]] = []
    for found, value in fields(data):
        if found == _WALL_TIME:
            (wall_time,) = struct.unpack("<d", _bytes(value))
        elif found == _STEP:
            step = signed(int(value)) if isinstance(value, int) else 0
        elif found == _SUMMARY:
            scalars += _scalars(_bytes(value))
    return Event(wall_time, step, scalars)


def stem(tag: bytes) -> bytes:
    """All that stands between the step and the number where a summary holds one plain scalar and nothing else."""
    named = bytes([_TAG]) + varint(len(tag)) + tag + bytes([_SIMPLE])
    valued = bytes([_VALUE]) + varint(len(named) + 4) + named
    return varint(len(valued) + 4) + valued


def _scalars(summary: bytes) -> Iterator[tuple[str, float]]:
    for found, value in fields(summary):
        if found == _VALUE:
            tag, number = _value(_bytes(value))
            if number is not None and 0 < len(tag) <= LONGEST:
                yield tag.decode("utf-8", "replace"), number


def _value(data: bytes) -> tuple[bytes, float | None]:
    """A tag, and its number; None where it is none."""
    tag, number = b"", None
    for found, value in fields(data):
        if found == _TAG:
            tag = _bytes(value)
        elif found == _SIMPLE:
            number = floats(_bytes(value))[0]
        elif found == _TENSOR:
            number = _scalar(_bytes(value))
    return tag, number


def _scalar(tensor: bytes) -> float | None:
    """The number of a tensor of rank 0, as TF2 writes scalars; None of a larger one and of other types."""
    numbers: list[float] = []
    kind, content = 0, b""
    for found, value in fields(tensor):
        if found == _TYPE:
            kind = int(value) if isinstance(value, int) else 0
        elif found == _SHAPE and any(inner == _DIMENSION for inner, _ in fields(_bytes(value))):
            return None
        elif found == _CONTENT:
            content = _bytes(value)
        elif found in (_FLOATS, _FLOAT):
            numbers += floats(_bytes(value))
        elif found in (_DOUBLES, _DOUBLE):
            numbers += doubles(_bytes(value))
    if content and kind in (_IS_FLOAT, _IS_DOUBLE):
        numbers += (floats if kind == _IS_FLOAT else doubles)(content)
    return numbers[0] if len(numbers) == 1 else None


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else b""
