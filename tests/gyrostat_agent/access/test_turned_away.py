"""Words over HTTP that are turned away: without the token, from web pages, by names, in the wrong form."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_runs import Bench
from http_posts import raw
from word_runs import Speaking, listening

from gyrostat_agent.access.words import WORDS
from gyrostat_agent.access.wordserver import LIMITS, STATUS, WordServer
from gyrostat_agent.errors import SetupError

PAUSE = "/v1/words/pause"


@pytest.fixture
def server(bench: Bench) -> Iterator[Speaking]:
    """A server that no agent stands behind: whatever passes it lies there."""
    with listening(bench) as made:
        yield made


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic {0}",
        "{0}",
        "Bearer {0}x",
        "bearer  {0}",
        "Bearer {1}",
        "Bearer \xff",
    ],
)
def test_without_the_token_nothing_is_said(server: Speaking, authorization: str) -> None:
    """The same line for a missing one and a wrong one, whatever the page; a prefix is no token; nothing lies there."""
    shown = authorization.format(server.token, server.token[:-1])
    for method, path in (("POST", PAUSE), ("GET", STATUS), ("POST", "/nowhere"), ("PUT", PAUSE)):
        said = server.ask(path, method=method, token="", Authorization=shown)
        assert said.status == 401 and said.error == "the bearer token is missing or another one"
    assert not server.lying()


def test_two_tokens_are_none(server: Speaking) -> None:
    """A proxy may have looked at the other one."""
    head = f"POST {PAUSE} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    right = f"Authorization: Bearer {server.token}\r\n"
    assert b" 401 " in raw(server.server.address, f"{head}{right}Authorization: Bearer x\r\n\r\n{{}}".encode())[:20]
    assert not server.lying()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9467", "127.0.0.1.evil.example", "localhost.evil.example:80", "gyro", "x:1"]
)
def test_a_name_that_was_resolved_to_us_is_turned_away(server: Speaking, host: str) -> None:
    """DNS rebinding: the browser thinks that it talks to the page's own server. Before the token is looked at."""
    for path, method in ((PAUSE, "POST"), (STATUS, "GET")):
        assert server.ask(path, method=method, Host=host).status == 403
    assert not server.lying()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:1", "localhost:9467", "[::1]:9467", "GYRO.lan:8443", "gyro.lan"]
)
def test_addresses_and_given_names_are_let_in(bench: Bench, host: str) -> None:
    """Those that --control-name lists, in whatever case and with whatever port: a proxy may have another."""
    with listening(bench, LIMITS._replace(patience=0.01), names=["gyro.lan"]) as server:
        assert server.ask(PAUSE, Host=host).status == 202


def test_without_a_host_or_with_two_it_is_turned_away(server: Speaking) -> None:
    """HTTP/1.0 has none; of two nobody knows which was checked elsewhere."""
    rest = f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    for hosts in ("", "Host: 127.0.0.1\r\nHost: evil.example\r\n"):
        assert b" 403 " in raw(server.server.address, f"POST {PAUSE} HTTP/1.1\r\n{hosts}{rest}".encode())[:20]
    assert not server.lying()


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9467"])
def test_no_web_page_may_speak(server: Speaking, origin: str) -> None:
    """Not even with the token; no answer has a header that would let a page read it, a preflight neither."""
    for method, path in (("POST", PAUSE), ("GET", STATUS), ("OPTIONS", PAUSE)):
        said = server.ask(path, method=method, Origin=origin)
        assert said.status == 403 and not [name for name in said.headers if name.startswith("access-control")]
    assert not server.lying()


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx"],
)
def test_a_form_of_a_web_page_is_no_word(server: Speaking, kind: str) -> None:
    """These a page may send without asking; with the token as little, for a browser could have been given it."""
    assert server.ask(PAUSE, Content_Type=kind).status == 415
    assert server.ask(PAUSE, b"by=x", token="", Content_Type=kind).status == 401
    assert not server.lying()


@pytest.mark.parametrize(
    "verb", ["trust", "rollback", "tag", "arm", "disarm", "configure", "ledger", "distrust", "", "pause/", "../pause",
             "PAUSE", "pause?x=1", "pause%00"],
)  # fmt: skip
def test_other_words_stay_at_the_machine(server: Speaking, verb: str) -> None:
    """404, and those that there are."""
    said = server.ask(f"/v1/words/{verb}", b'{"reason": "x"}')
    assert said.status == 404 and all(known in said.error for known in WORDS) and not server.lying()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_a_word_is_posted(server: Speaking, method: str) -> None:
    """What a browser may fetch by itself changes nothing."""
    assert server.ask(PAUSE, b"", method).status in (404, 405) and not server.lying()


@pytest.mark.parametrize(
    "body",
    [b"", b"pause", b"[]", b"null", b'{"by": 1}', b'{"by": null}', b'{"by": {}}', b'{"action": "i1", "to": "2"}',
     b"\xff{}", b"{" * 60000, b"[" * 60000, b'{"by": "' + b"x" * 2001 + b'"}', b'{"action": ""}', b"{}"],
    ids=["empty", "word", "list", "null", "number", "null value", "object", "more", "bytes", "braces", "deep", "long",
         "no id", "nothing"],
)  # fmt: skip
def test_what_is_no_word_is_said(server: Speaking, body: bytes) -> None:
    """400 and one line; nothing lies there."""
    said = server.ask("/v1/words/approve", body)
    assert said.status == 400 and "\n" not in said.error and not server.lying()


def test_a_body_has_a_size(server: Speaking) -> None:
    """64 KiB, and it must be said."""
    assert server.ask(PAUSE, b" " * (64 << 10) + b"{}").status == 413
    head = f"POST {PAUSE} HTTP/1.1\r\nHost: [::1]\r\nAuthorization: Bearer {server.token}\r\n"
    head += "Content-Type: application/json\r\n"
    for length in ("", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "Content-Length: -2\r\n"):
        assert b" 411 " in raw(server.server.address, f"{head}{length}\r\n{{}}".encode())[:20]
    assert not server.lying()


def test_nothing_can_be_smuggled_in_behind(server: Speaking) -> None:
    """One request a connection, that is well answered too."""
    shown = Path(server.bench.run.agent, "status.json")
    shown.write_text("{}")
    shown.chmod(0o600)
    one = f"GET {STATUS} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    assert raw(server.server.address, 3 * one.encode()).count(b"HTTP/1.1 200 ") == 1


@pytest.mark.parametrize("name", ["", "*", "gyro.lan:8443", "http://gyro.lan", "*.lan", "a b", "gyro.lan."])
def test_a_name_that_nobody_can_ask_by_is_refused(bench: Bench, name: str) -> None:
    """It would look as if it were let in."""
    with pytest.raises(SetupError, match="--control-name"):
        WordServer("127.0.0.1:0", bench.run, print, names=[name])
