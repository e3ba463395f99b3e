"""The cluster in memory behind a port, for the real client: HTTP as an API server speaks it, and what breaks in it.

``broken`` is asked before each request: "" for none, "reset", "half" an answer, "hang" until the server is closed.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from clusters import Cluster

from gyrostat_agent.kubernetes.refusals import KubernetesError
from gyrostat_agent.kubernetes.request import Ref, Request

VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}
TOKEN = "a-token"


class Served:
    """One port. ``heard`` are the requests' lines and headers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.token = cluster, TOKEN
        self.broken: Callable[[str], str] = lambda line: ""
        self.heard: list[tuple[str, dict[str, str]]] = []
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _speaking(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def kubeconfig(self, folder: Path) -> str:
        """A file that leads here."""
        one = {"name": "t", "cluster": {"server": self.url}}
        user = {"name": "t", "user": {"token": TOKEN}}
        told = {
            "apiVersion": "v1", "kind": "Config", "clusters": [one], "users": [user], "current-context": "t",
            "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}],
        }  # fmt: skip
        path = folder / "kubeconfig"
        path.write_text(json.dumps(told))
        return str(path)

    def close(self) -> None:
        """End it."""
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def serving(cluster: Cluster) -> Iterator[Served]:
    """A cluster behind a port, for as long as it is needed."""
    served = Served(cluster)
    try:
        yield served
    finally:
        served.close()


def request_of(method: str, target: str, body: bytes) -> Request:
    """What a line of HTTP asks for."""
    parts = urlsplit(target)
    pieces = [unquote(p) for p in parts.path.strip("/").split("/")]
    api, rest = (pieces[1], pieces[2:]) if pieces[0] == "api" else ("/".join(pieces[1:3]), pieces[3:])
    namespace, rest = (rest[1], rest[2:]) if rest[0] == "namespaces" and len(rest) > 2 else ("", rest)
    plural, name, part = (*rest, "", "")[:3]
    verb = VERBS.get(method) or ("get" if name else "list")
    return Request(verb, Ref(api, plural, name, namespace, part), json.loads(body) if body else None,
                   tuple(parse_qsl(parts.query)))  # fmt: skip


def _speaking(served: Served) -> type[BaseHTTPRequestHandler]:
    class Speaking(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            served.heard.append((self.requestline, dict(self.headers)))
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            word = served.broken(self.requestline)
            if word == "hang":
                served.ended.wait()
            if word in ("reset", "hang"):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            status, data, headers = self._asked(body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if word == "half" else data)
            self.close_connection = word == "half"

        def _asked(self, body: bytes) -> tuple[int, bytes, Any]:
            if self.headers.get("Authorization") != f"Bearer {served.token}":
                return 401, b'{"message": "Unauthorized"}', {}
            try:
                with served.lock:
                    found = served.cluster.ask(request_of(self.command, self.path, body))
                return 200, json.dumps(found).encode(), {}
            except KubernetesError as error:
                return error.answer  # type: ignore[attr-defined, no-any-return]

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer

        def log_message(self, *told: Any) -> None:
            """Not on stderr."""

    return Speaking
