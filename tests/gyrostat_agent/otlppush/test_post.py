"""One post: an answer, or none, is a sentence and what to do next; nothing of it holds anybody up or leads away."""

import email.utils
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from alertmanager_runs import free_port
from collector_runs import Collector, collecting
from entry_runs import mended

from gyrostat_agent.otlppush.post import Answer, Word, post
from gyrostat_agent.otlppush.target import target
from gyrostat_exporters.otlp.logs import Line, logs

BODY = logs("r", [Line(one) for one in mended()])


@pytest.fixture
def collector() -> Iterator[Collector]:
    """One that takes all."""
    with collecting() as made:
        yield made


def posted(collector: Collector, body: bytes = BODY, seconds: float = 5.0) -> Answer:
    return post(target(collector.url), "logs", body, {"X-Token": "t"}, seconds)


def test_it_is_taken(collector: Collector) -> None:
    """As it is, for not all read what is packed, with the headers that were given."""
    assert posted(collector) == Answer(Word.TAKEN)
    (seen,) = collector.posts
    assert "Content-Encoding" not in seen.headers and seen.headers["X-Token"] == "t"
    assert len(collector.records()) == len(mended())


@pytest.mark.parametrize(
    "status, word",
    [
        (400, Word.FOR_GOOD), (401, Word.WAIT), (403, Word.WAIT), (404, Word.WAIT), (408, Word.WAIT),
        (413, Word.TOO_LARGE), (415, Word.FOR_GOOD), (418, Word.UNSURE), (429, Word.WAIT), (500, Word.UNSURE),
        (502, Word.WAIT), (503, Word.WAIT), (504, Word.WAIT), (302, Word.WAIT), (307, Word.WAIT),
    ],
)  # fmt: skip
def test_what_to_do_next(collector: Collector, status: int, word: Word) -> None:
    """What is over by itself, or what an operator can mend, waits; what would be refused again does not."""
    collector.failing[""] = status
    answer = posted(collector)
    assert answer.word == word and f"status {status}" in answer.fault


def test_a_redirect_is_not_followed(collector: Collector) -> None:
    """Whoever is there would be told the token."""
    with collecting() as other:
        collector.failing[""], collector.headers = 307, {"Location": f"{other.url}/v1/logs"}
        assert "not followed" in posted(collector).fault and other.tried == []


@pytest.mark.parametrize(
    "said, least, most",
    [("7", 7, 7), ("86400", 300, 300), ("nan", 0, 0), ("-1", 0, 0), ("soon", 0, 0), ("inf", 0, 0)],
)
def test_it_says_how_long_to_wait(collector: Collector, said: str, least: float, most: float) -> None:
    """In seconds, within reason."""
    collector.failing[""], collector.headers = 503, {"Retry-After": said}
    assert least <= posted(collector).after <= most


def test_it_says_until_when_to_wait(collector: Collector) -> None:
    """As a date."""
    collector.failing[""], collector.headers = (
        429,
        {"Retry-After": email.utils.formatdate(time.time() + 60, usegmt=True)},
    )
    assert 50 < posted(collector).after <= 60


@pytest.mark.parametrize(
    "body, said",
    [
        (b"\x08\x03\x12\x07too old", "status 400: too old"),
        (b"<b>no</b>\x1b[31m", "status 400: <b>no</b>?[31m"),
        (b"", "status 400"),
        (b"\x12\xff", "status 400"),
        (b"\xff" * 9000, "status 400: "),
    ],
)
def test_its_words_are_told_in_few(collector: Collector, body: bytes, said: str) -> None:
    """A Status of its own, or text; nothing of it commands a terminal."""
    collector.failing[""], collector.body = 400, body
    fault = posted(collector).fault
    assert fault.startswith(said) and fault.isprintable() and len(fault) < 300


def test_nobody_there_and_one_that_hangs(collector: Collector) -> None:
    """Both end in time, and wait."""
    assert post(target(f"http://127.0.0.1:{free_port()}"), "logs", BODY, {}, 5.0).word == Word.WAIT
    collector.go_on.clear()
    began = time.monotonic()
    assert posted(collector, seconds=0.3) == Answer(Word.WAIT, "no answer in 0.3 s")
    assert time.monotonic() - began < 4.0


def test_tls_with_a_certificate_that_is_trusted(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the system, or by who sets SSL_CERT_FILE; by nobody: it is told nothing."""
    program = which("openssl")
    if program is None:
        pytest.skip("openssl is not on PATH: no certificate can be made")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=c"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([program, *words], check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    collector.secure(context)
    there = target(collector.url.replace("http:", "https:"))
    assert "no TLS that can be trusted" in post(there, "logs", BODY, {}, 5.0).fault and collector.posts == []
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    assert post(there, "logs", BODY, {}, 5.0) == Answer(Word.TAKEN)


def test_something_else_answers(collector: Collector) -> None:
    """TLS where there is none."""
    secure = target(collector.url.replace("http:", "https:"))
    assert "TLS" in post(secure, "logs", BODY, {}, 5.0).fault and collector.posts == []
