"""Every panel's query, asked of a real Prometheus that scraped a real run: broken, mended, told of by the agent."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import which

import pytest
from board_files import Shown, every_panel
from engine_pages import VllmPage
from live_prometheus import Prometheus, prometheus

DEADLINE = 180.0  # seconds; the run takes a quarter of it where the machine is idle
GPU = "no GPU here"
EMPTY = {  # panels that have nothing to show of this run, and why
    "gyrostat-machines: Utilisation": GPU,
    "gyrostat-machines: Card memory in use": GPU,
    "gyrostat-machines: Temperature": GPU,
    "gyrostat-machines: Power": GPU,
    "gyrostat-machines: Memory errors and rows": GPU,
    "gyrostat-machines: NVLinks that are up": GPU,
    "gyrostat-machines: Link errors": GPU,
    "gyrostat-machines: Memory of the run": "no processes and no cgroup of the run were seen",
    "gyrostat-rl: Session, 99th percentile": "without --workers its rollouts have no sessions",
    "gyrostat-rl: Validation": "the reference trainer evaluates nothing",
    "gyrostat-rl: Cut off": "it tells no share of answers that were cut off",
    "gyrostat-moe: Balance loss": "it tells expert counts instead",
    "gyrostat-moe: Tokens dropped": "it drops none",
    "gyrostat-agent: Words over HTTP": "nobody spoke to --control",
}
VALUES = {"$__rate_interval": "10s", "$__range": "5m", "$__interval": "5s", "$instance": ".*", "$run": "run"}


def asked(expr: str) -> str:
    """The query as Grafana would send it."""
    return re.sub(r"\$\w+", lambda found: VALUES[found[0]], expr)


@pytest.mark.full
def test_every_panel_of_a_real_run_shows_something(tmp_path: Path) -> None:
    """A run of the reference trainer that goes back over a NaN: each panel has data, or is listed with its reason."""
    program = which("prometheus")
    if program is None:
        pytest.skip("prometheus is not on PATH; on Debian: apt-get install prometheus")
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[reference]'")
    panels = every_panel()
    assert set(EMPTY) <= {shown.name for shown in panels}
    with run(tmp_path) as (target, page), prometheus(program, tmp_path, target, free_port()) as server:
        until(server.ready, "Prometheus never became ready")
        missing = {shown.name for shown in panels} - set(EMPTY)
        end = time.monotonic() + DEADLINE
        while missing and time.monotonic() < end:
            page_goes_on(page)
            missing -= {shown.name for shown in panels if shown.name in missing and all_answer(server, shown)}
            time.sleep(1.0)  # Prometheus scrapes no sooner
        fired = server.answers('ALERTS{alertname="RunNotFinite",alertstate="firing"}')
        for name in EMPTY:  # their queries are good ones all the same
            next(all_answer(server, shown) for shown in panels if shown.name == name)
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


@contextmanager
def run(folder: Path) -> Iterator[tuple[str, VllmPage]]:
    """The agent's address, and the page of the engine that it scrapes; all of it is gone afterwards."""
    place, page = folder / "run", VllmPage()
    place.mkdir(mode=0o700)
    (folder / "checkpoints").mkdir(mode=0o700)
    with ExitStack() as stack:
        address = stack.enter_context(page.served())
        agent = ["-m", "gyrostat_agent", "agent", str(place), "--mode", "act", "--no-approvals", "--run", "run"]
        agent += ["--listen", "127.0.0.1:0", "--host", "--scrape", address]
        stack.callback(ended, started(folder / "agent.log", agent))
        until((place / "agent" / "status.json").exists, "the agent never looked")
        trainer = ["-m", "gyrostat_reference", "--run-dir", str(place), "--checkpoints", str(folder / "checkpoints")]
        trainer += ["--steps", "80", "--no-guard", "--patience", "30", "--poison-at-step", "20", "--mode", "PivotRL"]
        stack.callback(ended, started(folder / "trainer.log", trainer))
        yield json.loads((place / "agent" / "status.json").read_text())["http"], page


def started(log: Path, words: list[str]) -> "subprocess.Popen[bytes]":
    """A process of the run."""
    packages = os.pathsep.join(path for path in sys.path if path)
    world = {**os.environ, "PYTHONPATH": packages, "OMP_NUM_THREADS": "1"}
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
