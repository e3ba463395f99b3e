"""From the append of a NaN to the directive in the trainer's hand, through the real agent in its own process.

Each trial ends in a rollback: the journal is synced to the disk before the directive is written, so this is the
dearest way. Peer in the same run: the same record POSTed over HTTP to a loopback server that does nothing but
answer (what a monitoring endpoint costs before it has decided anything). Limit: one wake-up of a sleeping process
through a pipe and one fdatasync of the journal's file system, both measured here.

    python benchmarks/nan_to_directive.py [--trials 100] [--quick] [--json FILE]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy
import xxhash
from safetensors.numpy import save

from gyrostat import Control, Telemetry
from gyrostat.wire import RunDirectory
from gyrostat_agent.journal import Journal

PACK = """
pack: bench
groups:
  - name: numerics
    rules:
      - {alert: NonFinitePoison, detector: nonfinite, with: {confirmed: true}, severity: critical, incident: nonfinite}
playbooks:
  - incident: nonfinite
    budget: {actions: 100000, steps: 1}
    ceiling: {incidents: 100000, steps: 1}
    cooldown: 0
    rungs: [{remedy: rollback, horizon: 2, irreversible: true}]
"""
SCALARS = {f"series_{i}": 0.5 * i for i in range(28)}
LIMIT_SECONDS = 20.0
_TRIALS_A_RUN = 10


def main() -> int:
    """Run the trials and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--trials", type=int, default=100)
    options.add_argument("--quick", action="store_true", help="20 trials")
    options.add_argument("--json", help="write the figures there")
    given = options.parse_args()
    trials = 20 if given.quick else given.trials
    folder = tempfile.mkdtemp(prefix="gyrostat-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        before = _cpu()
        figures = {"directive": _directives(folder, trials), "http": _posts(trials), **_limits(folder, trials)}
        idle = _idle_share(before, _cpu())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _table(figures, idle)
    if given.json:
        Path(given.json).write_text(json.dumps({"idle_share": idle, "trials": trials, **figures}, indent=2))
    return 0


def _directives(folder: str, trials: int) -> dict[str, float]:
    """Microseconds from before ``record()`` of the NaN until the bell shows its directive.

    One agent grants a run twelve actions in a thousand steps, so every tenth trial begins a new run.
    """
    times: list[float] = []
    while len(times) < trials:
        place = os.path.join(folder, f"runs-{len(times)}")
        os.makedirs(place)
        times += _one_run(place, min(_TRIALS_A_RUN, trials - len(times)))
    return _summary(times)


def _one_run(folder: str, trials: int) -> list[float]:
    run = RunDirectory(os.path.join(folder, "run"))
    pack = Path(folder, "pack.yaml")
    pack.write_text(PACK)
    root = _checkpoint(folder)
    os.makedirs(run.path, mode=0o700)
    argv = [sys.executable, "-m", "gyrostat_agent", "agent", run.path, "--mode", "act", "--no-approvals"]
    agent = subprocess.Popen([*argv, "--rules", str(pack), "--listen", ""], stderr=subprocess.DEVNULL)
    try:
        _until(lambda: os.path.exists(os.path.join(run.agent, "status.json")), "the agent did not start")
        telemetry = Telemetry(run.path, run="run", checkpoint_root=root)
        control = Control(telemetry, procedures={"rollback": lambda arguments: {"step": 0}})
        step, times = 1, []
        for number in range(1, trials + 1):
            step = _clean(telemetry, run, step, 12 + 4 * number, first=number == 1)
            began = time.perf_counter_ns()
            telemetry.record(step, loss=float("nan"), grad_norm=1.0, step_applied=1.0, **SCALARS)
            _until(lambda n=number: _bell(run) >= n, f"directive {number} never came", nap=200e-6)
            times.append((time.perf_counter_ns() - began) / 1e3)
            control.apply(step + 1)
            step = 1
        return times
    finally:
        agent.terminate()
        agent.wait()


def _clean(telemetry: Telemetry, run: RunDirectory, step: int, steps: int, first: bool) -> int:
    """Steps past the fault of the trial before and its probation; the agent must have read them all."""
    for _ in range(steps):
        telemetry.record(step, loss=1.0, grad_norm=1.0, step_applied=1.0, **SCALARS)
        step += 1
    if first:  # the checkpoint is certified by a child of the agent: wait for its verdict
        journal = Journal(os.path.join(run.agent, "journal.db"), readonly=True)
        _until(lambda: any(journal.entries(kinds=["checkpoint"])), "the checkpoint was never verified", nap=0.05)
    _until(lambda: _offset_reached(run), "the agent does not keep up", nap=1e-3)
    time.sleep(0.005)
    return step


def _offset_reached(run: RunDirectory) -> bool:
    """True once the agent has had time to sleep again; its journal's log has stopped growing."""
    path = os.path.join(run.agent, "journal.db-wal")
    size = os.stat(path).st_mtime_ns
    time.sleep(0.004)
    return os.stat(path).st_mtime_ns == size


def _bell(run: RunDirectory) -> int:
    try:
        with open(run.bell, "rb") as bell:
            return int.from_bytes(bell.read(8), "little")
    except FileNotFoundError:
        return 0


def _checkpoint(folder: str) -> str:
    """A checkpoint of step 0 in the reference trainer's format, one small tensor."""
    root = os.path.join(folder, "checkpoints")
    place = os.path.join(root, "step-00000000")
    os.makedirs(place, mode=0o700)
    manifest = {
        "format": "gyrostat-reference/1", "step": 0, "segment": 0, "last_directive": 0, "time": time.time(),
        "data_cursor": 0, "passed_over": [], "knobs": {}, "files": {},
    }  # fmt: skip
    weights = save({"weight": numpy.ones(8, numpy.float32)})
    Path(place, "model.safetensors").write_bytes(weights)
    digest = f"xxh3_128:{xxhash.xxh3_128(weights).hexdigest()}"
    manifest["files"] = {"model.safetensors": {"bytes": len(weights), "digest": digest}}
    with open(os.path.join(place, "manifest.json"), "w") as out:
        json.dump(manifest, out)
    return root


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


def _posts(trials: int) -> dict[str, float]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = HTTPConnection("127.0.0.1", server.server_port)
    body = json.dumps({"step": 1, "loss": None, **SCALARS}).encode()
    times = []
    for _ in range(trials):
        time.sleep(0.005)
        began = time.perf_counter_ns()
        client.request("POST", "/", body)
        client.getresponse().read()
        times.append((time.perf_counter_ns() - began) / 1e3)
    server.shutdown()
    return _summary(times)


def _limits(folder: str, trials: int) -> dict[str, dict[str, float]]:
    """One wake-up through a pipe, there and back halved; one fdatasync of a small append."""
    here, there = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        while os.read(here[0], 1):
            os.write(there[1], b"!")
        os._exit(0)
    wakes, syncs = [], []
    with open(os.path.join(folder, "sync"), "ab", buffering=0) as out:
        for _ in range(trials):
            time.sleep(0.002)
            began = time.perf_counter_ns()
            os.write(here[1], b"!")
            os.read(there[0], 1)
            wakes.append((time.perf_counter_ns() - began) / 2e3)
            began = time.perf_counter_ns()
            out.write(b"x" * 512)
            os.fdatasync(out.fileno())
            syncs.append((time.perf_counter_ns() - began) / 1e3)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return {"wake": _summary(wakes), "sync": _summary(syncs)}


def _until(true: object, why: str, nap: float = 0.01) -> None:
    limit = time.monotonic() + LIMIT_SECONDS
    while not true():  # type: ignore[operator]
        if time.monotonic() > limit:
            raise SystemExit(f"nan_to_directive: {why} within {LIMIT_SECONDS:.0f} s")
        time.sleep(nap)


def _summary(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    return {"p50": times[len(times) // 2], "p99": times[min(len(times) - 1, int(0.99 * len(times)))], "max": times[-1]}


def _cpu() -> tuple[int, int]:
    fields = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return fields[3] + fields[4], sum(fields)


def _idle_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def _table(figures: dict[str, dict[str, float]], idle: float) -> None:
    names = {
        "directive": "NaN appended -> directive rung (journal synced)",
        "http": "peer: one HTTP POST on loopback, undecided",
        "wake": "limit: wake-up of a sleeping process", "sync": "limit: fdatasync of 512 bytes",
    }  # fmt: skip
    print(f"{'µs':<48} {'p50':>9} {'p99':>9} {'max':>9}   (idle share of the machine {idle:.2f})")
    for key, name in names.items():
        row = figures[key]
        print(f"{name:<48} {row['p50']:>9.0f} {row['p99']:>9.0f} {row['max']:>9.0f}")
    print(f"ratio to the peer, p50: {figures['directive']['p50'] / figures['http']['p50']:.2f}")
    if idle < 0.9:
        print("the machine was not idle: the p99 is the scheduler's, not the agent's")


if __name__ == "__main__":
    sys.exit(main())
