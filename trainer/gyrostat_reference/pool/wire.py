"""The line between trainer and worker: JSON bytes behind their length, over a socket pair.

Nothing is unpickled. A reader takes what has arrived and keeps half a message for later: a worker that is stopped in
the middle of writing one must not stop the trainer.
"""

import base64
import json
import socket
import struct
import threading
from typing import Any

import torch
from torch import Tensor

LARGEST = 1 << 20  # bytes of a message; ours have some ten thousand, most of them the generator's state
_LENGTH = struct.Struct("<I")
_READ = 1 << 16

Message = dict[str, Any]


class WireError(Exception):
    """What came over the line is no message of ours."""


class LineClosed(Exception):
    """The process at the other end is gone, or takes nothing any more."""


class Line:
    """One end of the line; several threads may send, one may read. ``patience`` seconds bound a call; None waits."""

    def __init__(self, end: socket.socket, patience: float | None = None) -> None:
        end.settimeout(patience)
        self._end, self._lock, self._arrived = end, threading.Lock(), bytearray()

    def fileno(self) -> int:
        """For ``multiprocessing.connection.wait``."""
        return self._end.fileno()

    def send(self, message: Message) -> None:
        """Write one message; raises LineClosed."""
        body = json.dumps(message, allow_nan=False).encode()
        try:
            with self._lock:
                self._end.sendall(_LENGTH.pack(len(body)) + body)
        except OSError as error:
            raise LineClosed(f"it does not take messages ({error})") from None

    def read(self) -> list[Message]:
        """Wait for bytes; the messages that are complete with them. Raises LineClosed or WireError."""
        try:
            data = self._end.recv(_READ)
        except OSError as error:
            raise LineClosed(f"it cannot be heard ({error})") from None
        if not data:
            raise LineClosed("it ended")
        self._arrived += data
        return list(iter(self._take, None))

    def close(self) -> None:
        """Close this end; whoever reads or writes at the other sees it."""
        self._end.close()

    def _take(self) -> Message | None:
        """Take the first message out of what has arrived; None where it is not complete."""
        if len(self._arrived) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._arrived)
        if length > LARGEST:
            raise WireError(f"a message of {length} bytes, where {LARGEST} are allowed")
        end = _LENGTH.size + length
        if len(self._arrived) < end:
            return None
        body = bytes(self._arrived[_LENGTH.size : end])
        del self._arrived[:end]
        return _decode(body)


def pack(tensor: Tensor) -> str:
    """The tensor's bytes as base64: bit for bit, and a value that is not finite survives."""
    return base64.b64encode(tensor.contiguous().numpy().tobytes()).decode()


def unpack(text: str, dtype: torch.dtype, *shape: int) -> Tensor:
    """The tensor that was packed; raises ValueError where it is not of this type and shape."""
    data = bytearray(base64.b64decode(text, validate=True))
    if not data or len(data) % dtype.itemsize:
        raise ValueError(f"{len(data)} bytes are no tensor of {dtype}")
    try:
        return torch.frombuffer(data, dtype=dtype).view(shape)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def _decode(body: bytes) -> Message:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise WireError("a message that is no JSON") from None
    if not isinstance(message, dict):
        raise WireError("a message that is no JSON object")
    return message
