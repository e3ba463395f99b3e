"""Exchange: one request and its answer, for servers that take what others post: bounded in bytes and in time.

Below ``sources/httpin`` (what trainers post) and ``access/wordserver`` (what people say). Whatever is wrong is one line
and a status. Not promised: TLS; chunked bodies, which neither trainers nor our own client send.
"""

import contextlib
import http.server
import json
import socket
import threading
import time
from typing import Any, NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.listener import Listener

JSON = "application/json"
_CHUNK = 1 << 16
_DRAIN_BYTES, _DRAIN_SECONDS = 1 << 20, 0.5
_SHOWN = 800  # characters of a line: a request's own words are said again in it


class Answer(NamedTuple):
    """What is said to a request. ``kind`` is the body's content type."""

    status: int
    body: bytes = b"{}"
    kind: str = JSON


class Refusal(Exception):
    """A request that goes no further: its status, and why in one line."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status


class Bounded(Listener):
    """A listener whose requests have at most ``body_bytes`` bytes and ``seconds`` to be here; raises OSError."""

    def __init__(self, address: tuple[str, int], exchange: "type[Exchange]", body_bytes: int, seconds: float) -> None:
        self.body_bytes, self.seconds = body_bytes, seconds
        self.refused = 0
        self.lock = threading.Lock()
        super().__init__(address, exchange)

    def count(self, status: int) -> None:
        """One more that was answered with this status."""
        with self.lock:
            self.refused += status >= 400


class Exchange(http.server.BaseHTTPRequestHandler):
    """One connection. What it does with a request is its subclass's ``do_POST`` and ``do_GET``."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "gyrostat", ""
    wbufsize = -1  # head and body in one packet: two of them wait 40 ms for each other
    server: Bounded

    def setup(self) -> None:
        """A client that never finishes its request holds a thread for so long, not the agent."""
        super().setup()
        self.connection.settimeout(self.server.seconds)

    def handle_expect_100(self) -> bool:
        """Say at once that the body may come: whoever asks first would wait a second for it."""
        go_on = super().handle_expect_100()
        self.wfile.flush()
        return go_on

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no HTTP is told in the same form."""
        self.refuse(code, message or explain or "this is no request")

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not news."""

    def body(self) -> bytes:
        """All of the body; raises Refusal where it is too long, too slow, or does not say how long it is."""
        said, most = self.headers.get("Content-Length", ""), self.server.body_bytes
        if not (said.isascii() and said.isdigit()) or "Transfer-Encoding" in self.headers:
            raise Refusal(411, "say how long the body is in Content-Length; it must come in one piece")
        if len(said) > 12 or int(said) > most:
            raise Refusal(413, f"this body has {said[:20]} bytes; {most} is the most")
        until, parts, left = time.monotonic() + self.server.seconds, [], int(said)
        while left:
            try:
                part = self.rfile.read1(min(left, _CHUNK))
            except OSError:
                part = b""
            if not part or time.monotonic() > until:
                raise Refusal(408, "the body did not come in time")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def say(self, answer: Answer) -> None:
        """Answer, and count it."""
        self.server.count(answer.status)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        if answer.status in (429, 503):
            self.send_header("Retry-After", "1")
        if answer.status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def refuse(self, status: int, why: str) -> None:
        """Say why, and let the connection go: its body has not been read, and is thrown away so that ours arrives."""
        self.close_connection = True
        self.say(Answer(status, line("error", why)))
        until, left = time.monotonic() + _DRAIN_SECONDS, _DRAIN_BYTES
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_DRAIN_SECONDS)
            while left > 0 and time.monotonic() < until and (part := self.connection.recv(_CHUNK)):
                left -= len(part)


def line(key: str, text: str) -> bytes:
    """One sentence as a JSON body; what it repeats of a request commands no terminal."""
    return json.dumps({key: clean(text)[:_SHOWN]}).encode() + b"\n"
