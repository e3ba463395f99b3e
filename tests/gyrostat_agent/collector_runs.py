"""A collector for tests: takes OTLP over HTTP as a real one does, decodes it, and fails as it is told."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

REQUESTS: dict[str, Any] = {
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/traces": ExportTraceServiceRequest,
}


class Post(NamedTuple):
    """One that was taken: its path, headers and what it says."""

    path: str
    headers: dict[str, str]
    said: Any


class Collector:
    """Keeps what is posted to it; a body that is no OTLP is answered 400. ``refuse`` fails one path, '' for all."""

    def __init__(self, port: int = 0) -> None:
        self.posts: list[Post] = []
        self.tried: list[str] = []
        self.failing: dict[str, int] = {}
        self.headers: dict[str, str] = {}
        self.body = b""
        self.largest = 1 << 30
        self.go_on = threading.Event()
        self.go_on.set()
        outer = self

        class Receiver(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.tried.append(self.path)
                outer.go_on.wait(30)
                status, answer = outer.take(self.path, dict(self.headers), body)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(answer)), **outer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                """Posts are no news."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Receiver)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer."""
        if path not in REQUESTS:
            return 404, b""
        if len(body) > self.largest:
            return 413, b""
        if status := self.failing.get(path, self.failing.get("", 0)):
            return status, self.body
        if headers.get("Content-Type") != "application/x-protobuf":
            return 415, b""
        self.posts.append(Post(path, headers, REQUESTS[path].FromString(body)))
        return 200, self.body

    def secure(self, context: ssl.SSLContext) -> None:
        """Speak TLS from here on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def close(self) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()

    # -- what it was told -----------------------------------------------------------------------------

    def metrics(self) -> list[Metric]:
        """Of all exports, oldest first."""
        return [
            m for p in self._of("/v1/metrics") for r in p.said.resource_metrics for s in r.scope_metrics
            for m in s.metrics
        ]  # fmt: skip

    def records(self) -> list[LogRecord]:
        return [
            x for p in self._of("/v1/logs") for r in p.said.resource_logs for s in r.scope_logs for x in s.log_records
        ]

    def spans(self) -> list[Span]:
        return [
            x for p in self._of("/v1/traces") for r in p.said.resource_spans for s in r.scope_spans for x in s.spans
        ]

    def origins(self) -> set[tuple[str, Any]]:
        """All attributes of all resources."""
        posts = list(self.posts)
        each = [r for p in posts for field in p.said.ListFields() for r in field[1]]
        return {pair for r in each for pair in said(r.resource.attributes).items()}

    def _of(self, path: str) -> list[Post]:
        return [post for post in list(self.posts) if post.path == path]


def said(attributes: Any) -> dict[str, Any]:
    """Attributes as a dict."""
    return {one.key: plain(one.value) for one in attributes if isinstance(one, KeyValue)}


def plain(value: AnyValue) -> Any:
    return getattr(value, value.WhichOneof("value") or "string_value")


def named(spans: list[Span]) -> dict[str, Span]:
    """By name; each once."""
    assert len({s.name for s in spans}) == len(spans), [s.name for s in spans]
    return {span.name: span for span in spans}


@contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    collector = Collector(port)
    try:
        yield collector
    finally:
        collector.close()
