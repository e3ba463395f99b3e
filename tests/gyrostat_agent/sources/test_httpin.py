"""The server that trainers post to: bounded, quick to answer, and believed only where it may be."""

import gzip
import http.client
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest
from http_posts import post, raw

from gyrostat_agent.errors import SetupError
from gyrostat_agent.sources.httpin import Answer, HttpIn, Limits

HEAD = b"POST /in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
PACKED = [gzip.compress(b"x" * size, mtime=0) for size in (900, 9999)]  # a time would be in the names of tests


class Route:
    """Keeps what it was given."""

    def __init__(self) -> None:
        self.taken: list[tuple[bytes, str]] = []

    def __call__(self, body: bytes, kind: str) -> Answer:
        self.taken.append((body, kind))
        if body == b"raise":
            raise RuntimeError("a fault of ours")
        return Answer(200, b'{"ok": true}')


@pytest.fixture
def route() -> Route:
    """A route."""
    return Route()


@pytest.fixture
def serve(route: Route) -> Iterator[Callable[..., HttpIn]]:
    """Serves the route at /in; closed at the end."""
    servers: list[HttpIn] = []

    def start(listen: str = "127.0.0.1:0", limits: Limits = Limits(), token_file: str = "") -> HttpIn:  # noqa: B008
        servers.append(HttpIn(listen, {"/in": route, "/other": route}, token_file=token_file, limits=limits))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def test_a_post_reaches_its_route(serve: Callable[..., HttpIn], route: Route) -> None:
    """With its body and its type, bare of parameters."""
    server = serve()
    said = post(server.address, "/in?x=1", b"{}", "Application/JSON; charset=utf-8")
    assert (said.status, said.body, said.headers["content-type"]) == (200, b'{"ok": true}', "application/json")
    assert route.taken == [(b"{}", "application/json")] and server.refused == 0


def test_a_connection_is_kept(serve: Callable[..., HttpIn], route: Route) -> None:
    """An exporter posts over and over on one; each answer comes at once, head and body together."""
    connection = http.client.HTTPConnection(serve().address, timeout=10)
    took = []
    for number in range(20):
        began = time.monotonic()
        connection.request("POST", "/in", str(number).encode(), {"Content-Type": "application/json"})
        assert connection.getresponse().read() == b'{"ok": true}'
        took.append(time.monotonic() - began)
    assert median(took) < 0.03, took  # 40 ms where packets wait for each other; a busy machine delays a few of them
    connection.close()
    assert [body for body, _ in route.taken] == [str(number).encode() for number in range(20)]


@pytest.mark.parametrize(
    ("how", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes), ("GZIP", gzip.compress)]
)
def test_packed_bodies(serve: Callable[..., HttpIn], route: Route, how: str, pack: Callable[[bytes], bytes]) -> None:
    """As exporters and collectors pack them."""
    assert post(serve().address, "/in", pack(b"x" * 1000), Content_Encoding=how).status == 200
    assert route.taken[0][0] == b"x" * 1000


@pytest.mark.parametrize(
    ("status", "line", "path", "body", "method", "headers"),
    [
        (404, "post to one of: /in, /other", "/", b"{}", "POST", {}),
        (405, "post here", "/in", b"", "GET", {}),
        (405, "post here", "/in", b"", "DELETE", {}),
        (405, "post here", "/in", b"", "OPTIONS", {}),
        (413, "has 2000 bytes; 1000 is the most", "/in", b"x" * 2000, "POST", {}),
        (413, "more than 1000 bytes once", "/in", PACKED[1], "POST", {"Content_Encoding": "gzip"}),
        (413, "has 99999999999999999999 bytes", "/in", b"", "POST", {"Content_Length": "9" * 30}),
        (411, "Content-Length", "/in", b"", "POST", {"Content_Length": "-1"}),
        (411, "Content-Length", "/in", b"", "POST", {"Content_Length": "1_0"}),
        (400, "not packed as gzip", "/in", b"plain", "POST", {"Content_Encoding": "gzip"}),
        (400, "cut short", "/in", PACKED[0][:-12], "POST", {"Content_Encoding": "gzip"}),
        (415, "packed as 'br'", "/in", b"x", "POST", {"Content_Encoding": "br"}),
        (415, "say what it is", "/in", b"{}", "POST", {"kind": "text/plain"}),
        (415, "say what it is", "/in", b"{}", "POST", {"kind": ""}),
        (415, "say what it is", "/in", b"{}", "POST", {"kind": "application/x-www-form-urlencoded"}),
        (415, "say what it is", "/in", b"{}", "POST", {"kind": "multipart/form-data; boundary=x"}),
        (403, "by address", "/in", b"{}", "POST", {"Host": "evil.example:4318"}),
    ],
)  # fmt: skip
def test_what_is_refused(
    serve: Callable[..., HttpIn], route: Route, status: int, line: str, path: str, body: bytes, method: str,
    headers: dict[str, str],
) -> None:  # fmt: skip
    """One line says why; no route sees it; the server goes on."""
    server = serve(limits=Limits(body=1000))
    said = post(server.address, path, body, method=method, **headers)
    assert said.status == status and line in said.error and server.refused == 1
    assert route.taken == []
    assert post(server.address, "/in", b"{}").status == 200


def test_a_body_too_large_is_answered_all_the_same(serve: Callable[..., HttpIn]) -> None:
    """Whoever sends it reads the answer, and not a connection that was reset."""
    assert post(serve(limits=Limits(body=1000)).address, "/in", b"x" * 900_000).status == 413


@pytest.mark.parametrize(
    "request_",
    [
        b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"POST /in HTTP/9.9\r\n\r\n", b"BREW /in HTTP/1.1\r\n\r\n",
        b"x" * 70_000 + b"\r\n", b"POST /in HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"POST /in HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ids=["binary", "half", "version", "method", "long", "headers", "chunked"],
)  # fmt: skip
def test_what_is_no_request(serve: Callable[..., HttpIn], route: Route, request_: bytes) -> None:
    """It is answered, or the connection ends; the server goes on."""
    server = serve()
    answer = raw(server.address, request_)
    assert b"Traceback" not in answer and (not answer or b'{"error"' in answer)
    assert post(server.address, "/in", b"{}").status == 200 and len(route.taken) == 1


def test_whoever_asks_first_is_told_to_go_on(serve: Callable[..., HttpIn], route: Route) -> None:
    """Without the second that curl waits for that."""
    host, _, port = serve().address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(HEAD + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")
        connection.sendall(b"{}")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    assert len(route.taken) == 1


@pytest.mark.parametrize("sent", [HEAD + b"Content-Length: 9\r\n\r\n{", HEAD], ids=["body", "head"])
def test_a_request_that_never_ends_is_ended(serve: Callable[..., HttpIn], route: Route, sent: bytes) -> None:
    """After the time that a request has; nothing of it is believed."""
    began = time.monotonic()
    answer = raw(serve(limits=Limits(seconds=0.2)).address, sent)
    assert time.monotonic() - began < 8.0 and (not answer or b"408" in answer)
    assert route.taken == []


def test_a_body_that_drips_has_its_time_as_a_whole(serve: Callable[..., HttpIn], route: Route) -> None:
    """A byte now and then keeps no thread for ever."""
    host, _, port = serve(limits=Limits(seconds=0.5)).address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=0.1) as connection:
        connection.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
        until = time.monotonic() + 10.0
        answer = b""
        while not answer and time.monotonic() < until:
            try:
                connection.sendall(b"x")
                answer = connection.recv(1000)
            except TimeoutError:
                continue
        assert b"408" in answer
    assert route.taken == []


def test_too_many_posts_are_put_off(serve: Callable[..., HttpIn], route: Route) -> None:
    """429 and when to come again; a while later posts are taken."""
    server = serve(limits=Limits(per_second=20.0, burst=3))
    said = [post(server.address, "/in", b"{}") for _ in range(6)]
    assert [s.status for s in said[:3]] == [200] * 3
    late = next(s for s in said if s.status == 429)
    assert late.headers["retry-after"] == "1" and "20 posts a second" in late.error
    until = time.monotonic() + 10.0
    while post(server.address, "/in", b"{}").status != 200:
        assert time.monotonic() < until


def test_many_connections_push_out_the_oldest(serve: Callable[..., HttpIn], route: Route) -> None:
    """Clients that hang neither keep others out nor use up the agent's descriptors."""
    server = serve(limits=Limits(connections=4))
    host, _, port = server.address.rpartition(":")
    lazy = [socket.create_connection((host, int(port)), timeout=10) for _ in range(12)]
    assert post(server.address, "/in", b"{}").status == 200
    assert lazy[0].recv(10) == b""  # ended
    for connection in lazy:
        connection.close()


def test_a_fault_of_a_route_is_one_line(serve: Callable[..., HttpIn]) -> None:
    """No stack trace to anybody; the next post is taken."""
    server = serve()
    said = post(server.address, "/in", b"raise")
    assert said.status == 500 and said.error == "this post could not be read: RuntimeError"
    assert post(server.address, "/in", b"{}").status == 200 and server.refused == 1


@pytest.mark.parametrize(
    ("given", "status"),
    [("Bearer s3cret", 200), ("Bearer other", 401), ("", 401), ("s3cret", 401), ("Bearer s3cretx", 401)],
)
def test_a_token_is_asked_for(
    serve: Callable[..., HttpIn], route: Route, tmp_path: Path, given: str, status: int
) -> None:
    """Only who has it is believed."""
    (tmp_path / "token").write_text("s3cret\n")
    server = serve(token_file=str(tmp_path / "token"))
    assert post(server.address, "/in", b"{}", Authorization=given).status == status
    assert len(route.taken) == (status == 200)


def test_a_token_may_be_changed_while_it_runs(serve: Callable[..., HttpIn], tmp_path: Path) -> None:
    """Clusters do; one that has gone lets nobody in, and says why."""
    token = tmp_path / "token"
    token.write_text("one")
    server = serve(token_file=str(token))
    token.write_text("two")
    assert post(server.address, "/in", b"{}", Authorization="Bearer one").status == 401
    assert post(server.address, "/in", b"{}", Authorization="Bearer two").status == 200
    token.unlink()
    said = post(server.address, "/in", b"{}", Authorization="Bearer two")
    assert said.status == 503 and "No such file" in said.error


@pytest.mark.parametrize(
    ("listen", "token", "match"),
    [
        ("here", None, "write HOST:PORT, e.g. 127.0.0.1:4318"),
        ("127.0.0.1:70000", None, "write HOST:PORT"),
        ("127.0.0.1:²", None, "write HOST:PORT"),
        ("192.0.2.1:0", "x", r"192\.0\.2\.1:0: "),
        ("0.0.0.0:0", None, "other machines reach that; give a token file"),
        ("127.0.0.1:0", "", "must hold a token"),
        ("127.0.0.1:0", "x" * 20_000, "must hold a token"),
    ],
)
def test_what_cannot_be_set_up(
    serve: Callable[..., HttpIn], tmp_path: Path, listen: str, token: str | None, match: str
) -> None:
    """Says what is wrong and what to do."""
    file = tmp_path / "token"
    if token is not None:
        file.write_text(token)
    with pytest.raises(SetupError, match=match):
        serve(listen, token_file="" if token is None else str(file))


def test_a_token_file_that_is_not_there(serve: Callable[..., HttpIn], tmp_path: Path) -> None:
    """Is said at once, not at the first post."""
    with pytest.raises(SetupError, match="No such file"):
        serve(token_file=str(tmp_path / "none"))


def test_a_port_that_is_taken(serve: Callable[..., HttpIn]) -> None:
    """Says so."""
    with pytest.raises(SetupError, match="in use; give another address"):
        serve(serve().address)


def test_other_machines_with_a_token(serve: Callable[..., HttpIn], tmp_path: Path) -> None:
    """Then any name will do: it is the token that is believed."""
    (tmp_path / "token").write_text("t")
    server = serve("0.0.0.0:0", token_file=str(tmp_path / "token"))
    address = server.address.replace("0.0.0.0", "127.0.0.1")
    assert post(address, "/in", b"{}", Authorization="Bearer t", Host="node-7:4318").status == 200


def test_by_ipv6(serve: Callable[..., HttpIn]) -> None:
    """Where the machine has it."""
    try:
        server = serve("[::1]:0")
    except SetupError as error:
        pytest.skip(f"no IPv6 here: {error}")
    assert post(server.address, "/in", b"{}").status == 200


def test_posts_at_once(serve: Callable[..., HttpIn], route: Route) -> None:
    """Several trainers: none is lost."""
    server = serve(limits=Limits(burst=1000))
    bodies = [json.dumps(number).encode() for number in range(40)]
    threads = [threading.Thread(target=post, args=(server.address, "/in", body)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(body for body, _ in route.taken) == sorted(bodies)
