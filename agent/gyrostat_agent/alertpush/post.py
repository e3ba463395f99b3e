"""One post to an Alertmanager: no proxy, no redirect, a bounded answer, an end to it whatever the other side does."""

import contextlib
import http.client
import json
import socket
import ssl
import threading
from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.alertpush.target import Target

_MOST_BYTES = 64 << 10  # of an answer; an Alertmanager's own are empty, or one sentence
_SAID = 200
_FOR_GOOD = (400, 413, 422)  # it will say so again to the same alerts


class Answer(NamedTuple):
    """What came of it: ``fault`` '' where it took them; ``for_good`` where to send the same again is of no use."""

    fault: str = ""
    for_good: bool = False


def post(target: Target, body: bytes, token: str, seconds: float) -> Answer:
    """Send ``body`` within ``seconds``. Raises nothing: what went wrong is in the answer, in words."""
    kind = http.client.HTTPSConnection if target.secure else http.client.HTTPConnection
    connection = kind(target.host, target.port, timeout=seconds)
    headers = {"Content-Type": "application/json", "User-Agent": "gyrostat", "Connection": "close"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    late = threading.Event()
    try:
        connection.connect()
        # The time-out is of one packet: what drips would otherwise never end.
        watch = threading.Timer(seconds, _cut, (connection.sock, late))
        watch.daemon = True
        watch.start()
        try:
            connection.request("POST", target.path, body, headers)
            answer = connection.getresponse()
            return _read(answer.status, answer.read(_MOST_BYTES))
        finally:
            watch.cancel()
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Answer(f"no answer in {seconds:g} s" if late.is_set() else _trouble(error, seconds))
    finally:
        connection.close()


def _cut(sock: socket.socket, late: threading.Event) -> None:
    late.set()
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _read(status: int, body: bytes) -> Answer:
    if 200 <= status < 300:
        return Answer()
    if 300 <= status < 400:
        return Answer(f"status {status}: it points elsewhere, and is not followed there; give the address itself")
    if status in (401, 403):
        return Answer(f"status {status}: it wants a token, or another one: --alertmanager-token-file")
    said = _words(body)
    return Answer(f"status {status}{': ' if said else ''}{said}", status in _FOR_GOOD)


def _words(body: bytes) -> str:
    """What it says, as an Alertmanager says it: a JSON string, or an object with a message."""
    try:
        said = json.loads(body.decode("utf-8"))
        text = said.get("message", "") if isinstance(said, dict) else said
    except (ValueError, RecursionError):
        return ""
    return clean(text)[:_SAID] if isinstance(text, str) else ""


def _trouble(error: Exception, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer in {seconds:g} s"
    if isinstance(error, socket.gaierror):
        return f"there is no such machine: {error.strerror}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS that can be trusted: {clean(str(error.reason or error))[:_SAID]}"
    if isinstance(error, http.client.HTTPException):
        return f"what answers there is no Alertmanager: {type(error).__name__}"
    return clean(str(getattr(error, "strerror", None) or error))[:_SAID]
