"""OnePost: one HTTP post: no proxy, no redirect, a bounded answer, an end to it whatever the other side does.

Below ``alertpush`` and ``cluster``, which say what an answer means. Each post has a connection of its own.
"""

import contextlib
import http.client
import socket
import threading
from collections.abc import Mapping
from typing import NamedTuple

_MOST_BYTES = 64 << 10  # of an answer; those that are asked for here are empty, or one sentence


class Said(NamedTuple):
    """The answer: its status, what of its body was read, and after how long it wants to be asked again."""

    status: int
    body: bytes
    retry_after: str = ""


def send(
    host: str, port: int, path: str, body: bytes, headers: Mapping[str, str], seconds: float, *, secure: bool = False
) -> Said:  # fmt: skip
    """Post ``body`` and read the answer, all of it within ``seconds``; raises OSError, HTTPException or ValueError.

    TimeoutError where there was no answer in time, also where one came byte by byte.
    """
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(host, port, timeout=seconds)
    late = threading.Event()
    try:
        connection.connect()
        # The time-out is of one packet: what drips would otherwise never end.
        watch = threading.Timer(seconds, _cut, (connection.sock, late))
        watch.daemon = True
        watch.start()
        try:
            connection.request("POST", path, body, {"User-Agent": "gyrostat", "Connection": "close", **headers})
            answer = connection.getresponse()
            return Said(answer.status, answer.read(_MOST_BYTES), answer.getheader("Retry-After") or "")
        finally:
            watch.cancel()
    except (OSError, http.client.HTTPException, ValueError):
        if late.is_set():
            raise TimeoutError(f"no answer in {seconds:g} s") from None
        raise
    finally:
        connection.close()


def _cut(sock: socket.socket, late: threading.Event) -> None:
    late.set()
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
