"""A port that is taken: the usual one may be another, one that somebody named may not."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runs import Run, calling, one_line

from gyrostat_agent.cli.agent import agent
from gyrostat_agent.cli.options import passed_on, settings
from gyrostat_agent.errors import SetupError, TemporaryError
from gyrostat_agent.server import DEFAULT, Server
from gyrostat_agent.takenport import check_free, served
from gyrostat_exporters.metrics import Latest


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture(params=["127.0.0.1", "::1"], ids=["IPv4", "IPv6"])
def held(request: pytest.FixtureRequest) -> Iterator[str]:
    """An address that somebody else listens at."""
    host = request.param
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as other:
        try:
            other.bind((host, 0))
        except OSError as error:
            pytest.skip(f"this machine has no {host}: {error}")
        other.listen()
        yield f"[{host}]:{other.getsockname()[1]}" if ":" in host else f"{host}:{other.getsockname()[1]}"


def page(at: str) -> Server:
    """The agent's page there."""
    return Server(at, Latest(), lambda: "")


def test_the_usual_port_may_be_another(held: str) -> None:
    """Of two runs on one machine neither has to know of the other: a free one, and it is said."""
    said: list[str] = []
    server = served(page, held, said.append, option="--listen", named=False)
    server.close()
    assert server.address != held and said == [f"port {held.rpartition(':')[2]} is taken, serving on a free one"]


def test_a_named_port_is_that_port_or_an_error(held: str) -> None:
    """Whoever asks there would find another run's agent. It may go by itself, so a supervisor tries again."""
    said: list[str] = []
    with pytest.raises(TemporaryError) as caught:
        served(page, held, said.append, option="--listen", named=True)
    assert f"--listen {held}: that port is taken" in str(caught.value) and "for any free one" in str(caught.value)
    assert said == []


def test_what_else_is_wrong_with_an_address_is_said_as_before() -> None:
    """An address of another machine is no port that is taken."""
    with pytest.raises(SetupError, match=r"--listen 192\.0\.2\.1:0"):
        served(page, "192.0.2.1:0", print, option="--listen", named=True)


def test_free_is_what_can_be_bound(held: str) -> None:
    """Asked before a trainer is started; a free port stays free by that."""
    with pytest.raises(SetupError, match="that port is taken"):
        check_free(held, "--listen")
    server = page("127.0.0.1:0")
    server.close()
    check_free(server.address, "--listen")
    page(server.address).close()


@pytest.mark.parametrize("option", ["--listen", "--control"])
def test_the_agent_does_not_go_elsewhere(held: str, tmp_path: Path, option: str) -> None:
    """One line, and no agent that nobody finds: neither for Prometheus nor for who forwards a port for words."""
    words = ["agent", str(tmp_path / "run"), "--listen=", f"{option}={held}"]
    done = subprocess.run(
        [sys.executable, "-m", "gyrostat_agent", *words], capture_output=True, text=True, timeout=60
    )  # fmt: skip
    assert done.returncode == 1
    one_line(done.stderr, f"{option} {held}: that port is taken")


def test_no_trainer_is_started_for_a_port_that_is_taken(held: str, cli: Run, tmp_path: Path) -> None:
    """Refused while nothing has been made yet: a training without the page it was given is no surprise for later."""
    trainer = ("touch", str(tmp_path / "ran"))
    status, _, err = cli("run", "--run-dir", str(tmp_path / "run"), "--listen", held, "--", *trainer)
    assert status == 2
    one_line(err, f"--listen {held}: that port is taken")
    assert list(tmp_path.iterdir()) == []


def test_what_nobody_named_is_not_named_to_the_agent() -> None:
    """``gyrostat run`` gives its options on; a default that it named would be a port that somebody chose."""
    given = agent.make_context("agent", ["/r"]).params
    chosen = settings("/r", {name: value for name, value in given.items() if name not in ("run_dir", "listen")})
    assert "--listen" not in passed_on(chosen, None, None)
    words = passed_on(chosen, DEFAULT, None)
    assert words[words.index("--listen") + 1] == DEFAULT
