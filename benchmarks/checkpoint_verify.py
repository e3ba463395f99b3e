"""How fast a checkpoint is verified: the fused pass against sha256 and against xxh3 alone, in one run.

    python benchmarks/checkpoint_verify.py [MiB]

One thread, a file in the page cache, each variant mapping the file anew; variants take turns, the best of the rounds
counts. Exit status 1 where the fused pass over float32 is below 5 x sha256 or below 80 % of xxh3.
"""

import hashlib
import mmap
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import xxhash

from gyrostat_agent.checkpoints.tensors import Tensor
from gyrostat_agent.checkpoints.verify import scan

ROUNDS = 7
GOALS = {"sha256": 5.0, "xxh3_128": 0.8}


def mapped(path: Path) -> memoryview:
    with open(path, "rb") as file:
        view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    view.madvise(mmap.MADV_SEQUENTIAL)
    return memoryview(view)


def fused(path: Path, dtype: str) -> None:
    data = mapped(path)
    _, suspects = scan(data, [Tensor("w", dtype, 0, len(data))])
    assert not suspects


def variants(wide: Path, narrow: Path) -> dict[str, Callable[[], object]]:
    return {
        "sha256": lambda: hashlib.sha256(mapped(wide)).hexdigest(),
        "xxh3_128": lambda: xxhash.xxh3_128_hexdigest(mapped(wide)),
        "fused F32": lambda: fused(wide, "F32"),
        "fused BF16": lambda: fused(narrow, "BF16"),
        "fused I64": lambda: fused(wide, "I64"),
    }


def measure(size: int, folder: Path) -> dict[str, float]:
    """Best MB/s of each variant."""
    wide, narrow = folder / "wide", folder / "narrow"
    values = np.random.default_rng(0).standard_normal(size // 4).astype("<f4")
    wide.write_bytes(values.tobytes())
    narrow.write_bytes(np.tile((values.view("<u4") >> 16).astype("<u2"), 2).tobytes())
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, run in variants(wide, narrow).items():
            start = time.perf_counter()
            run()
            best[name] = max(best.get(name, 0.0), size / 1e6 / (time.perf_counter() - start))
    return best


def main(arguments: list[str]) -> int:
    size = int(arguments[0] if arguments else 256) << 20
    with tempfile.TemporaryDirectory() as folder:
        best = measure(size, Path(folder))
    print(f"{size >> 20} MiB in page cache, best of {ROUNDS}")
    sha256, xxh3 = best["sha256"], best["xxh3_128"]
    for name, speed in best.items():
        print(f"{name:12} {speed:8,.0f} MB/s {speed / sha256:6.2f} x sha256 {speed / xxh3:7.0%} of xxh3")
    missed = [name for name, goal in GOALS.items() if best["fused F32"] < goal * best[name]]
    print("goals met" if not missed else f"goals missed against {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
