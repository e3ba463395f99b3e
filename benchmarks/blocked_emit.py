"""How long telling a step takes when what should take the records away does not: the longest call, and what is raised.

    python benchmarks/blocked_emit.py [--quick] [--json]

Ours with a reader that is stopped, with none, with a full disk and with its folder gone, against an HTTP POST
to a server that is stopped (SIGSTOP), in turns in one run. Exit status 1 where our longest call that was not
preempted is more than a hundredth of the POST's, or where anything is raised.
"""

import contextlib
import http.server
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

from figures import arguments, cpu_ticks, idle_share, show

from gyrostat import Telemetry, recordfile
from gyrostat.wire import RecordFile, scan

VALUES = {f"series_{i}": i / 7 for i in range(30)}
ALLOWED = 100


class Server(http.server.BaseHTTPRequestHandler):
    """Takes a POST and answers."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def serve() -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    print(server.server_port, flush=True)
    server.serve_forever()


def read_for_ever(folder: str) -> None:
    """A sidecar's reading, in short: every part from where it stood."""
    read: dict[str, int] = {}
    print("reading", flush=True)
    while True:
        for part in Path(folder, "records").glob("*"):
            if RecordFile.parse(part.name):
                with part.open("rb") as file:
                    file.seek(read.get(part.name, 0))
                    read[part.name] = read.get(part.name, 0) + scan(file.read()).consumed
        time.sleep(0.001)


@contextlib.contextmanager
def stopped(*command: str) -> Iterator[str]:
    """Another process of this script, stopped once it has said that it is ready; yields what it said."""
    process = subprocess.Popen([sys.executable, __file__, *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = process.stdout.readline().strip()
        os.kill(process.pid, signal.SIGSTOP)
        yield said
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def longest(telemetry: Telemetry, steps: int) -> tuple[float, float]:
    """Seconds of the longest record, and of the longest in which the kernel let somebody else run.

    A call that is preempted is not a call that blocks: on a busy machine any instruction may take as long.
    """
    worst = preempted = 0.0
    for step in range(steps):
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
        began = time.perf_counter()
        telemetry.record(step, **VALUES)
        seconds = time.perf_counter() - began
        if resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw == before:
            worst = max(worst, seconds)
        else:
            preempted = max(preempted, seconds)
    return worst, preempted


def post(port: str, seconds: float) -> float:
    """Seconds that one POST to the stopped server holds the caller, whose timeout is ``seconds``."""
    connection = HTTPConnection("127.0.0.1", int(port), timeout=seconds)
    began = time.perf_counter()
    with contextlib.suppress(TimeoutError):
        connection.request("POST", "/", b"x" * 400)
        connection.getresponse()
    return time.perf_counter() - began


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow beyond 64 KiB: the same short write and the same error as a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def one_round(base: Path, steps: int) -> dict[str, tuple[float, float, Telemetry]]:
    """The longest record in each trouble, see ``longest``."""
    found: dict[str, tuple[float, float, Telemetry]] = {}

    def tell(trouble: str, folder: Path) -> None:
        telemetry = Telemetry(folder)
        telemetry.record(0, **VALUES)
        if trouble == "folder gone":
            shutil.rmtree(folder)
            folder.write_text("a file where the folder was")
        found[trouble] = (*longest(telemetry, steps), telemetry)

    for name in ("reader absent", "disk full", "reader stopped", "folder gone"):
        (base / name).mkdir(mode=0o700)
    tell("reader absent", base / "reader absent")
    with full_disk():
        tell("disk full", base / "disk full")
    with stopped("--read", str(base / "reader stopped")):
        tell("reader stopped", base / "reader stopped")
    tell("folder gone", base / "folder gone")
    return found


def main() -> int:
    if sys.argv[1:2] == ["--serve"]:
        serve()
    if sys.argv[1:2] == ["--read"]:
        read_for_ever(sys.argv[2])
    asked = arguments(__doc__)
    recordfile.CAP_BYTES = 1 << 20  # so that the cap is reached within the run, as it would be after hours
    rounds, steps, patience = (2, 4000, 3.0) if asked.quick else (5, 20_000, 5.0)
    worst: dict[str, float] = {}
    others: dict[str, float] = {}
    counts: dict[str, str] = {}
    before = cpu_ticks()
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for trouble, (seconds, preempted, telemetry) in one_round(Path(folder), steps).items():
                worst[trouble] = max(worst.get(trouble, 0.0), seconds)
                others[trouble] = max(others.get(trouble, 0.0), preempted)
                counts[trouble] = f"{telemetry.counts.written} written, {telemetry.counts.dropped} dropped"
        with stopped("--serve") as port:
            worst["peer: HTTP POST to a stopped server"] = post(port, patience)
    http_post = worst["peer: HTTP POST to a stopped server"]
    rows: list[dict[str, object]] = []
    for name, seconds in worst.items():
        share = f"1/{http_post / seconds:.0f}"
        row = {"trouble": name, "longest ms": round(seconds * 1e3, 2), "of the POST": share}
        rows.append({**row, "preempted ms": round(others.get(name, 0.0) * 1e3, 2), "last round": counts.get(name, "")})
    ratio = http_post / max(seconds for name, seconds in worst.items() if name in counts)
    result = {
        "longest of ours": f"1/{ratio:.0f} of the POST's (goal 1/{ALLOWED}; the POST's timeout was {patience} s)",
        "raised": "nothing (it would have ended this run)",
        "idle share": idle_share(before, cpu_ticks()),
    }
    show("blocked_emit", rows, result, asked.json)
    return 0 if ratio >= ALLOWED else 1


if __name__ == "__main__":
    sys.exit(main())
