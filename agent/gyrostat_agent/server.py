"""The agent's HTTP page: /healthz, /readyz, /metrics. Reading only; loopback unless told otherwise.

A thread of its own, that sees nothing but the newest view: it can neither slow the loop nor change anything.
"""

import json
import threading
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from gyrostat_agent.address import is_loopback, is_number, split
from gyrostat_agent.errors import SetupError
from gyrostat_agent.listener import Listener
from gyrostat_exporters.metrics import Latest, RunCollector

DEFAULT = "127.0.0.1:9466"
_Start = Callable[[str, list[tuple[str, str]]], Any]


class Server:
    """Serves until the process ends. ``alive`` says why the loop is stuck, or ''."""

    def __init__(self, listen: str, latest: Latest, alive: Callable[[], str]) -> None:
        host, port = split(listen, "--listen", DEFAULT)
        registry = CollectorRegistry()
        registry.register(RunCollector(latest))
        app = _pages(make_wsgi_app(registry), latest, alive, local=is_loopback(host))
        try:
            self._server = make_server(host, port, app, server_class=_Pages, handler_class=_Silent)
        except OSError as error:
            raise SetupError(f"--listen {listen}: {error.strerror}; give another address, e.g. 127.0.0.1:0") from None
        self.address = self._server.address
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


def _pages(metrics: Any, latest: Latest, alive: Callable[[], str], *, local: bool) -> Any:
    def app(environ: dict[str, Any], start: _Start) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return _answer(start, "405 Method Not Allowed", {"error": "this page is for reading"})
        if local and not is_number(environ.get("HTTP_HOST", "")):
            return _answer(start, "403 Forbidden", {"error": "ask for it by address: a name may be anybody's"})
        if path == "/metrics":
            found: Iterable[bytes] = metrics(environ, start)
            return found
        if path == "/healthz":
            stuck = alive()
            return _answer(
                start, "503 Service Unavailable" if stuck else "200 OK", {"healthy": not stuck, "why": stuck}
            )
        if path == "/readyz":
            view = latest()
            blind = ["the first pass is not over yet"] if view is None else list(view.blind)
            return _answer(
                start, "503 Service Unavailable" if blind else "200 OK", {"ready": not blind, "blind": blind}
            )
        return _answer(start, "404 Not Found", {"pages": ["/healthz", "/readyz", "/metrics"]})

    return app


def _answer(start: _Start, status: str, said: dict[str, Any]) -> list[bytes]:
    body = (json.dumps(said) + "\n").encode()
    start(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


class _Pages(Listener, WSGIServer):
    def server_bind(self) -> None:
        """Bind, and set up what each page is told."""
        super().server_bind()
        self.setup_environ()


class _Silent(WSGIRequestHandler):
    timeout = 10  # a client that never finishes its request holds a thread, not the agent

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are not news."""
