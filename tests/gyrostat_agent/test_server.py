"""The agent's pages: reading only, on loopback, whatever a client does."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from gyrostat_agent.errors import SetupError
from gyrostat_agent.server import Server
from gyrostat_exporters.metrics import Latest
from gyrostat_exporters.view import Tally, view
from gyrostat_rules.state import State


class Serving(NamedTuple):
    """A server, the view it shows, and why the loop is stuck, in a list of one."""

    server: Server
    latest: Latest
    stuck: list[str]

    def get(self, path: str, method: str = "GET") -> tuple[int, str]:
        request = urllib.request.Request(f"http://{self.server.address}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def json(self, path: str) -> tuple[int, dict[str, Any]]:
        status, body = self.get(path)
        return status, json.loads(body)


@pytest.fixture
def serving() -> Iterator[Serving]:
    """A server on a free port."""
    latest, stuck = Latest(), [""]
    server = Server("127.0.0.1:0", latest, lambda: stuck[0])
    yield Serving(server, latest, stuck)
    server.close()


def test_healthy_unless_the_loop_is_stuck(serving: Serving) -> None:
    """With the reason; Kubernetes restarts the agent on it."""
    assert serving.json("/healthz") == (200, {"healthy": True, "why": ""})
    serving.stuck[0] = "no pass for 40 s"
    assert serving.json("/healthz") == (503, {"healthy": False, "why": "no pass for 40 s"})


def test_ready_when_nothing_is_hidden(serving: Serving) -> None:
    """Not before the first pass, not while blind; the reasons are told."""
    assert serving.json("/readyz") == (503, {"ready": False, "blind": ["the first pass is not over yet"]})
    serving.latest.view = view(State(), Tally(), {}, ["trainer 0 has been silent for 130 s"])
    assert serving.json("/readyz") == (503, {"ready": False, "blind": ["trainer 0 has been silent for 130 s"]})
    serving.latest.view = view(State(), Tally(), {}, [])
    assert serving.json("/readyz") == (200, {"ready": True, "blind": []})


def test_metrics_are_prometheus_text(serving: Serving) -> None:
    """What a scrape wants."""
    serving.latest.view = view(State(run="läuft"), Tally(turns=3), {}, [])
    status, body = serving.get("/metrics")
    assert status == 200 and "gyrostat_turns_total 3.0" in body and 'run="läuft"' in body


@pytest.mark.parametrize("path", ["/", "/metric", "/healthz/../x", "//"])
def test_other_pages_name_those_there_are(serving: Serving, path: str) -> None:
    """404, and the list."""
    status, said = serving.json(path)
    assert status == 404 and said["pages"] == ["/healthz", "/readyz", "/metrics"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_changed_here(serving: Serving, method: str) -> None:
    """There is no order that could be given by HTTP."""
    assert serving.get("/metrics", method)[0] == 405


def test_a_client_that_hangs_holds_nobody_up(serving: Serving) -> None:
    """One that never ends its request keeps its own connection busy."""
    host, port = serving.server.address.split(":")
    with socket.create_connection((host, int(port))) as lazy:
        lazy.sendall(b"GET /heal")
        assert serving.get("/healthz")[0] == 200


@pytest.mark.parametrize("listen", ["here", "127.0.0.1:", ":9466", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1"])
def test_an_address_that_is_none(listen: str) -> None:
    """Says how to write one."""
    with pytest.raises(SetupError, match="write HOST:PORT"):
        Server(listen, Latest(), lambda: "")


def test_a_port_that_is_taken(serving: Serving) -> None:
    """Says so, and what to give instead."""
    with pytest.raises(SetupError, match=r"in use; give another address"):
        Server(serving.server.address, Latest(), lambda: "")


def test_an_address_of_another_machine() -> None:
    """Cannot be listened on."""
    with pytest.raises(SetupError, match=r"--listen 192\.0\.2\.1:0"):
        Server("192.0.2.1:0", Latest(), lambda: "")


def test_by_ipv6() -> None:
    """Written as people write it, and shown so."""
    try:
        server = Server("[::1]:0", Latest(), lambda: "")
    except SetupError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    with urllib.request.urlopen(f"http://{server.address}/healthz", timeout=10) as answer:
        assert server.address.startswith("[::1]:") and answer.status == 200
    server.close()
