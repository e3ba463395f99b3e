"""OtlpIn: the route of an HttpIn that OTLP exporters post to, and the rows that came in by it."""

import json
import threading
from collections.abc import Callable

from gyrostat_agent.sources.httpin import JSON, Answer
from gyrostat_agent.sources.logs.said import Told
from gyrostat_agent.sources.otlp import jsonform, protobuf
from gyrostat_agent.sources.otlp.rows import Rows
from gyrostat_agent.sources.postbox import PostBox
from gyrostat_agent.sources.protowire import varint

PATH = "/v1/metrics"  # where exporters post unless told otherwise
PROTOBUF = "application/x-protobuf"
_INVALID, _UNAVAILABLE = 3, 14  # codes of google.rpc.Status
_DECODERS = {JSON: jsonform.decode, PROTOBUF: protobuf.decode, "application/protobuf": protobuf.decode}


class OtlpIn:
    """``wake`` is called, from a server's thread, when there is something to drain.

    ``unread``: points of kinds that nobody reads, or of names beyond a thousand. ``nonsense``: posts that were no
    metrics request.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self._box = PostBox(wake)
        self._rows = Rows()
        self._lock = threading.Lock()
        self.unread = self.nonsense = 0

    def take(self, body: bytes, kind: str) -> Answer:
        """One post; 400 and a line where it is nonsense, 503 where the loop does not keep up."""
        decode = _DECODERS.get(kind)
        if decode is None:
            return _fault(415, _INVALID, f"this is {kind}; post {PROTOBUF} or {JSON}", JSON)
        try:
            exports = decode(body)
        except ValueError as error:
            self.nonsense += 1
            return _fault(400, _INVALID, str(error), kind)
        with self._lock:  # the rows must be put in the order in which they were made
            if self._box.full:
                return _fault(503, _UNAVAILABLE, "the agent does not keep up; post it again", kind)
            rows, unread = self._rows.of(exports)
            self._box.put(rows)
            self.unread += unread
        return _taken(unread, kind)

    def drain(self) -> list[Told]:
        """The rows since the last call."""
        return self._box.drain()


def _taken(unread: int, kind: str) -> Answer:
    why = "summaries, exponential histograms and names beyond a thousand are not read"
    if kind == JSON:
        said = {"partialSuccess": {"rejectedDataPoints": str(unread), "errorMessage": why}} if unread else {}
        return Answer(200, json.dumps(said).encode(), JSON)
    inner = b"\x08" + varint(unread) + b"\x12" + varint(len(why)) + why.encode()
    return Answer(200, b"\x0a" + varint(len(inner)) + inner if unread else b"", PROTOBUF)


def _fault(status: int, code: int, why: str, kind: str) -> Answer:
    """A google.rpc.Status, in the encoding of the request."""
    if kind == JSON:
        return Answer(status, json.dumps({"code": code, "message": why}).encode(), JSON)
    text = why.encode("utf-8", "replace")
    return Answer(status, b"\x08" + varint(code) + b"\x12" + varint(len(text)) + text, PROTOBUF)
