"""Every panel's query, asked of a real Prometheus that scraped a real run: broken, mended, told of by the agent."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import which

import pytest
from board_files import Shown, every_panel
from engine_pages import VllmPage
from live_prometheus import Prometheus, prometheus
from nvml_runs import StandIn, compiled

DEADLINE = 180.0  # seconds; the run takes a quarter of it where the machine is idle
VALUES = {"$__rate_interval": "10s", "$__range": "5m", "$__interval": "5s", "$instance": ".*", "$run": "run"}


def asked(expr: str) -> str:
    """The query as Grafana would send it."""
    return re.sub(r"\$\w+", lambda found: VALUES[found[0]], expr)


@pytest.mark.full
def test_every_panel_of_a_real_run_shows_something(tmp_path: Path) -> None:
    """A run of the reference trainer that goes back over a NaN, beside an engine, a GPU and a log: each has data."""
    program = which("prometheus")
    if program is None:
        pytest.skip("prometheus is not on PATH; on Debian: apt-get install prometheus")
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[reference]'")
    panels = every_panel()
    with run(tmp_path) as (target, page), prometheus(program, tmp_path, target, free_port()) as server:
        until(server.ready, "Prometheus never became ready")
        missing = {shown.name for shown in panels}
        end = time.monotonic() + DEADLINE
        while missing and time.monotonic() < end:
            page_goes_on(page)
            log_goes_on(tmp_path)
            missing -= {shown.name for shown in panels if shown.name in missing and all_answer(server, shown)}
            time.sleep(1.0)  # Prometheus scrapes no sooner
        fired = server.answers('ALERTS{alertname="RunNotFinite",alertstate="firing"}')
    assert not missing, f"nothing to show: {', '.join(sorted(missing))}"
    assert fired


def all_answer(server: Prometheus, shown: Shown) -> bool:
    """True where each query of the panel finds something."""
    return all(server.answers(asked(expr)) for expr in shown.exprs)


def page_goes_on(page: VllmPage) -> None:
    """The engine behind the page works on."""
    page.of("num_requests_running").set(3)
    page.of("kv_cache_usage_perc").set(0.5)
    for counter in ("prompt_tokens", "generation_tokens", "num_preemptions"):
        page.of(counter).inc(7)
    for histogram in ("time_to_first_token_seconds", "time_per_output_token_seconds", "inter_token_latency_seconds"):
        page.of(histogram).observe(0.03)


def log_goes_on(folder: Path) -> None:
    """What other trainers log and the reference trainer has not, told of its steps by a log beside it."""
    said = json.loads((folder / "run" / "agent" / "status.json").read_text())
    row = {"step": said["step"], "aux_loss": 2.0, "truncated_fraction": 0.1, "dropped_tokens_fraction": 0.01}
    with (folder / "rows.jsonl").open("a") as log:
        log.write(json.dumps({**row, "eval_reward": 0.5}) + "\n")
    if address := control_of(folder):  # somebody who has no token: refused, and counted
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://{address}/v1/status", timeout=5)


def control_of(folder: Path) -> str:
    """Where the agent takes words, '' before it does."""
    try:
        found = json.loads((folder / "run" / "agent" / "control.json").read_text())
    except FileNotFoundError:
        return ""
    return str(found.get("address", ""))


@contextmanager
def run(folder: Path) -> Iterator[tuple[str, VllmPage]]:
    """The agent's address, and the page of the engine that it scrapes; all of it is gone afterwards."""
    place, page = folder / "run", VllmPage()
    place.mkdir(mode=0o700)
    (folder / "checkpoints").mkdir(mode=0o700)
    with ExitStack() as stack:
        address = stack.enter_context(page.served())
        agent = ["-m", "gyrostat_agent", "agent", str(place), "--mode", "act", "--no-approvals", "--run", "run"]
        agent += ["--listen", "127.0.0.1:0", "--host", "--scrape", address, "--gpu", "--control=127.0.0.1:0"]
        agent += ["--log", str(folder / "rows.jsonl")]
        (folder / "rows.jsonl").touch()
        library = compiled(folder)
        StandIn(library, folder / "gpus").set(count=1)
        stack.callback(ended, started(folder / "agent.log", agent, LD_LIBRARY_PATH=str(library.parent)))
        until((place / "agent" / "status.json").exists, "the agent never looked")
        trainer = ["-m", "gyrostat_reference", "--run-dir", str(place), "--checkpoints", str(folder / "checkpoints")]
        trainer += ["--steps", "80", "--no-guard", "--patience", "30", "--poison-at-step", "20", "--mode", "PivotRL"]
        trainer += ["--workers", "2"]
        stack.callback(ended, started(folder / "trainer.log", trainer))
        yield json.loads((place / "agent" / "status.json").read_text())["http"], page


def started(log: Path, words: list[str], **environment: str) -> "subprocess.Popen[bytes]":
    """A process of the run."""
    packages = os.pathsep.join(path for path in sys.path if path)
    world = {**os.environ, "PYTHONPATH": packages, "OMP_NUM_THREADS": "1", **environment}
    with log.open("wb") as out:
        return subprocess.Popen([sys.executable, *words], stdout=out, stderr=out, env=world)


def ended(process: "subprocess.Popen[bytes]") -> None:
    """End it, politely where it takes that."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def until(condition, what: str, seconds: float = 60.0) -> None:  # type: ignore[no-untyped-def]
    """Wait until it holds; fails saying what did not come about."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def free_port() -> int:
    """A port that nobody has at the moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
