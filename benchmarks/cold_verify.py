"""Verifying a large checkpoint from the disk: how fast beside plain reading, and in how much memory.

    python benchmarks/cold_verify.py [GiB] [--folder DIR] [--json]

A Hugging Face checkpoint of so many GiB (8) in files of 1 GiB, written, synced, and dropped from the page cache before
every reading; read plainly in blocks of 1 MiB (what the disk gives), and verified by the child that the agent starts.
Its anonymous memory is looked at as it reads; mapped pages of the file are the kernel's, and go when somebody needs it.
Exit status 1 where that comes to 64 MB, or where verifying reaches less than 80 % of plain reading.
"""

import argparse
import json
import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gyrostat_agent.checkpoints.child import give_way
from gyrostat_agent.checkpoints.verifier import ChildVerifier
from gyrostat_rules.inputs import Fit

MOST_BYTES, LEAST_SHARE = 64e6, 0.8
FILE, BLOCK = 1 << 30, 1 << 20


def write(folder: Path, gib: int) -> list[Path]:
    """Finite numbers that are no pattern: a disk or a file system that packs them would be flattered."""
    folder.mkdir(parents=True)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 40, "log_history": []}))
    names = [f"model-{n:05}-of-{gib:05}.safetensors" for n in range(1, gib + 1)]
    weights = {f"layers.{n}.weight": name for n, name in enumerate(names)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    for tensor, name in weights.items():
        header = json.dumps({tensor: {"dtype": "F32", "shape": [FILE // 4], "data_offsets": [0, FILE]}}).encode()
        with open(folder / name, "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            for _ in range(FILE // BLOCK):
                noise = bytearray(os.urandom(BLOCK))
                noise[3::4] = b"\x3f" * (BLOCK // 4)  # sign and exponent: between 0.5 and 2, as weights are, and finite
                file.write(noise)
            os.fsync(file.fileno())
    return [folder / name for name in names]


def forget(files: list[Path]) -> None:
    """Out of the page cache: nothing of it is dirty any more."""
    for path in files:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def plain(files: list[Path]) -> None:
    """In a process that gives way as the verifying child does: what else runs counts for both."""
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        return
    give_way()
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while file.read(BLOCK):
                pass
    os._exit(0)


def verified(folder: Path) -> float:
    """The most anonymous bytes that the verifying child had while it read."""
    verifier, most, seen = ChildVerifier(), 0.0, []
    verifier.start(str(folder))
    while not seen:
        most = max(most, anonymous(verifier.pid))
        time.sleep(0.01)
        seen = verifier.results()
    verifier.close()
    assert seen[0].fit == Fit.VERIFIED, seen[0].why
    return most


def anonymous(pid: int | None) -> float:
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return sum(1024.0 * int(line.split()[1]) for line in file if line.startswith("RssAnon"))
    except OSError:
        return 0.0


def timed(files: list[Path], run: Callable[[], object]) -> tuple[float, object]:
    """Seconds of the wall clock, with nothing in the cache, and what came of it."""
    forget(files)
    began = time.perf_counter()
    found = run()
    return time.perf_counter() - began, found


def main() -> int:
    """Print speeds, their ratio and the memory; the exit status says whether the goals are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("gib", nargs="?", type=int, default=8)
    parser.add_argument("--folder", help="where to write it (default: the system's folder for temporary files)")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as root:
        folder = Path(root) / "checkpoint-40"
        files = write(folder, given.gib)
        reading, checking, most = [], [], 0.0
        for _ in range(2):  # they take turns
            reading.append(timed(files, lambda: plain(files))[0])
            seconds, found = timed(files, lambda: verified(folder))
            checking.append(seconds)
            most = max(most, float(str(found)))
    size = given.gib * FILE / 1e6
    share = min(reading) / min(checking)
    told = {"gib": given.gib, "read_mb_per_s": size / min(reading), "verified_mb_per_s": size / min(checking),
            "share": share, "anonymous_mb": most / 1e6}  # fmt: skip
    if given.json:
        print(json.dumps(told))
    else:
        speeds = (
            f"{told['verified_mb_per_s']:,.0f} MB/s, {share:.0%} of plain reading ({told['read_mb_per_s']:,.0f} MB/s)"
        )
        print(f"{given.gib} GiB, nothing cached: verified at {speeds}; anonymous memory {most / 1e6:.1f} MB")
    return 0 if most < MOST_BYTES and share >= LEAST_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
