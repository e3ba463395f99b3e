"""What goes wrong on the way is told in a sentence that says what to do, without a secret."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from obstore.store import S3Store

from gyrostat_agent.archive.errors import StoreError
from gyrostat_agent.archive.store import Store, create, opened, put, read, sizes
from gyrostat_agent.errors import SetupError

Run = Callable[..., Result]
SECRETS = ("AKIDTOTELL", "nobody-may-see-this")


class Refusing(BaseHTTPRequestHandler):
    """Answers everything with one status and one code of S3's."""

    answer = (500, "InternalError")

    def _refuse(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        status, code = self.answer
        body = f"<Error><Code>{code}</Code><AWSAccessKeyId>AKIDTOTELL</AWSAccessKeyId></Error>".encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_DELETE = _refuse

    def log_message(self, format: str, *words: Any) -> None:
        """Says nothing."""


@pytest.fixture
def refusing(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store that refuses in the way that the test is given."""
    kind = type("Answer", (Refusing,), {"answer": request.param})
    server = HTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield client(f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    thread.join()
    server.server_close()


def client(endpoint: str) -> Store:
    """A store at an endpoint, asked once."""
    made = S3Store(
        "b", endpoint=endpoint, access_key_id=SECRETS[0], secret_access_key=SECRETS[1], region="us-east-1",
        client_options={"allow_http": True}, retry_config={"max_retries": 0},
    )  # fmt: skip
    return Store("s3://b", made)


@pytest.mark.parametrize(
    ("refusing", "told"),
    [
        pytest.param((403, "AccessDenied"), "lack the right", id="no right"),
        pytest.param((403, "RequestTimeTooSkewed"), "clock is too far from the store's", id="clock"),
        pytest.param((403, "InvalidAccessKeyId"), "credentials are refused", id="key"),
        pytest.param((400, "ExpiredToken"), "credentials are refused", id="expired"),
        pytest.param((404, "NoSuchBucket"), "there is no bucket of that name", id="no bucket"),
        pytest.param((400, "AuthorizationHeaderMalformed"), "set AWS_REGION", id="region"),
        pytest.param((503, "SlowDown"), "too busy", id="busy"),
        pytest.param((507, "XMinioStorageFull"), "the store is full", id="full"),
        pytest.param((501, "NotImplemented"), "lacks a conditional create", id="no conditional create"),
        pytest.param((418, "Teapot"), "it answered Teapot", id="unheard of"),
    ],
    indirect=["refusing"],
)
def test_a_refusal_is_told_in_words(refusing: Store, told: str) -> None:
    """Written or read: where, what, why and what to do; the store's own text, which may hold a key, is not shown."""
    asks: list[Callable[[], object]] = [
        lambda: put(refusing, "a", b"1"), lambda: create(refusing, "a", b"1"), lambda: read(refusing, "a", 9),
        lambda: list(sizes(refusing, "a")),
    ]  # fmt: skip
    for ask in asks:
        with pytest.raises(StoreError) as error:
            ask()
        text = str(error.value)
        assert text.startswith("s3://b: ") and told in text and "\n" not in text
        assert not any(secret in text for secret in SECRETS)


def test_no_network_is_told_in_words() -> None:
    """A port that nobody listens on."""
    with pytest.raises(StoreError, match="it does not answer; see network, proxy and AWS_ENDPOINT_URL"):
        put(client("http://127.0.0.1:1"), "a", b"1")


def test_a_bucket_that_is_not_there_is_told_by_the_commands(bucket: Any, saved: Path, run: Run, tmp_path: Path) -> None:
    """By each of them, with status 1, and without a secret."""
    for words in (
        ("archive", saved, "--to", "s3://no-such-bucket-here/x"),
        ("restore", "s3://no-such-bucket-here/x", "--into", tmp_path / "back"),
        ("archives", "s3://no-such-bucket-here/x"),
    ):
        error = run(*words).exception
        assert isinstance(error, StoreError) and error.status == 1
        assert "there is no bucket of that name" in str(error) and SECRETS[1] not in str(error)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        pytest.param("s3://key:sesame@bucket/x", "holds no user", id="user"),
        pytest.param("s3://bucket/x?sig=sesame", "holds no user", id="query"),
        pytest.param("az://account/x#sesame", "holds no user", id="fragment"),
        pytest.param("https://sesame@bucket/x?sesame", "no object storage; write it as", id="scheme"),
        pytest.param("bucket/x", "no object storage; write it as", id="none"),
        pytest.param("s3://", "write it as", id="no bucket"),
        pytest.param("s3://b/a//b", "write it as", id="empty name"),
    ],
)
def test_a_url_that_is_none_is_refused_and_not_repeated(url: str, told: str) -> None:
    """What may be a secret in it is not shown."""
    with pytest.raises(SetupError) as error:
        opened(url)
    assert told in str(error.value) and "sesame" not in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(("--tag", "a b"), "--tag: 'a b' is no tag", id="tag"),
        pytest.param(("--bandwidth", "fast"), "--bandwidth fast", id="bandwidth"),
        pytest.param(("--storage-class", "cold\n"), "--storage-class", id="class"),
    ],
)
def test_what_cannot_be_used_is_said_with_status_2(words: tuple[str, ...], told: str, saved: Path, run: Run) -> None:
    """Before anything is asked of the store."""
    error = run("archive", saved, "--to", "s3://nowhere/x", *words).exception
    assert isinstance(error, SetupError) and error.status == 2 and told in str(error)


def test_a_folder_that_is_not_there_is_said_with_status_2(tmp_path: Path, run: Run) -> None:
    """And a disk has no storage classes."""
    error = run("archive", tmp_path / "none", "--to", f"file://{tmp_path}/shared").exception
    assert isinstance(error, SetupError) and "there is no such folder" in str(error)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "x").write_bytes(b"1")
    cold = run("archive", tmp_path / "one", "--to", f"file://{tmp_path}/shared", "--storage-class", "GLACIER")
    assert "this store has no storage classes" in str(cold.exception)
