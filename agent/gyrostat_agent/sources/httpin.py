"""HttpIn: one small HTTP server for what trainers post. OTLP and Kubeflow's callback are routes of it.

Threads of its own, that see nothing but the routes; none of them can slow the loop. Whoever posts is answered at once,
since some trainers wait for the answer, and everything is bounded: a body, its time, posts a second, connections. At
loopback unless told otherwise, and anywhere else only with a token: what is posted here is believed.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from gyrostat_agent import bearer
from gyrostat_agent.address import is_loopback, is_number, split
from gyrostat_agent.allowance import Allowance
from gyrostat_agent.errors import SetupError
from gyrostat_agent.exchange import JSON, Answer, Bounded, Exchange, Refusal, line
from gyrostat_agent.sources.packed import PackedError, unpack

__all__ = ["DEFAULT", "JSON", "LIMITS", "Answer", "HttpIn", "Limits", "Route"]

DEFAULT = "127.0.0.1:4318"
# A web page may post these anywhere; before any other type a browser asks the server, and is told no.
_UNASKED = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
_LOOK_SECONDS = 0.1  # how long ``close`` may wait


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
    ``option`` is what the address was given by. Raises SetupError where it or the token file cannot be used.
    """

    def __init__(
        self, listen: str, routes: Mapping[str, Route], *, token_file: str = "", limits: Limits = LIMITS,
        option: str = "--receive",
    ) -> None:  # fmt: skip
        host, port = split(listen, option, DEFAULT)
        if token_file:
            try:
                _token(token_file)
            except (OSError, ValueError) as error:
                raise SetupError(f"the token file cannot be used: {error}") from None
        elif not is_loopback(host):
            raise SetupError(f"{option} {listen}: other machines reach that; give a token file, or use {DEFAULT}")
        try:
            self._server = _Server((host, port), dict(routes), token_file, limits)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise SetupError(f"{option} {listen}: {why}; give another address, e.g. 127.0.0.1:0") from None
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


class _Server(Bounded):
    def __init__(self, address: tuple[str, int], routes: Mapping[str, Route], token_file: str, limits: Limits) -> None:
        self.routes, self.token_file, self.limits = routes, token_file, limits
        self.local = is_loopback(address[0])
        self.posts = Allowance(limits.per_second, limits.burst)
        self.most = limits.connections
        super().__init__(address, _Post, limits.body, limits.seconds)


class _Post(Exchange):
    server: _Server

    def do_POST(self) -> None:
        """Hand the body to its route; whatever is wrong is one line and a status."""
        try:
            route = self._route()
            body = self._unpacked(self.body())
        except Refusal as refusal:
            self.refuse(refusal.status, str(refusal))
            return
        try:
            answer = route(body, self.headers.get_content_type().lower())
        except Exception as error:  # the last net: a route's fault must neither end the thread nor go uncounted
            answer = Answer(500, line("error", f"this post could not be read: {type(error).__name__}"))
        self.say(answer)

    def _other(self) -> None:
        self.refuse(405, "post here; there is nothing to read")

    do_GET = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = _other

    def _route(self) -> Route:
        server = self.server
        if server.local and not is_number(self.headers.get("Host", "")):
            raise Refusal(403, "ask for it by address: a name may be anybody's")
        route = server.routes.get(self.path.partition("?")[0])
        if route is None:
            raise Refusal(404, f"post to one of: {', '.join(sorted(server.routes))}")
        if server.token_file:
            self._check_token(server.token_file)
        if self.headers.get_content_type() in _UNASKED:  # text/plain too where nothing is said
            raise Refusal(415, "say what it is in Content-Type: application/json or application/x-protobuf")
        if not server.posts.take():
            raise Refusal(429, f"more than {server.limits.per_second:g} posts a second; try again in a second")
        return route

    def _check_token(self, path: str) -> None:
        try:
            token = _token(path)
        except (OSError, ValueError) as error:
            raise Refusal(503, f"the token file cannot be used: {error}") from None
        if not bearer.bears(self.headers, token):
            raise Refusal(401, "the bearer token is missing or another one")

    def _unpacked(self, body: bytes) -> bytes:
        how = self.headers.get("Content-Encoding", "identity").strip().lower()
        try:
            return unpack(body, how, self.server.limits.body)
        except PackedError as error:
            raise Refusal(error.status, str(error)) from None


def _token(path: str) -> bytes:
    """Read each time. Not ours alone: where a trainer posts, the platform may have laid the token."""
    with Path(path).open("rb") as file:
        return bearer.only(file.read(bearer.MOST_BYTES + 1), path)
