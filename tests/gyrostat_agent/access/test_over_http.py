"""The command line to an agent elsewhere: the same words, the same answers, and errors that say what to do."""

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_runs import Bench
from cli_runs import Run, calling, one_line
from word_runs import Speaking, held_action, listening, speaking

from gyrostat_agent.access import client
from gyrostat_agent.server import Server
from gyrostat_exporters.metrics import Latest

AGENT, TOKEN_FILE, RUN_DIR = "GYROSTAT_AGENT", "GYROSTAT_TOKEN_FILE", "GYROSTAT_RUN_DIR"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    for name in (AGENT, TOKEN_FILE):
        monkeypatch.delenv(name, raising=False)
    return calling(monkeypatch, capsys)


@pytest.fixture
def spoken(bench: Bench) -> Iterator[Speaking]:
    """An agent that listens."""
    with speaking(bench) as made:
        yield made


def there(spoken: Speaking) -> tuple[str, ...]:
    """The options that lead to it."""
    return "--agent", f"http://{spoken.server.address}", "--token-file", spoken.server.token_file


def test_a_word_is_answered(cli: Run, spoken: Speaking) -> None:
    """As on the agent's machine, with where it came from and who said it."""
    assert cli("pause", *there(spoken)) == (0, "paused: nothing is done until resumed\n", "")
    assert cli("resume", *there(spoken)) == (0, "resumed\n", "")
    assert all(word.data["arguments"]["by"].startswith("http 127.0.0.1 (") for word in spoken.words())


def test_a_token_that_is_not_here_is_fetched_not_made(cli: Run, spoken: Speaking, tmp_path: Path) -> None:
    """One made on this machine would be none of the agent's: said where it is to be had."""
    none = str(tmp_path / "none")
    status, _, err = cli("pause", "--agent", f"http://{spoken.server.address}", "--token-file", none)
    assert status == 2 and "token rotate" not in err
    one_line(err, "copy it from the agent's machine")


def test_an_approval_and_its_refusal(cli: Run, spoken: Speaking) -> None:
    """Status 2 and the agent's sentence where no such action waits."""
    action = held_action(spoken)
    status, out, _ = cli("approve", action, *there(spoken))
    assert status == 0 and f"approved {action}" in out
    for verb in ("approve", "deny"):
        status, out, err = cli(verb, action, *there(spoken))
        assert (status, out) == (2, "")
        one_line(err, f"no action '{action}' waits for a word")


def test_a_silence_and_its_end(cli: Run, spoken: Speaking) -> None:
    """Matchers, times and all."""
    words = ("alert=EntropyLow", "rank=3", "--for", "2h", "--reason", "a known one")
    status, out, err = cli("silence", *words, *there(spoken))
    assert status == 0 and "s0001" in out, err
    assert spoken.words()[-1].data["arguments"]["matchers"] == "alert=EntropyLow\nrank=3"
    assert cli("unsilence", "s0001", *there(spoken))[0] == 0
    assert cli("unsilence", "s0001", *there(spoken))[0] == 2


def test_the_environment_says_where(cli: Run, spoken: Speaking, monkeypatch: pytest.MonkeyPatch) -> None:
    """GYROSTAT_AGENT and GYROSTAT_TOKEN_FILE; what is typed goes before them, and two that are set are one too many."""
    monkeypatch.setenv(AGENT, f"http://{spoken.server.address}")
    monkeypatch.setenv(TOKEN_FILE, spoken.server.token_file)
    assert cli("pause")[0] == 0 and len(spoken.words()) == 1
    assert cli("pause", spoken.bench.run.path)[0] == 0 and "http" not in spoken.words()[1].data["arguments"]["by"]
    monkeypatch.setenv(RUN_DIR, spoken.bench.run.path)
    status, _, err = cli("pause")
    assert status == 2
    one_line(err, AGENT, RUN_DIR)
    assert cli("pause", *there(spoken))[0] == 0 and len(spoken.words()) == 3


def test_two_that_are_typed_are_one_too_many(cli: Run, spoken: Speaking) -> None:
    """Nobody guesses which run is meant."""
    for words in (("pause",), ("silence", "alert=A", "--for", "1h", "--reason", "x")):
        status, _, err = cli(*words, spoken.bench.run.path, *there(spoken))
        assert status == 2 and not spoken.words()
        one_line(err, "both given")


@pytest.mark.parametrize("verb", ["trust", "status", "arm"])
def test_other_commands_have_no_such_option(cli: Run, verb: str) -> None:
    """Those are said at the agent's machine."""
    status, _, err = cli(verb, "--agent", "http://127.0.0.1:9467")
    assert status == 2 and "No such" in err


# -- what goes wrong --------------------------------------------------------------------------------------


def refused(cli: Run, url: str, token_file: str, *words: str) -> None:
    status, out, err = cli("pause", "--agent", url, *(("--token-file", token_file) if token_file else ()))
    assert (status, out) == (2, "")
    one_line(err, *words)


def test_nobody_listens(cli: Run, spoken: Speaking) -> None:
    """The connection is refused: is the agent started with --control?"""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    refused(cli, f"http://127.0.0.1:{port}", spoken.server.token_file, "nobody listens there", "--control")


def test_another_token(cli: Run, spoken: Speaking, tmp_path: Path) -> None:
    """Says which file was read here and how the right one is found there; shows neither token."""
    other = tmp_path / "其他.token"
    other.write_text("x" * 64)
    other.chmod(0o600)
    refused(cli, f"http://{spoken.server.address}", str(other), "another token", str(other), "gyrostat token path")
    assert not spoken.words()


def test_too_many_of_them(cli: Run, spoken: Speaking, tmp_path: Path) -> None:
    """Says that it is slowed down."""
    for n in range(5):
        spoken.ask("/v1/words/pause", token=f"{n:064d}")
    refused(cli, f"http://{spoken.server.address}", spoken.server.token_file, "too many wrong tokens")


def test_a_token_file_that_cannot_be_used(cli: Run, spoken: Speaking, tmp_path: Path) -> None:
    """Nothing is sent: none given, none there, one that others may read."""
    url = f"http://{spoken.server.address}"
    refused(cli, url, "", "--token-file", TOKEN_FILE)
    refused(cli, url, str(tmp_path / "none"), "no such token file")
    Path(spoken.server.token_file).chmod(0o644)
    refused(cli, url, spoken.server.token_file, "chmod 600")
    Path(spoken.server.token_file).chmod(0o600)
    assert not spoken.server.counts()


@pytest.mark.parametrize(
    "url", ["127.0.0.1:9467", "ftp://127.0.0.1", "http://", "http://h:x", "http://h:99999", "http://[x"]
)
def test_what_is_no_address(cli: Run, url: str) -> None:
    """Shows how one is written."""
    refused(cli, url, "", "write a URL, e.g. http://127.0.0.1:9467")


@pytest.mark.parametrize(
    "url", ["http://{}@127.0.0.1:1", "http://u:{}@h", "http://h/?token={}", "http://h/#{}", "x://{}@h"]
)
def test_a_token_in_a_url_is_refused_and_not_repeated(cli: Run, url: str) -> None:
    """Not in the error either."""
    status, _, err = cli("pause", "--agent", url.format("5ecre7" * 6))
    assert status == 2 and "5ecre7" not in err
    one_line(err, "--token-file")


def test_the_page_for_reading(cli: Run, spoken: Speaking) -> None:
    """The other port of the agent: said."""
    page = Server("127.0.0.1:0", Latest(), lambda: "")
    refused(cli, f"http://{page.address}", spoken.server.token_file, "page for reading", "--control")
    page.close()


class _Other(http.server.BaseHTTPRequestHandler):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    def do_POST(self) -> None:
        self.server.asked.append((self.path, dict(self.headers)))  # type: ignore[attr-defined]
        self.wfile.write(self.answer)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], http.server.HTTPServer]]:
    """A server that is no agent and answers what it is told."""
    servers: list[http.server.HTTPServer] = []

    def start(answer: bytes) -> http.server.HTTPServer:
        monkeypatch.setattr(_Other, "answer", answer)
        servers.append(http.server.HTTPServer(("127.0.0.1", 0), _Other))
        servers[-1].asked = []  # type: ignore[attr-defined]
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b"220 smtp ready\r\n\r\n", b"",
        b"HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n",
        b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"said": 1}',
    ],
    ids=["words", "list", "404", "no HTTP", "nothing", "elsewhere", "number"],
)  # fmt: skip
def test_what_is_no_agent(
    cli: Run, other: Callable[[bytes], http.server.HTTPServer], spoken: Speaking, answer: bytes
) -> None:
    """Said; no other address is followed to, and the token is in its one header alone."""
    server = other(answer)
    token = spoken.token
    refused(cli, f"http://127.0.0.1:{server.server_port}/behind/", spoken.server.token_file, "no agent's --control")
    ((path, headers),) = server.asked  # type: ignore[attr-defined]
    assert path == "/behind/v1/words/pause" and headers.pop("Authorization") == f"Bearer {token}"
    assert token not in str(headers)


def test_no_answer(cli: Run, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What became of the word is not known, and how it can be."""
    monkeypatch.setattr(client, "_SECONDS", 0.1)
    with listening(bench) as server:
        refused(
            cli, f"http://{server.server.address}", server.server.token_file, "no answer in 0.1 s", "incidents --all"
        )


def test_a_proxy_of_the_environment_is_not_used(cli: Run, spoken: Speaking, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be told the token."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert cli("pause", *there(spoken))[0] == 0 and len(spoken.words()) == 1


def test_hostile_text_in_an_answer(
    cli: Run, other: Callable[[bytes], http.server.HTTPServer], spoken: Speaking
) -> None:
    """Commands no terminal."""
    body = rb'{"error": "\u001b[31mred\nnext"}'
    server = other(b"HTTP/1.1 409 Conflict\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    refused(cli, f"http://127.0.0.1:{server.server_port}", spoken.server.token_file, "?[31mred next")
