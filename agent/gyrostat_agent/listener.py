"""Listener: a small HTTP server's socket and its connections: a thread each, and so many at most.

Below the page that people and Prometheus read, and below what trainers post to. The agent needs its descriptors for the
run: where too many connections are open, the oldest goes, for it is the one that does not finish.
"""

import contextlib
import math
import socket
import socketserver
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Listener(socketserver.ThreadingMixIn, HTTPServer):
    """Listens at host and port, by IPv6 where the host is written so; raises OSError.

    ``most`` may be open at once, each for ``longest`` seconds: for ever where whoever asks keeps its connection.
    """

    daemon_threads = True
    block_on_close = False  # a client that hangs must not hold up our end
    request_queue_size = 128
    most = 32
    longest = math.inf

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: dict[Any, float] = {}  # since when, oldest first
        self._host = address[0]
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    @property
    def address(self) -> str:
        """Host and port, as people write them."""
        return f"[{self._host}]:{self.server_port}" if ":" in self._host else f"{self._host}:{self.server_port}"

    def server_bind(self) -> None:
        """Bind, without asking the resolver for this machine's name: that may take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self._host, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve it, in place of the oldest where there are too many."""
        for old in list(self._open)[: max(0, len(self._open) + 1 - self.most)]:
            self._cut(old)
        self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Between two looks: end what has been open for too long, for a byte now and then is in time for ever."""
        super().service_actions()
        if self.longest < math.inf:
            end = time.monotonic() - self.longest
            for old in [request for request, since in list(self._open.items()) if since < end]:
                self._cut(old)

    def _cut(self, request: Any) -> None:
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)
        self._open.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        """It is served."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is not news, and a stack trace a line of it would fill the log."""
