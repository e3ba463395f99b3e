"""One post to a collector, and what its answer means: as OTLP/HTTP has it, and what an operator can mend waits.

Not by OpenTelemetry's own exporter: it takes a redirect for success, says nothing of what the collector answered, asks
again by itself while a thread waits, and has its headers from the start.
"""

import http.client
import math
import socket
import ssl
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent import onepost
from gyrostat_agent.otlppush.target import Target

_SAID = 200
_LONGEST_WAIT = 300.0  # seconds; whoever asks for more is asked again all the same
_FOR_GOOD = (400, 405, 411, 415, 422, 501)
_TOO_LARGE = 413
_WAITS = (401, 403, 404, 407, 408, 429, 502, 503, 504)


class Word(Enum):
    """What came of a post; UNSURE is tried again a few times and not for ever."""

    TAKEN, WAIT, UNSURE, TOO_LARGE, FOR_GOOD = range(5)


class Answer(NamedTuple):
    """``fault`` in words, '' where it was taken; ``after``: seconds that the collector asks to wait, 0 for none."""

    word: Word
    fault: str = ""
    after: float = 0.0
    body: bytes = b""


def post(target: Target, signal: str, body: bytes, headers: Mapping[str, str], seconds: float) -> Answer:
    """Send ``body`` to ``target`` within ``seconds``. Raises nothing: what went wrong is in the answer, in words."""
    said = {**headers, "Content-Type": "application/x-protobuf"}  # not packed: there are receivers that read no gzip
    path = f"{target.path}/v1/{signal}"
    try:
        found = onepost.send(target.host, target.port, path, body, said, seconds, secure=target.secure)
        return _read(found)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Answer(Word.WAIT, _trouble(error, seconds))


def _read(found: onepost.Said) -> Answer:
    status = found.status
    if 200 <= status < 300:
        return Answer(Word.TAKEN, body=found.body)
    if 300 <= status < 400:
        return Answer(Word.WAIT, f"status {status}: it points elsewhere, and is not followed there; give that address")
    if status in (401, 403):
        return Answer(Word.WAIT, f"status {status}: it wants a token, or another one: --otlp-headers-file")
    if status == 404:
        return Answer(Word.WAIT, "status 404: it does not take these there; give the address that /v1/... stands below")
    words = _words(found.body)
    fault = f"status {status}{': ' if words else ''}{words}"
    if status in _WAITS:
        return Answer(Word.WAIT, fault, _asked(found.retry_after))
    if status == _TOO_LARGE:
        return Answer(Word.TOO_LARGE, fault)
    return Answer(Word.FOR_GOOD if status in _FOR_GOOD else Word.UNSURE, fault)


def _asked(retry_after: str) -> float:
    """Seconds, from a number of them or a date."""
    try:
        wait = float(retry_after)
    except ValueError:
        try:
            wait = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return min(max(0.0, wait), _LONGEST_WAIT) if math.isfinite(wait) else 0.0


def _words(body: bytes) -> str:
    """What it says: text, or the message (field 2) of a google.rpc.Status. Nothing where it is neither."""
    if len(body) > 2 and body[:1] == b"\x08":  # field 1, the code, stands first
        body = body[2:]
    if len(body) > 2 and body[:1] == b"\x12":
        body = body[2 : 2 + body[1]] if body[1] < 0x80 else body[3:]
    return clean(body[: 4 * _SAID].decode("utf-8", "replace")).strip()[:_SAID]


def _trouble(error: Exception, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer in {seconds:g} s"
    if isinstance(error, socket.gaierror):
        return f"there is no such machine: {error.strerror}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS that can be trusted: {clean(str(error.reason or error))[:_SAID]}"
    if isinstance(error, http.client.HTTPException):
        return f"what answers there is no collector: {type(error).__name__}"
    return clean(str(getattr(error, "strerror", None) or error))[:_SAID]
