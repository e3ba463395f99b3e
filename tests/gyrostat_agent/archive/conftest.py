"""A real S3 server in a process of its own, buckets in it, and checkpoints to archive."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from gyrostat_agent.archive.store import Store, opened
from gyrostat_agent.cli import checkpointarchive

_READY = 60.0  # seconds that the server may take to answer; 4 on two cores that are busy
_PUT = re.compile(r'"PUT /([^ ?]+)\S* HTTP/1.1\S*" 200')
PART = 8 << 20


class Server(NamedTuple):
    """Where it listens, and the file in which it writes down each request."""

    url: str
    log: Path

    def ask(self, method: str, path: str) -> str:
        """Its answer to a request without a signature."""
        with urllib.request.urlopen(urllib.request.Request(self.url + path, method=method), timeout=30) as answer:
            return str(answer.read().decode())

    def puts(self, bucket: str) -> list[str]:
        """Every object that was written into the bucket, in order, as often as it was."""
        found = _PUT.findall(self.log.read_text(encoding="utf-8"))
        return [path.partition("/")[2] for path in found if path.startswith(f"{bucket}/")]


class Bucket(NamedTuple):
    """A bucket of the test's own."""

    server: Server
    name: str
    url: str
    store: Store


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """``moto``'s server on a free port; ended with the session."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("moto") / "log"
    buffers = {"MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": "65536"}  # what is larger lies on the disk
    with log.open("wb") as out:
        words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(words, stdout=out, stderr=out, env={**os.environ, **buffers})
    made = Server(f"http://127.0.0.1:{port}", log)
    try:
        _answers(made, process)
        yield made
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture
def bucket(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """An empty bucket, and the environment in which the client finds it."""
    name = re.sub("[^a-z0-9]", "-", f"b-{tmp_path.parent.name}-{tmp_path.name}".lower())[-60:].strip("-")
    server.ask("PUT", f"/{name}")
    for key, value in {
        "AWS_ENDPOINT_URL": server.url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "AKIDTOTELL", "AWS_SECRET_ACCESS_KEY": "nobody-may-see-this",
    }.items():  # fmt: skip
        monkeypatch.setenv(key, value)
    url = f"s3://{name}/run 7/中"
    return Bucket(server, name, url, opened(url))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint in nested folders: two and a half parts, a file of 0 bytes, names that are not Latin."""
    folder = tmp_path / "ckpts" / "checkpoint-40"
    (folder / "global_step40" / "优化器").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(os.urandom(2 * PART + PART // 2))
    (folder / "global_step40" / "优化器" / "权重 0.bin").write_bytes(os.urandom(1000))
    (folder / "空").write_bytes(b"")
    (folder / "trainer_state.json").write_bytes(b"{}")
    return folder


@pytest.fixture
def run() -> Callable[..., Result]:
    """One of the commands, called: ``run("archive", PATH, "--to", URL)``."""
    return lambda command, *words: CliRunner().invoke(getattr(checkpointarchive, command), list(map(str, words)))


def _answers(server: Server, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + _READY
    while time.monotonic() < end and process.poll() is None:
        try:
            server.ask("GET", "/moto-api/")
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"moto.server did not come up: {server.log.read_text(encoding='utf-8')[-2000:]}")
