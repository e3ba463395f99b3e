"""One post: what a server answers, or does not, is a sentence; nothing of it holds anybody up or leads elsewhere."""

import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from alertmanager_runs import Server, free_port, serving

from gyrostat_agent.alertpush.post import Answer, post
from gyrostat_agent.alertpush.target import target

BODY = b'[{"labels": {"alertname": "A"}}]'


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that takes all."""
    with serving() as made:
        yield made


def posted(server: Server, token: str = "", seconds: float = 5.0) -> Answer:
    return post(target(server.url), BODY, token, seconds)


def test_it_is_taken(server: Server) -> None:
    """JSON at the API's own address, with the token in its header."""
    assert posted(server, "abc") == Answer()
    (seen,) = server.seen
    assert seen.path == "/api/v2/alerts" and seen.said == [{"labels": {"alertname": "A"}}]
    assert seen.headers["Authorization"] == "Bearer abc" and seen.headers["Content-Type"] == "application/json"


def test_without_a_token_there_is_no_header(server: Server) -> None:
    """None that is empty either."""
    posted(server)
    assert "Authorization" not in server.seen[0].headers


@pytest.mark.parametrize(
    "status, body, said, for_good",
    [
        (400, b'"invalid label set"', "status 400: invalid label set", True),
        (422, b'{"message": "bad\\u001b[31m"}', "status 422: bad?[31m", True),
        (401, b"", "it wants a token", False),
        (403, b"secret", "it wants a token", False),
        (404, b"<html>", "status 404", False),
        (429, b"", "status 429", False),
        (500, b"[" * 5000, "status 500", False),
        (503, b'"%s"' % (b"x" * 5000), "status 503: " + "x" * 200, False),
    ],
)
def test_what_it_answers_is_said(server: Server, status: int, body: bytes, said: str, for_good: bool) -> None:
    """In few words that command no terminal; only what it will refuse again is not tried again."""
    server.status, server.body = status, body
    answer = posted(server)
    assert said in answer.fault and len(answer.fault) < 300 and answer.for_good is for_good


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(server: Server, status: int) -> None:
    """Whoever is there would be told the token."""
    with serving() as other:
        server.status, server.headers = status, {"Location": f"{other.url}/api/v2/alerts"}
        assert "not followed" in posted(server, "abc").fault
        assert other.seen == []


def test_a_proxy_of_the_environment_is_not_used(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is meant for the outside, and would be told the token."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    assert posted(server) == Answer()


def test_an_answer_without_end_is_not_read_to_it(server: Server) -> None:
    """64 KiB are looked at."""
    server.headers, server.body = {"Content-Length": str(1 << 40)}, b"x" * (1 << 20)
    began = time.monotonic()
    assert posted(server) == Answer() and time.monotonic() - began < 4.0


def test_an_answer_that_drips_ends_in_time(server: Server) -> None:
    """A byte now and then is within the time-out of a packet for ever."""
    server.slow.set()
    began = time.monotonic()
    assert posted(server, seconds=0.4).fault == "no answer in 0.4 s"
    assert time.monotonic() - began < 4.0


def test_nobody_there() -> None:
    """Nothing listens, and a name that is none."""
    assert post(target(f"http://127.0.0.1:{free_port()}"), BODY, "", 5.0).fault == "Connection refused"
    assert "no such machine" in post(target("http://no.invalid"), BODY, "", 5.0).fault


def test_something_else_answers(server: Server) -> None:
    """TLS where there is none."""
    assert "TLS" in post(target(server.url.replace("http:", "https:")), BODY, "abc", 5.0).fault
    assert server.seen == []


def test_a_certificate_that_nobody_trusts_gets_no_token(server: Server, tmp_path: Path) -> None:
    """A machine in between that signs for itself."""
    program = which("openssl")
    if program is None:
        pytest.skip("openssl is not on PATH: no certificate can be made")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    subprocess.run([program, *words, "-keyout", key, "-out", cert], check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.secure(context)
    fault = post(target(server.url.replace("http:", "https:")), BODY, "abc", 5.0).fault
    assert "no TLS that can be trusted" in fault and server.seen == []
