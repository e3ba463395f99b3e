"""ProtoWire: the little of protobuf's wire format that event files need: a message's fields, nothing of its schema.

Read by ``scalarevents`` alone. Source: protobuf.dev/programming-guides/encoding.
"""

import struct
from collections.abc import Iterator
from typing import TypeAlias

Value: TypeAlias = int | bytes
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MOST_FIELDS = 1 << 16  # of one message: more are no step's numbers, and cost time
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")


class MalformedError(ValueError):
    """Bytes that are no message."""


def key(number: int, wire: int) -> int:
    """What a field begins with, as ``fields`` gives it."""
    return number << 3 | wire


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """(key, value) of each field: an int of a varint, else its bytes. Raises MalformedError where it does not fit."""
    at, end, count = 0, len(data), 0
    while at < end:
        if (count := count + 1) > _MOST_FIELDS:
            raise MalformedError("more fields than any message has")
        found, at = _varint(data, at)
        wire = found & 7
        if found < 8:
            raise MalformedError("a field of number 0")
        if wire == VARINT:
            number, at = _varint(data, at)
            yield found, number
            continue
        if wire == BYTES:
            size, at = _varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise MalformedError("a wire type that nothing uses")
        if size > end - at:
            raise MalformedError("a field is longer than its message")
        yield found, data[at : at + size]
        at += size


def varint(number: int) -> bytes:
    """``number``, 0 or greater, as it stands on the wire."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def signed(number: int) -> int:
    """An int64 from the 64 bits of a varint."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


def floats(data: bytes) -> list[float]:
    """Packed floats; nothing where the bytes are no whole number of them."""
    return [value for (value,) in _FLOAT.iter_unpack(data)] if len(data) % 4 == 0 else []


def doubles(data: bytes) -> list[float]:
    """Packed doubles; nothing where the bytes are no whole number of them."""
    return [value for (value,) in _DOUBLE.iter_unpack(data)] if len(data) % 8 == 0 else []


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at ``at``, and where it ends."""
    number = 0
    for shift, byte in enumerate(data[at : at + 10]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number, at + shift + 1
    raise MalformedError("a number without an end")
