"""How many acknowledged records are lost when the trainer is killed: the goal is none, exactly.

    python benchmarks/lost_records.py [--quick] [--json]

A trainer records every 2 ms and, after each call has returned, writes the step's number into shared memory. It
is killed (SIGKILL) at a random moment; every step up to that number must be read back. The peer is a file of
JSON lines behind Python's own buffer, as many a trainer logs. Exit status 1 where one of ours is lost.
"""

import json
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import arguments, show

from gyrostat import Telemetry
from gyrostat.wire import Kind, RecordFile, scan

EVERY_SECONDS = 0.002


def trainer(way: str, folder: str) -> None:
    """Record for ever; the step whose call has returned stands in ``acknowledged``."""
    with open(f"{folder}/acknowledged", "r+b") as file:
        told = mmap.mmap(file.fileno(), 8)
    telemetry = Telemetry(folder) if way == "gyrostat" else None
    lines = open(f"{folder}/lines", "w", encoding="utf-8")  # noqa: SIM115 (it is never closed: it is killed)
    step = 0
    while True:
        step += 1
        values = {f"series_{i}": step / (i + 1) for i in range(30)}
        if telemetry is not None:
            telemetry.record(step, **values)
        else:
            lines.write(json.dumps({"step": step, **values}) + "\n")
        told[:] = step.to_bytes(8, "little")
        time.sleep(EVERY_SECONDS)


def steps_of_frames(folder: Path) -> set[int]:
    parts = [p for p in (folder / "records").iterdir() if RecordFile.parse(p.name)]
    return {f.step for p in parts for f in scan(p.read_bytes()).frames if f.kind == Kind.RECORD}


def steps_of_lines(folder: Path) -> set[int]:
    found = set()
    for line in (folder / "lines").read_text().splitlines():
        try:
            found.add(int(json.loads(line)["step"]))
        except ValueError:  # the line that the kill cut
            continue
    return found


def one_kill(way: str, draw: random.Random) -> tuple[int, int]:
    """(acknowledged, lost) of one trainer that was killed between 5 and 400 records after its first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "acknowledged").write_bytes(bytes(8))
        with (folder / "acknowledged").open("r+b") as file:
            told = mmap.mmap(file.fileno(), 8)
        command = [sys.executable, __file__, "--trainer", way, name]
        process = subprocess.Popen(command)
        want, deadline = draw.randrange(5, 400), time.monotonic() + 60
        while int.from_bytes(told[:], "little") < want and time.monotonic() < deadline:
            time.sleep(draw.random() * EVERY_SECONDS)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        last = int.from_bytes(told[:], "little")
        if last < want:
            raise RuntimeError(f"the {way} trainer recorded {last} of {want} steps in a minute")
        read = steps_of_frames(folder) if way == "gyrostat" else steps_of_lines(folder)
        return last, len(set(range(1, last + 1)) - read)


def main() -> int:
    if sys.argv[1:2] == ["--trainer"]:
        trainer(*sys.argv[2:4])
    asked = arguments(__doc__)
    draw, kills = random.Random(0), 8 if asked.quick else 100
    rows = []
    for way, times in (("gyrostat", kills), ("peer: JSON lines, buffered", max(kills // 10, 2))):
        found = [one_kill(way, draw) for _ in range(times)]
        told, lost = (sum(column) for column in zip(*found, strict=True))
        row = {"way": way, "kills": times, "acknowledged": told, "lost": lost, "lost %": round(100 * lost / told, 2)}
        rows.append(row)
    show("lost_records", rows, {"goal": "0 lost by gyrostat"}, asked.json)
    return 1 if rows[0]["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
