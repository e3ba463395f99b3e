"""How fast a TensorBoard event file is read, against the tensorboard package's own readers, in one run.

    python benchmarks/event_files.py [--quick] [--json]

Files of 1, 5 and 30 scalars a step, as a trainer writes them, by the package's own writer. Readers take turns; the
median of the rounds counts, in CPU time of this process. Beside them stands what checking each record's second
checksum would cost in Python: it is the reason why most are not. Exit status 1 where our steps of 30 scalars come
less than 15 times as fast as either of the package's readers. tensorboard is no dependency: where it is missing,
that is said, and nothing is measured.
"""

import random
import statistics
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
READERS = ("EventAccumulator", "EventFileLoader")
Read = Callable[[str], int]  # how many scalars it found


def write(path: Path, steps: int, tags: int) -> None:
    """A file as ``add_scalar`` writes it: an Event a scalar."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    rng, now = random.Random(0), 1.8e9
    with path.open("wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
        for step in range(1, steps + 1):
            for tag in range(tags):
                now += rng.random() / 1e4
                value = Summary.Value(
                    tag=f"train/{'abcdefghijklm'[: tag % 13]}_metric_{tag}", simple_value=rng.gauss(0, 1)
                )
                writer.write(Event(wall_time=now, step=step, summary=Summary(value=[value])).SerializeToString())
            now += 5.0


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


READERS: dict[str, Read] = {
    "gyrostat, steps": steps,
    "gyrostat, rows": rows,
    "EventAccumulator": accumulator,
    "EventFileLoader": loader,
    "checksums alone": checksums,
}


def measure(path: str, rounds: int) -> dict[str, float]:
    """Median microseconds of CPU time a scalar, of each reader."""
    costs: dict[str, list[float]] = {name: [] for name in READERS}
    for _ in range(rounds):
        for name, read in READERS.items():
            began = time.process_time()
            found = read(path)
            costs[name].append((time.process_time() - began) / found * 1e6)
    return {name: statistics.median(cost) for name, cost in costs.items()}


def main() -> int:
    asked = arguments(__doc__)
    if find_spec("tensorboard") is None:
        print("event_files: nothing measured: tensorboard is not installed here (pip install tensorboard)")
        return 0
    scalars, rounds, before = (9_000, 3, cpu_ticks()) if asked.quick else (60_000, 7, cpu_ticks())
    table: list[dict[str, object]] = []
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for tags in TAGS:
            path = Path(folder) / f"events.out.tfevents.{tags}"
            write(path, scalars // tags, tags)
            assert steps(str(path)) == rows(str(path)) == accumulator(str(path)) == scalars // tags * tags
            found = measure(str(path), rounds)
            ours = found["gyrostat, steps"]
            for name, cost in found.items():
                row = {"scalars a step": tags, "reader": name, "us a scalar": round(cost, 2)}
                table.append({**row, "x gyrostat, steps": round(cost / ours, 1)})
            ratios = {name: round(found[name] / ours, 1) for name in READERS}
    result = {
        "unit": "median CPU microseconds a scalar",
        "goal": f"{GOAL:g}x at {TAGS[-1]} scalars a step",
        "short of it": {name: ratio for name, ratio in ratios.items() if ratio < GOAL},
        "idle share": idle_share(before, cpu_ticks()),
    }
    show("event_files", table, result, asked.json)
    return 1 if min(ratios.values()) < GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
