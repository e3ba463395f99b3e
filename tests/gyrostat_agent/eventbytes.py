"""TensorBoard event files for tests, by no code under test: a checksum bit by bit, messages byte by byte."""

import struct
from pathlib import Path


def framed(data: bytes) -> bytes:
    """A record: length, its checksum, data, its checksum."""
    return header(len(data)) + data + masked(data)


def header(size: int) -> bytes:
    """What stands in front of so many bytes of data."""
    length = struct.pack("<Q", size)
    return length + masked(length)


def masked(data: bytes) -> bytes:
    """CRC-32C, rotated right by 15 bits and shifted."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number: int, data: bytes) -> bytes:
    """A field of bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(step: int, *values: bytes, wall_time: float = 0.0) -> bytes:
    """An Event of a step; protobuf leaves a step of 0 out."""
    begun = b"\x09" + struct.pack("<d", wall_time or 1.8e9 + step) + (b"\x10" + varint(step) if step else b"")
    return begun + field(5, b"".join(field(1, value) for value in values))


def simple(tag: str, number: float) -> bytes:
    """A value as torch and tensorboardX write it."""
    return field(1, tag.encode()) + b"\x15" + struct.pack("<f", number)


def tensor(tag: str, inner: bytes) -> bytes:
    """A value as TF2 writes it: a tensor, and the plugin that draws it."""
    return field(1, tag.encode()) + field(8, inner) + field(9, field(1, field(1, b"scalars")))


def scalar(step: int, tag: str, number: float, wall_time: float = 0.0) -> bytes:
    """A record of one number."""
    return framed(event(step, simple(tag, number), wall_time=wall_time))


BEGINNING = framed(b"\x09" + struct.pack("<d", 1.8e9) + field(3, b"brain.Event:2"))


def run(steps: range, tags: int = 3) -> bytes:
    """A file of steps, with as many tags each; value of tag i in step s is s + i / 4."""
    rows = [scalar(step, f"train/metric_{i}", step + i / 4) for step in steps for i in range(tags)]
    return BEGINNING + b"".join(rows)


def life(steps: range, at: float, tags: tuple[str, ...] = ("train/loss",)) -> bytes:
    """A file of a life that began ``at`` seconds after the first and takes a second a step; values are the steps."""
    rows = [scalar(step, tag, step, 1.8e9 + at + place) for place, step in enumerate(steps) for tag in tags]
    return BEGINNING + b"".join(rows)


def put(folder: Path, number: int, data: bytes) -> Path:
    """An event file by the name that TensorBoard gives it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"events.out.tfevents.{1_800_000_000 + number}.host.{number}.0"
    path.write_bytes(data)
    return path
