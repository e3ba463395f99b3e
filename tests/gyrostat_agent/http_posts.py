"""Posting to a server as exporters do, and as nobody should."""

import http.client
import json
import socket
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).parent / "sources" / "data"


class Said(NamedTuple):
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> str:
        """The line that says why."""
        return str(json.loads(self.body)["error"])


def post(
    address: str, path: str, body: bytes, kind: str = "application/json", method: str = "POST", **headers: str
) -> Said:
    """Post a body; header names with underscores for hyphens. One that is empty is not sent."""
    sent = {"Content-Type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request(method, path, body, {name: value for name, value in sent.items() if value})
        answer = connection.getresponse()
        return Said(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def raw(address: str, request: bytes) -> bytes:
    """What comes back for these bytes, until the server closes."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


def loads(path: str) -> Any:
    """A JSON file of the data folder."""
    return json.loads((DATA / path).read_text())
