"""The frame: a fixed little-endian header with a CRC of its own, then a body with another.

Two checksums, because a damaged length must not make the reader wait for bytes that never come: the header
proves itself before its length is believed. A reader that meets damage looks for the next frame and counts
what it passed over; it never raises and never stops.

Header, 56 bytes::

    magic 4s | major u8 | minor u8 | kind u8 | role u8 | rank u32 | segment u32 | schema u32 | length u32
    sequence u64 | step i64 | time i64 (Unix ns) | body crc32 | header crc32 (of the 52 bytes before it)
"""

import struct
from typing import NamedTuple
from zlib import crc32

MAGIC = b"GYRO"
MAJOR = 1
MINOR = 0
HEADER = struct.Struct("<4sBBBBIIIIQqqII")
_UNPROVEN = struct.Struct("<4sBBBBIIIIQqqI")  # the header before its own checksum is known
_CRC = struct.Struct("<I")
_CRC_AT = HEADER.size - _CRC.size
MAX_BODY = 64 << 20  # a longer body is damage, not data


class Kind:
    """What a frame carries. Unknown kinds are skipped and counted by every reader."""

    HELLO = 1
    SCHEMA = 2
    RECORD = 3
    ACK = 4
    EXIT = 5
    BYE = 6


class Role:
    """Which part of the run a process plays; the number travels, the name is shown."""

    NAMES = ("trainer", "rollout", "reference", "environment", "supervisor")

    @staticmethod
    def number(name: str) -> int:
        """Number of a role's name; raises ValueError with the names that exist."""
        if name not in Role.NAMES:
            raise ValueError(f"role {name!r} is not one of {', '.join(Role.NAMES)}")
        return Role.NAMES.index(name)

    @staticmethod
    def name(number: int) -> str:
        """Name of a role's number; ``role-N`` where a newer writer knows more roles than we do."""
        return Role.NAMES[number] if number < len(Role.NAMES) else f"role-{number}"


class Frame(NamedTuple):
    """One frame as it lies in a file. ``step`` is -1 where no step is meant; ``time`` is Unix nanoseconds."""

    kind: int
    role: int
    rank: int
    segment: int
    schema: int
    sequence: int
    step: int
    time: int
    body: bytes


class Scan(NamedTuple):
    """What a stretch of bytes held: whole frames, bytes used up, bytes passed over as damage.

    ``foreign`` is the major version of the first frame that another major version wrote, else 0; such a
    stretch is not read further, for its layout is unknown.
    """

    frames: list[Frame]
    consumed: int
    damaged: int
    foreign: int


def encode(frame: Frame, payload: bytes | memoryview = b"") -> bytes:
    """Bytes of a frame; ``payload`` is appended to its body without a copy of its own beforehand."""
    return pack(*frame, payload)


def pack(
    kind: int,
    role: int,
    rank: int,
    segment: int,
    schema: int,
    sequence: int,
    step: int,
    time: int,
    body: bytes,
    payload: bytes | memoryview = b"",
) -> bytes:
    """``encode`` for the writer that has the fields loose; raises struct.error where one does not fit."""
    crc = crc32(payload, crc32(body))
    size = len(body) + len(payload)
    head = _UNPROVEN.pack(
        MAGIC, MAJOR, MINOR, kind, role, rank, segment, schema, size, sequence, step, time, crc
    )  # fmt: skip
    return b"".join((head, _CRC.pack(crc32(head)), body, payload))


def scan(data: bytes) -> Scan:
    """Read whole frames from ``data``; stop before a frame whose end has not been written yet.

    Call again from ``consumed`` when the file has grown. Damage costs the bytes up to the next header that
    proves itself, never the frames behind it.
    """
    frames: list[Frame] = []
    at, damaged, size = 0, 0, len(data)
    while size - at >= HEADER.size:
        if (head := _header(data, at)) is None:
            nxt = _next_magic(data, at + 1)
            damaged += nxt - at
            at = nxt
            continue
        if head[1] != MAJOR:
            return Scan(frames, at, damaged, head[1])
        end = at + HEADER.size + head[8]
        if end > size and not _overtaken(data, at, head):
            break
        body = data[at + HEADER.size : end]
        if end > size or crc32(body) != head[12]:
            nxt = _next_magic(data, at + 1)
            damaged += nxt - at
            at = nxt
            continue
        frames.append(Frame(head[3], head[4], head[5], head[6], head[7], head[9], head[10], head[11], body))
        at = end
    return Scan(frames, at, damaged, 0)


def _header(data: bytes, at: int) -> tuple[int, ...] | None:
    """Unpacked header at ``at`` where it proves itself, else None. Another major version is returned as is."""
    if data[at : at + 4] != MAGIC:
        return None
    head = HEADER.unpack_from(data, at)
    if crc32(memoryview(data)[at : at + _CRC_AT]) != head[13]:
        return None
    return head if head[8] <= MAX_BODY else None


def _next_magic(data: bytes, start: int) -> int:
    """Where the next frame may begin: a magic, or the tail that could still become one."""
    found = data.find(MAGIC, start)
    return found if found >= 0 else max(start, len(data) - len(MAGIC) + 1)


def _overtaken(data: bytes, at: int, head: tuple[int, ...]) -> bool:
    """True where the writer's next frame already lies inside this one's claimed body.

    A disk that filled up cuts a write short; waiting for the missing bytes would hide every later record.
    """
    inner = data.find(MAGIC, at + HEADER.size)
    while 0 <= inner <= len(data) - HEADER.size:
        later = _header(data, inner)
        if later is not None and later[5] == head[5] and later[9] > head[9]:
            return True
        inner = data.find(MAGIC, inner + 1)
    return False
