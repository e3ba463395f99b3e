"""A run of many nodes, as the agent that decides for it meets it: what it costs, and how often it pages.

    python benchmarks/cluster_sim.py                            128 nodes of 8 ranks, a step in 10 s, 2 minutes
    python benchmarks/cluster_sim.py --nodes 16 --seconds 20

The deciding agent is a real process, with its journal, its lease and its HTTP intake; rank 0's node tells through the
SDK. The other nodes are light: threads of this process that thin and pack what their ranks would tell as an agent does,
and post it with the token; they have no engine. At a third of the time one rank of a far node is not finite, and one
straggles from the half on. Alertmanager is a receiver that counts. Time is real.

Exit status 0 where the leader stays under a tenth of a core and 100 MB, and pages at most 1.1 times an incident.
"""

import argparse
import contextlib
import http.server
import json
import math
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from gyrostat import Telemetry
from gyrostat.wire import Hello, Record
from gyrostat_agent import onepost
from gyrostat_agent.cli.options import builtin
from gyrostat_agent.cluster.lockfile import FileLease
from gyrostat_agent.cluster.parcel import Parcel, packed
from gyrostat_agent.cluster.sender import PATH
from gyrostat_agent.rundir import prepare
from gyrostat_rules.inputs import Item
from gyrostat_rules.manyranks import compared_in, told_of
from gyrostat_rules.packfile import parse

RANKS = 8
MOST_CORE, MOST_MB, MOST_PAGES = 0.10, 100.0, 1.1
NAMES = [f"metric_{n}" for n in range(20)]


class Plan(NamedTuple):
    """What is played."""

    nodes: int
    seconds: float
    step: float

    @property
    def world(self) -> int:
        return self.nodes * RANKS

    @property
    def ill(self) -> tuple[int, int]:
        """The rank that is not finite, and at which two steps."""
        return self.world * 2 // 3, int(self.seconds / self.step / 3)

    @property
    def slow(self) -> tuple[int, int]:
        """The rank that straggles, and from which step on."""
        return self.world * 3 // 4, int(self.seconds / self.step / 2)


def values(plan: Plan, rank: int, step: int) -> dict[str, float]:
    """What a rank tells of a step: thirty numbers."""
    noise = math.sin(12.9898 * rank + 78.233 * step)
    said = dict.fromkeys(NAMES, 1.0 + 0.01 * noise)
    said |= {"loss": 1.0 + 0.02 * noise, "grad_norm": 0.5 + 0.02 * noise, "reward": 0.5, "entropy": 1.2}
    said |= {"kl": 0.01, "learning_rate": 1e-6, "step_applied": 1.0, "params_finite": 1.0, "mfu": 0.4}
    straggles = rank == plan.slow[0] and step >= plan.slow[1]
    said["compute_time"] = (1.9 if straggles else 1.0) + 0.02 * noise
    if rank == plan.ill[0] and step in (plan.ill[1], plan.ill[1] + 1):
        said["loss"] = said["grad_norm"] = math.nan
    return said


class Node:
    """One light node."""

    def __init__(self, plan: Plan, number: int, bearer: str, compared: frozenset[str]) -> None:
        self.plan, self.number, self.bearer, self.compared = plan, number, bearer, compared
        self.life, self.sent, self.bytes, self.late = secrets.token_hex(8), 0, 0, 0
        self.ranks = range(number * RANKS, (number + 1) * RANKS)

    def hello(self, address: str, term: int) -> None:
        self._post(address, term, tuple(Hello("run", "trainer", r, self.plan.world, self.life) for r in self.ranks))

    def tell(self, address: str, term: int, step: int) -> None:
        rows = [Record("trainer", r, self.life, 0, step, step, time.time(), values(self.plan, r, step))
                for r in self.ranks]  # fmt: skip
        self._post(address, term, tuple(told_of(row, self.compared) for row in rows))

    def _post(self, address: str, term: int, items: tuple[Item, ...]) -> None:
        self.sent += 1
        host, _, port = address.rpartition(":")
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.bearer}"}
        parcel = Parcel("run", f"node-{self.number}", self.life, self.sent, term, items, self.sent == 1)
        while True:
            body = packed(parcel, time.time())
            self.bytes += len(body)
            with contextlib.suppress(OSError):
                if onepost.send(host, int(port), PATH, body, headers, 10.0).status == 200:
                    return
            self.late += 1
            time.sleep(0.2)


class Pages(http.server.BaseHTTPRequestHandler):
    """An Alertmanager that counts whom it would page about: the groups of what fires."""

    groups: ClassVar[set[str]] = set()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for alert in body:
            if "endsAt" not in alert or alert["endsAt"] > time.strftime("%Y-%m-%dT%H:%M:%S"):
                labels = alert["labels"]
                type(self).groups.add(labels.get("incident", labels.get("alertname", "")))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def used(pid: int) -> tuple[float, float]:
    """Seconds of a core, and MB of memory, that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def leader(plan: Plan, folder: Path, token: str, pages: int) -> Iterator[tuple[int, Path]]:
    """The agent that decides; its pid and run directory."""
    run, shared = folder / "run", folder / "shared"
    prepare(str(run))
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    argv = [sys.executable, "-m", "gyrostat_agent", "agent", str(run), "--run", "run", "--mode", "shadow"]
    argv += ["--listen", "", "--cluster", str(shared), "--cluster-address", address, "--node", "node-0"]
    argv += ["--cluster-token-file", token, "--alertmanager", f"http://127.0.0.1:{pages}"]
    with open(folder / "agent.err", "wb") as said, subprocess.Popen(argv, stderr=said) as agent:
        try:
            yield agent.pid, run
        finally:
            agent.terminate()


def play(plan: Plan, folder: Path) -> dict[str, Any]:
    """One run; the figures."""
    (folder / "shared").mkdir(mode=0o700)
    token = folder / "token"
    token.write_text(secrets.token_hex(16))
    token.chmod(0o600)
    counter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=counter.serve_forever, daemon=True).start()
    compared = compared_in(parse(builtin()))
    others = [Node(plan, n, token.read_text(), compared) for n in range(1, plan.nodes)]
    with leader(plan, folder, str(token), counter.server_port) as (pid, run):
        own = [Telemetry(str(run), run="run", checkpoint_root=str(folder / "shared"), rank=r, world=plan.world)
               for r in range(RANKS)]  # fmt: skip
        lease = FileLease(str(folder / "shared"), "run")
        while not (holding := lease.who()).holder:
            time.sleep(0.1)
        with ThreadPoolExecutor(24) as pool:
            list(pool.map(lambda node: node.hello(holding.address, holding.term), others))
            _steps(plan, 0, 5, own, others, holding.address, holding.term, pool)
            before, began = used(pid)[0], time.monotonic()
            last = int(plan.seconds / plan.step)
            _steps(plan, 5, last, own, others, holding.address, holding.term, pool)
            seconds = time.monotonic() - began
            after, memory = used(pid)
        status = json.loads((run / "agent" / "status.json").read_text())
    counter.shutdown()
    return {
        "nodes": plan.nodes, "ranks": plan.world, "steps": last - 5, "seconds": round(seconds, 1),
        "core": round((after - before) / seconds, 4), "ms_a_step": round(1e3 * (after - before) / (last - 5), 1),
        "rss_mb": round(memory, 1), "incidents": status["incidents"], "pages": len(Pages.groups),
        "paged": sorted(Pages.groups),
        "bytes_a_parcel": round(sum(n.bytes for n in others) / sum(n.sent for n in others)),
        "sent_again": sum(n.late for n in others), "journal_kb_a_step": round(_size(run) / 1024 / last, 1),
        "missing": status["fellows"]["missing"],
    }  # fmt: skip


def _steps(
    plan: Plan, first: int, last: int, own: list[Telemetry], others: list[Node], address: str, term: int,
    pool: ThreadPoolExecutor,
) -> None:  # fmt: skip
    for step in range(first, last):
        due = time.monotonic() + plan.step
        for rank, telemetry in enumerate(own):
            telemetry.record(step, **values(plan, rank, step))
        list(pool.map(lambda node, at=step: node.tell(address, term, at), others))
        time.sleep(max(0.0, due - time.monotonic()))


def _size(run: Path) -> int:
    return sum(p.stat().st_size for p in (run / "agent").glob("journal.db*"))


def main() -> int:
    """Play, print, judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--step", type=float, default=10.0, help="seconds of a training step (default 10)")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gyrostat-cluster-") as folder:
        found = play(Plan(given.nodes, given.seconds, given.step), Path(folder))
    print(json.dumps(found) if given.json else "\n".join(f"{name:18} {value}" for name, value in found.items()))
    pages = found["pages"] / max(1, found["incidents"])
    return 0 if found["core"] < MOST_CORE and found["rss_mb"] < MOST_MB and pages <= MOST_PAGES else 1


if __name__ == "__main__":
    sys.exit(main())
