"""TFRecords: TensorFlow's framing of a file of records: length, its checksum, data, its checksum; and the way on
after damage.

Read by ``scalarevents`` alone. Nothing is trusted: a length is bounded, and none is followed whose checksum does not
fit. Source: tensorflow/core/lib/io/record_writer.h; CRC-32C is RFC 3720, appendix B.4.
"""

import re
import struct

HEAD, TAIL = 12, 4  # bytes in front of a record's data and behind it
MOST = 16 << 20  # bytes of one record's data: what is longer is no step's numbers, and passed over like damage
_HEAD = struct.Struct("<QI")
_CHECK = struct.Struct("<I")
_REVERSED = 0x82F63B78  # Castagnoli's polynomial
# A length below MOST ends in five zero bytes, and no such length has a checksum of zero: long holes go by at once.
_MAY_BE = re.compile(rb"\0{5}(?!\0{4})")


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (_REVERSED if byte & 1 else 0)
    return byte


_TABLE = tuple(_remainder(byte) for byte in range(256))


def checksum(data: bytes) -> int:
    """CRC-32C of ``data``, rotated and shifted as TFRecords keep it, so that a CRC of CRCs is none by chance."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def length(data: bytes, at: int) -> int:
    """How long the data of the record at ``at`` is; -1 where no header stands there. It needs HEAD bytes."""
    size, check = _HEAD.unpack_from(data, at)
    return int(size) if size <= MOST and checksum(data[at : at + 8]) == check else -1


def intact(data: bytes, at: int, size: int) -> bool:
    """True where the checksum of the ``size`` bytes behind the header at ``at`` fits. Slow: 0.1 µs a byte."""
    begin = at + HEAD
    (check,) = _CHECK.unpack_from(data, begin + size)
    return bool(checksum(data[begin : begin + size]) == check)


def find(data: bytes, at: int) -> int:
    """Where the next header begins, from ``at`` on; -1 where ``data`` holds no more of them."""
    while (may := _MAY_BE.search(data, at + 3)) is not None:
        at = may.start() - 3
        if at + HEAD > len(data):
            break
        if length(data, at) >= 0:
            return at
        at += 1
    return -1
