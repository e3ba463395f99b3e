"""OnDuty: who is told: a webhook that Alertmanager posts to, and the folder of runbooks that its alerts link to."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from gyrostat_agent.runbooks import runbooks

RUNBOOKS = "/runbooks"
_MOST = 4 << 20


class Notified(NamedTuple):
    """One alert of one notification: to which receiver, firing or resolved, its labels and what it says."""

    receiver: str
    status: str
    labels: dict[str, str]
    notes: dict[str, str]

    @property
    def name(self) -> str:
        """The alert's name."""
        return self.labels.get("alertname", "")


class OnDuty:
    """Listens at loopback; ``hear`` is called with each alert as it comes. Nothing that is posted is believed."""

    def __init__(self, hear: Callable[[Notified], None]) -> None:
        self.heard: list[Notified] = []
        outer, pages = self, {f"{RUNBOOKS}/{name}.md": page.text for name, page in runbooks().items()}

        class Page(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(min(int(self.headers.get("Content-Length", "0")), _MOST))
                self._answer(200, "")
                for alert in json.loads(body).get("alerts", []):
                    outer._take(self.path.strip("/"), alert, hear)

            def do_GET(self) -> None:
                text = pages.get(self.path.partition("#")[0])
                self._answer(404 if text is None else 200, text or "no such page")

            def _answer(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/markdown; charset=utf-8")
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: Any) -> None:
                """What is heard is said elsewhere."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def first(self, status: str, name: str = "") -> Notified | None:
        """The first alert that was told so: of an incident, or of this name."""
        found = (
            n for n in list(self.heard) if n.status == status and (n.name == name if name else "incident" in n.labels)
        )
        return next(found, None)

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()

    def _take(self, receiver: str, alert: dict[str, Any], hear: Callable[[Notified], None]) -> None:
        one = Notified(receiver, str(alert["status"]), dict(alert["labels"]), dict(alert["annotations"]))
        self.heard.append(one)
        hear(one)
