"""Checkpoints to verify: written as the reference trainer writes them, small, without torch."""

import json
import os
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from gyrostat_agent.checkpoints import ChildVerifier
from gyrostat_rules.inputs import CheckpointSeen

Tensors = Mapping[str, tuple[str, bytes]]

WIDTHS = {"F64": 8, "F32": 4, "C64": 8, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I64": 8}
BIG = 512 << 20  # bytes, sparse: long enough under the child's hands to be spoilt there


def digest_of(data: bytes) -> str:
    return "xxh3_128:" + xxhash.xxh3_128_hexdigest(data)


def packed(tensors: Tensors) -> bytes:
    """The bytes of a safetensors file."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, data) in tensors.items():
        shape = [len(data) // WIDTHS.get(dtype, 1)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + b"".join(data for _, data in tensors.values())


def floats(count: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).standard_normal(count).astype("<f4").tobytes()


def contents(seed: int = 0) -> dict[str, bytes]:
    """The three files of a small good checkpoint."""
    weights = {"embed.weight": ("F32", floats(300, seed)), "head.weight": ("F32", floats(200, seed + 1))}
    return {
        "model.safetensors": packed(weights),
        "optimizer.safetensors": packed({"exp_avg/head.weight": ("F32", floats(200, seed + 2))}),
        "state.json": json.dumps({"random": "00ff", "averages": {"reward": 0.5}}).encode(),
    }


def manifest_of(files: Mapping[str, bytes], step: int = 20, **other: Any) -> dict[str, Any]:
    named = {name: {"bytes": len(data), "digest": digest_of(data)} for name, data in files.items()}
    return {
        "format": "gyrostat-reference/1", "step": step, "segment": 1, "last_directive": 7, "time": 1.75e9,
        "data_cursor": 320, "data_seen": 320, "passed_over": [3], "knobs": {"lr": 0.001}, "files": named, **other,
    }  # fmt: skip


def written(root: Path, step: int = 20, files: Mapping[str, bytes] | None = None, **other: Any) -> Path:
    """A checkpoint that appears under ``root`` in one rename, as the trainer's do."""
    files = contents() if files is None else files
    folder = root / f"step-{step:08d}"
    unfinished = root / f".{folder.name}.tmp"
    unfinished.mkdir(parents=True)
    for name, data in files.items():
        (unfinished / name).write_bytes(data)
    (unfinished / "manifest.json").write_text(json.dumps(manifest_of(files, step, **other)))
    return unfinished.rename(folder)


def big(root: Path, step: int = 90) -> Path:
    """A checkpoint whose model is ``BIG`` bytes of zeros and takes no room on the disk."""
    folder = written(root, step)
    head = packed({"w": ("F32", b"")}).replace(b"[0]", b"[%d]" % ((BIG - 4096) // 4))
    head = head.replace(b"[0, 0]", b"[0, %d]" % (BIG - 4096))
    head = struct.pack("<Q", 4096 - 8) + head[8:].ljust(4096 - 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(head)
        file.truncate(BIG)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["model.safetensors"]["bytes"] = BIG
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def until(condition: Callable[[], Any], what: str, seconds: float = 20.0) -> Any:
    """The first true answer of ``condition``; fails after ``seconds``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := condition():
            return answer
        os.sched_yield()
        time.sleep(0.0005)
    raise AssertionError(f"waited {seconds} s for {what}")


def verdicts(verifier: ChildVerifier, count: int) -> dict[str, CheckpointSeen]:
    """By folder name, once there are ``count`` of them."""
    found: dict[str, CheckpointSeen] = {}

    def enough() -> bool:
        found.update({os.path.basename(seen.path): seen for seen in verifier.results()})
        return len(found) >= count

    until(enough, f"{count} verdicts")
    return found


@contextmanager
def child_verifier(idle_s: float = 60.0) -> Iterator[ChildVerifier]:
    verifier = ChildVerifier(idle_s)
    try:
        yield verifier
    finally:
        verifier.close()
