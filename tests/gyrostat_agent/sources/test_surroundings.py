"""Surroundings: a run that is seen by posts and pages, through the whole agent."""

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from gyrostat import Telemetry

BASE = [sys.executable, "-m", "gyrostat_agent"]
DEADLINE = 30.0


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def post(port: int, step: int, loss: float) -> None:
    """One export of OTLP in JSON, as SDKs in JavaScript and Go send it."""
    point = {"attributes": [{"key": "step", "value": {"intValue": str(step)}}], "timeUnixNano": str(time.time_ns()),
             "asDouble": "NaN" if loss != loss else loss}  # fmt: skip
    metric = {"name": "loss", "gauge": {"dataPoints": [point]}}
    body = json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/metrics", body, {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200


def test_posted_metrics_become_an_incident(tmp_path: Path) -> None:
    """A trainer that only exports OTLP: its NaN is found like any other's, and the host's memory is seen beside it."""
    port = free_port()
    agent = subprocess.Popen(
        [*BASE, "agent", str(tmp_path / "run"), "--listen", "", "--receive", f"127.0.0.1:{port}", "--host"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert agent.stderr is not None
        assert re.search(rf"posts to http://127\.0\.0\.1:{port}", agent.stderr.readline())
        for step in range(1, 12):
            post(port, step, 0.5)
        for step in (12, 13):
            post(port, step, float("nan"))
        end, told = time.monotonic() + DEADLINE, ""
        while "nonfinite: loss is nan" not in told:
            assert time.monotonic() < end, told
            told = subprocess.run([*BASE, "incidents", str(tmp_path / "run")], capture_output=True, text=True).stdout
            time.sleep(0.1)
    finally:
        agent.terminate()
        agent.communicate(timeout=DEADLINE)
    assert agent.returncode == 0


@pytest.mark.parametrize("told", [False, True], ids=["read by its log", "told by its trainer"])
def test_a_save_is_seen_on_the_page(tmp_path: Path, told: bool) -> None:
    """Where checkpoints lie is given, or stands in the trainer's Hello; how long they take, and what fits yet, is told.

    Who tells of itself by an SDK is found among the machine's processes: what memory the run has stands there.
    """
    (tmp_path / "train.log").write_text("step: 1 loss: 0.5\n")
    options = ["--host"] if told else ["--host", "--checkpoints", str(tmp_path / "out"), "--log",
                                       str(tmp_path / "train.log")]  # fmt: skip
    agent = subprocess.Popen(
        [*BASE, "agent", str(tmp_path / "run"), "--listen", "127.0.0.1:0", *options], stderr=subprocess.PIPE, text=True
    )
    try:
        trainer = None
        assert agent.stderr is not None
        found = re.search(r"http://(127\.0\.0\.1:\d+)", agent.stderr.readline())
        assert found is not None
        if told:
            trainer = Telemetry(tmp_path / "run", rank=0, world=1, checkpoint_root=tmp_path / "out")
            trainer.record(1, loss=0.5)
        wanted = [r'"checkpoint_bytes"\} 1000\.0', r'"checkpoint_room"\} [1-9]']
        wanted += [r'"host_run_processes_alive"\} 1\.0', r'"host_run_memory_bytes"\} [1-9]'] if told else []
        end, page, step = time.monotonic() + DEADLINE, "", 0
        while not all(re.search('role="host",series=' + one, page) for one in wanted):
            assert time.monotonic() < end, page
            step += 1  # the first of them come before it looks
            (tmp_path / f"out/global_step_{step}").mkdir(parents=True)
            (tmp_path / f"out/global_step_{step}/.metadata").write_text("x" * 1000)
            time.sleep(0.2)
            page = urllib.request.urlopen(f"http://{found[1]}/metrics", timeout=10).read().decode()
        if trainer is not None:
            trainer.close()
    finally:
        agent.terminate()
        agent.communicate(timeout=DEADLINE)
    assert agent.returncode == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scrape", "ftp://x/metrics"], "ftp"),
        (["--receive", "0.0.0.0:4318"], "token"),
        (["--receive", "127.0.0.1"], "HOST:PORT"),
        (["--log-format", "verll"], "verl"),
    ],
    ids=["scheme", "open to all", "no port", "format"],
)
def test_what_cannot_be_looked_at_is_a_line(options: list[str], words: str, tmp_path: Path) -> None:
    """Known at the start, in one sentence, with exit status 2."""
    done = subprocess.run([*BASE, "agent", str(tmp_path / "run"), *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr
