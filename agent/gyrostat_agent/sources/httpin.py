"""HttpIn: one small HTTP server for what trainers post. OTLP and Kubeflow's callback are routes of it.

Threads of its own, that see nothing but the routes; none of them can slow the loop. Whoever posts is answered at once,
since some trainers wait for the answer, and everything is bounded: a body, its time, posts a second, connections. At
loopback unless told otherwise, and anywhere else only with a token: what is posted here is believed.
Not promised: TLS; chunked bodies, which no exporter for Python sends.
"""

import contextlib
import hmac
import http.server
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from gyrostat.wire.fields import clean
from gyrostat_agent.address import is_loopback, is_number, split
from gyrostat_agent.errors import SetupError
from gyrostat_agent.listener import Listener
from gyrostat_agent.sources.packed import PackedError, unpack

DEFAULT = "127.0.0.1:4318"
JSON = "application/json"
_CHUNK = 1 << 16
_DRAIN_BYTES, _DRAIN_SECONDS = 1 << 20, 0.5
_TOKEN_BYTES = 16 << 10
# A web page may post these anywhere; before any other type a browser asks the server, and is told no.
_UNASKED = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
_LOOK_SECONDS = 0.1  # how long ``close`` may wait
_NAMED = 400  # characters of a request's own words that are said again


class Answer(NamedTuple):
    """What a route says to a post. ``kind`` is the body's content type."""

    status: int
    body: bytes = b"{}"
    kind: str = JSON


Route: TypeAlias = Callable[[bytes, str], Answer]  # the body, unpacked, and its content type in small letters


class Limits(NamedTuple):
    """What one server bears.

    ``body``: bytes of a post, packed and unpacked; the largest of a trainer with 47,000 points has 2.4 MB.
    ``per_second`` and ``burst``: posts; a trainer posts once in 5 s. ``connections``: open at once, the oldest goes
    first. ``seconds``: until a request must be here.
    """

    body: int = 8 << 20
    per_second: float = 50.0
    burst: int = 200
    connections: int = 32
    seconds: float = 10.0


LIMITS = Limits()


class HttpIn:
    """Serves ``routes`` (path -> route) until it is closed. ``address`` is where it listens, host and port.

    ``token_file`` holds what must follow "Bearer" in every post; it is read each time, so it may be changed.
    Raises SetupError where the address or the token file cannot be used.
    """

    def __init__(
        self, listen: str, routes: Mapping[str, Route], *, token_file: str = "", limits: Limits = LIMITS
    ) -> None:
        host, port = split(listen, "--receive", DEFAULT)
        if token_file:
            try:
                _token(token_file)
            except (OSError, ValueError) as error:
                raise SetupError(f"the token file cannot be used: {error}") from None
        elif not is_loopback(host):
            raise SetupError(f"--receive {listen}: other machines reach that; give a token file, or use {DEFAULT}")
        try:
            self._server = _Server((host, port), dict(routes), token_file, limits)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise SetupError(f"--receive {listen}: {why}; give another address, e.g. 127.0.0.1:0") from None
        self.address = self._server.address
        threading.Thread(target=self._server.serve_forever, args=(_LOOK_SECONDS,), name="http-in", daemon=True).start()

    @property
    def refused(self) -> int:
        """Requests that no route has seen, or that one did not take."""
        return self._server.refused

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


class _Refusal(Exception):
    """A request that is answered before any route sees it."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status


class _Server(Listener):
    def __init__(self, address: tuple[str, int], routes: Mapping[str, Route], token_file: str, limits: Limits) -> None:
        self.routes, self.token_file, self.limits = routes, token_file, limits
        self.local = is_loopback(address[0])
        self.refused = 0
        self.lock = threading.Lock()
        self._left, self._filled = float(limits.burst), time.monotonic()
        self.most = limits.connections
        super().__init__(address, _Post)

    def may_post(self) -> bool:
        """Whether one more post fits the rate."""
        with self.lock:
            now = time.monotonic()
            self._left = min(self.limits.burst, self._left + (now - self._filled) * self.limits.per_second)
            self._filled = now
            if self._left < 1.0:
                return False
            self._left -= 1.0
            return True


class _Post(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # exporters keep their connection
    server_version, sys_version = "gyrostat", ""
    wbufsize = -1  # head and body in one packet: two of them wait 40 ms for each other
    server: _Server

    def setup(self) -> None:
        """A client that never finishes its request holds a thread for so long, not the agent."""
        super().setup()
        self.connection.settimeout(self.server.limits.seconds)

    def do_POST(self) -> None:
        """Hand the body to its route; whatever is wrong is one line and a status."""
        try:
            route = self._route()
            body = self._unpacked(self._body())
        except _Refusal as refusal:
            self._refuse(refusal.status, str(refusal))
            return
        try:
            answer = route(body, self.headers.get_content_type().lower())
        except Exception as error:  # the last net: a route's fault must neither end the thread nor go uncounted
            answer = Answer(500, _line(f"this post could not be read: {type(error).__name__}"))
        if answer.status >= 400:
            self._count()
        self._say(answer)

    def handle_expect_100(self) -> bool:
        """Say at once that the body may come: whoever asks first would wait a second for it."""
        go_on = super().handle_expect_100()
        self.wfile.flush()
        return go_on

    def _other(self) -> None:
        self._refuse(405, "post here; there is nothing to read")

    do_GET = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = _other

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no HTTP is told in the same form."""
        self._refuse(code, message or explain or "this is no request")

    def log_message(self, format: str, *args: Any) -> None:
        """Posts are not news."""

    def _route(self) -> Route:
        server = self.server
        if server.local and not is_number(self.headers.get("Host", "")):
            raise _Refusal(403, "ask for it by address: a name may be anybody's")
        route = server.routes.get(self.path.partition("?")[0])
        if route is None:
            raise _Refusal(404, f"post to one of: {', '.join(sorted(server.routes))}")
        if server.token_file:
            self._check_token(server.token_file)
        if self.headers.get_content_type() in _UNASKED:  # text/plain too where nothing is said
            raise _Refusal(415, "say what it is in Content-Type: application/json or application/x-protobuf")
        if not server.may_post():
            raise _Refusal(429, f"more than {server.limits.per_second:g} posts a second; try again in a second")
        return route

    def _check_token(self, path: str) -> None:
        try:
            wanted = b"Bearer " + _token(path)
        except (OSError, ValueError) as error:
            raise _Refusal(503, f"the token file cannot be used: {error}") from None
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode("utf-8", "replace"), wanted):
            raise _Refusal(401, "the bearer token is missing or another one")

    def _body(self) -> bytes:
        said, most = self.headers.get("Content-Length", ""), self.server.limits.body
        if not (said.isascii() and said.isdigit()):
            raise _Refusal(411, "say how long the body is in Content-Length; it must come in one piece")
        if len(said) > 12 or int(said) > most:
            raise _Refusal(413, f"this body has {said[:20]} bytes; {most} is the most")
        until, parts, left = time.monotonic() + self.server.limits.seconds, [], int(said)
        while left:
            try:
                part = self.rfile.read1(min(left, _CHUNK))
            except OSError:
                part = b""
            if not part or time.monotonic() > until:
                raise _Refusal(408, "the body did not come in time")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _unpacked(self, body: bytes) -> bytes:
        how = self.headers.get("Content-Encoding", "identity").strip().lower()
        try:
            return unpack(body, how, self.server.limits.body)
        except PackedError as error:
            raise _Refusal(error.status, str(error)) from None

    def _say(self, answer: Answer) -> None:
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

    def _refuse(self, status: int, line: str) -> None:
        """Say why, and let the connection go: its body has not been read, and is thrown away so that ours arrives."""
        self._count()
        self.close_connection = True
        self._say(Answer(status, _line(line)))
        until, left = time.monotonic() + _DRAIN_SECONDS, _DRAIN_BYTES
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_DRAIN_SECONDS)
            while left > 0 and time.monotonic() < until and (part := self.connection.recv(_CHUNK)):
                left -= len(part)

    def _count(self) -> None:
        with self.server.lock:
            self.server.refused += 1


def _line(text: str) -> bytes:
    return json.dumps({"error": clean(text)[: 2 * _NAMED]}).encode() + b"\n"


def _token(path: str) -> bytes:
    with open(path, "rb") as file:
        token = file.read(_TOKEN_BYTES + 1).strip()
    if not token or len(token) > _TOKEN_BYTES:
        raise ValueError(f"{path} must hold a token and nothing else, at most {_TOKEN_BYTES} bytes")
    return token
