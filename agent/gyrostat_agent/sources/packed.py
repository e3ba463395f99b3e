"""Packed bodies: gzip and deflate, unpacked within a bound, so that a small post cannot fill the memory."""

import zlib

from gyrostat.wire.fields import clean

_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


class PackedError(ValueError):
    """A body that cannot be unpacked, and the HTTP status that says so."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def unpack(body: bytes, how: str, most: int) -> bytes:
    """The plain body of at most ``most`` bytes; ``how`` as in Content-Encoding. Raises PackedError."""
    if how in ("", "identity"):
        return body
    if how not in _WINDOWS:
        raise PackedError(415, f"packed as {clean(how[:40])!r}; use gzip, deflate or nothing")
    packed = zlib.decompressobj(_WINDOWS[how])
    try:
        plain = packed.decompress(body, most + 1)
    except zlib.error:
        raise PackedError(400, f"this body is not packed as {how}") from None
    if len(plain) > most:
        raise PackedError(413, f"this body has more than {most} bytes once unpacked")
    if not packed.eof:
        raise PackedError(400, f"this body is cut short: its {how} has no end")
    return plain
