"""How fast a TensorBoard event file is read, against the tensorboard package's own readers, in one run.

    python benchmarks/event_files.py [--quick] [--json]

Files of 1, 5 and 30 scalars a step, as a trainer writes them. Readers take turns; the median of the rounds counts, in
CPU time of this process. Beside them stands what checking each record's second checksum would cost in Python: it is
the reason why most are not. Exit status 1 where our steps of 30 scalars come less than 15 times as fast as either of
the package's readers. tensorboard is no dependency: where it is missing ours is measured alone, which is said.
"""

import random
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from figures import arguments, cpu_ticks, idle_share, show

from gyrostat_agent.sources.eventfile import EventFile
from gyrostat_agent.sources.tfrecords import checksum

GOAL = 15.0
TAGS = (1, 5, 30)
Read = Callable[[str], int]  # how many scalars it found
ALONE = (
    "none: tensorboard is not installed here, ours is measured alone; for all of it: python3 -m venv /tmp/peers && "
    "/tmp/peers/bin/pip install tensorboard && PYTHONPATH=trainer:rules:agent /tmp/peers/bin/python "
    "benchmarks/event_files.py"
)


def write(path: Path, steps: int, tags: int) -> None:
    """A file as ``add_scalar`` writes it: an Event a scalar. The peers must find in it what we find."""
    rng, now = random.Random(0), 1.8e9
    with path.open("wb") as file:
        file.write(framed(struct.pack("<bd", 0x09, now) + b"\x1a\x0dbrain.Event:2"))
        for step in range(1, steps + 1):
            for tag in range(tags):
                now += rng.random() / 1e4
                name = f"train/{'abcdefghijklm'[: tag % 13]}_metric_{tag}".encode()
                value = b"\x0a" + varint(len(name)) + name + struct.pack("<bf", 0x15, rng.gauss(0, 1))
                summary = b"\x0a" + varint(len(value)) + value
                begun = struct.pack("<bd", 0x09, now) + b"\x10" + varint(step)
                file.write(framed(begun + b"\x2a" + varint(len(summary)) + summary))
            now += 5.0


def framed(data: bytes) -> bytes:
    """A record as TFRecords keep it."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", checksum(length)) + data + struct.pack("<I", checksum(data))


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def steps(path: str) -> int:
    """Ours, as the sidecar takes it: one row a step."""
    file, found = EventFile(path), 0
    while not file.at_end:
        found += sum(len(told.values) for told in file.told())
    return found


def rows(path: str) -> int:
    """Ours, number by number."""
    file, found = EventFile(path), 0
    while not file.at_end:
        found += len(file.rows())
    return found


def accumulator(path: str) -> int:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(path, size_guidance={"scalars": 0}).Reload()
    return sum(len(read.Scalars(tag)) for tag in read.Tags()["scalars"])


def loader(path: str) -> int:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    return sum(len(event.summary.value) for event in EventFileLoader(path).Load())


def checksums(path: str) -> int:
    """The CRC-32C of 45 bytes for each scalar, and nothing else."""
    data = Path(path).read_bytes()
    count = len(data) // 61
    for at in range(0, 61 * count, 61):
        checksum(data[at : at + 45])
    return count


OURS: dict[str, Read] = {"gyrostat, steps": steps, "gyrostat, rows": rows}
OTHERS: dict[str, Read] = {"EventAccumulator": accumulator, "EventFileLoader": loader}
BESIDE: dict[str, Read] = {"checksums alone": checksums}


def measure(path: str, rounds: int, readers: dict[str, Read]) -> dict[str, float]:
    """Median microseconds of CPU time a scalar, of each reader."""
    costs: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(rounds):
        for name, read in readers.items():
            began = time.process_time()
            found = read(path)
            costs[name].append((time.process_time() - began) / found * 1e6)
    return {name: statistics.median(cost) for name, cost in costs.items()}


def main() -> int:
    asked = arguments(__doc__)
    peers = OTHERS if find_spec("tensorboard") is not None else {}
    scalars, rounds, before = (9_000, 3, cpu_ticks()) if asked.quick else (60_000, 7, cpu_ticks())
    table: list[dict[str, object]] = []
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for tags in TAGS:
            path = Path(folder) / f"events.out.tfevents.{tags}"
            write(path, scalars // tags, tags)
            assert {read(str(path)) for read in (OURS | peers).values()} == {scalars // tags * tags}
            found = measure(str(path), rounds, OURS | peers | BESIDE)
            ours = found["gyrostat, steps"]
            for name, cost in found.items():
                row = {"scalars a step": tags, "reader": name, "us a scalar": round(cost, 2)}
                table.append({**row, "x gyrostat, steps": round(cost / ours, 1)})
            ratios = {name: round(found[name] / ours, 1) for name in peers}
    short = {name: ratio for name, ratio in ratios.items() if ratio < GOAL}
    result = {
        "unit": "median CPU microseconds a scalar",
        "goal": f"{GOAL:g}x at {TAGS[-1]} scalars a step",
        "short of it": short,
        "peers": list(peers) or ALONE,
        "idle share": idle_share(before, cpu_ticks()),
    }
    show("event_files", table, result, asked.json)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
