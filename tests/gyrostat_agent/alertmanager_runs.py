"""Alertmanagers for tests: a real one where there is one, and a server with the same words that fails as it is told."""

import json
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import pytest

DEADLINE = 30.0
CONFIGURATION = """
route: {{receiver: hook, group_by: [run, incident], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}
receivers:
  - name: hook
    webhook_configs: [{{url: "http://127.0.0.1:{port}/hook", send_resolved: true}}]
"""


class Seen(NamedTuple):
    """One request: path, headers and what its JSON says."""

    path: str
    headers: dict[str, str]
    said: Any


class Server:
    """Keeps what is posted to it. ``answer`` says how: a status, with headers and a body, after ``seconds``."""

    def __init__(self, port: int = 0) -> None:
        self.seen: list[Seen] = []
        self.status, self.headers, self.body = 200, {}, b""  # type: tuple[int, dict[str, str], bytes]
        self.slow = threading.Event()
        outer = self

        class Post(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.seen.append(Seen(self.path, dict(self.headers), json.loads(body)))
                if outer.slow.is_set():
                    self._drip()
                    return
                self.send_response(outer.status)
                for name, value in {"Content-Length": str(len(outer.body)), **outer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(outer.body)

            def _drip(self) -> None:
                """A byte now and then, which no time-out of a packet ever ends."""
                try:
                    while outer.slow.is_set():
                        self.wfile.write(b"H")
                        time.sleep(0.02)
                except OSError:
                    pass

            def log_message(self, format: str, *args: Any) -> None:
                """Posts are no news."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Post)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def alerts(self) -> list[dict[str, Any]]:
        """All alerts of all posts, oldest first."""
        return [alert for seen in list(self.seen) for alert in seen.said]

    def secure(self, context: ssl.SSLContext) -> None:
        """Speak TLS from here on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def close(self) -> None:
        self.slow.clear()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(port: int = 0) -> Iterator[Server]:
    server = Server(port)
    try:
        yield server
    finally:
        server.close()


def free_port() -> int:
    """A port where nobody listens now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def until(condition: Callable[[], Any], what: str, seconds: float = DEADLINE) -> Any:
    """The first true answer of ``condition``; fails after ``seconds``."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s in vain: {what}"
        time.sleep(0.01)
    return answer


def program(name: str) -> str:
    """The real program's path; skips with the reason where there is none."""
    given = os.environ.get("GYROSTAT_ALERTMANAGER", "")
    folder = given if os.path.isdir(given) else os.path.dirname(given)
    names = ("prometheus-alertmanager", "alertmanager") if name == "alertmanager" else (name,)
    places = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}" if folder else None
    found = next((path for each in names if (path := which(each, path=places))), None)
    if found is None:
        pytest.skip(
            f"{name} is neither on PATH nor in GYROSTAT_ALERTMANAGER; Debian: apt-get install prometheus-alertmanager"
        )
    return found


class Alertmanager:
    """A real one, that tells a server of ours."""

    def __init__(self, url: str, hook: Server) -> None:
        self.url, self.hook = url, hook

    def alerts(self) -> list[dict[str, Any]]:
        """What it says of the alerts that it holds."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def notified(self, status: str) -> list[dict[str, Any]]:
        """Alerts of that status in what it told."""
        return [alert for seen in list(self.hook.seen) for alert in seen.said["alerts"] if alert["status"] == status]

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def alertmanager(folder: Path) -> Iterator[Alertmanager]:
    """A real Alertmanager on loopback, whose receiver is a server of ours."""
    path = program("alertmanager")
    with serving() as hook:
        (folder / "am.yaml").write_text(CONFIGURATION.format(port=hook.port))
        port = free_port()
        words = [f"--config.file={folder}/am.yaml", f"--storage.path={folder}/am", "--cluster.listen-address="]
        with (folder / "am.log").open("wb") as log:
            process = subprocess.Popen([path, *words, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            made = Alertmanager(f"http://127.0.0.1:{port}", hook)
            until(lambda: made.ready() or process.poll() is not None, "Alertmanager never became ready")
            assert process.poll() is None, (folder / "am.log").read_text()
            yield made
        finally:
            process.terminate()
            process.wait(20)
