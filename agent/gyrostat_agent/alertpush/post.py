"""One post to an Alertmanager, and what its answer means."""

import http.client
import json
import socket
import ssl
from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent import onepost
from gyrostat_agent.alertpush.target import Target

_SAID = 200
_FOR_GOOD = (400, 413, 422)  # it will say so again to the same alerts


class Answer(NamedTuple):
    """What came of it: ``fault`` '' where it took them; ``for_good`` where to send the same again is of no use."""

    fault: str = ""
    for_good: bool = False


def post(target: Target, body: bytes, token: str, seconds: float) -> Answer:
    """Send ``body`` within ``seconds``. Raises nothing: what went wrong is in the answer, in words."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        said = onepost.send(target.host, target.port, target.path, body, headers, seconds, secure=target.secure)
        return _read(said.status, said.body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Answer(_trouble(error, seconds))


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
