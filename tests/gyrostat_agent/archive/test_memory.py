"""What an upload and a restore hold in memory."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gyrostat_agent.archive.store import put

LIMIT = 64 << 20
_MEASURED = """
import contextlib, io, json, sys
from gyrostat_agent.archive import restore, upload, catalogue
from gyrostat_agent.archive.store import opened, read
from gyrostat_agent.cli import checkpointarchive

def said(name):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(name))

read(opened(sys.argv[1]), "warm", 9)  # the client's threads are there
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here
before = said("VmRSS")
getattr(checkpointarchive, sys.argv[2])(sys.argv[3:], standalone_mode=False)
print(json.dumps(said("VmHWM") - before))
"""


def grown(*words: str) -> int:
    """Bytes that a command's process grows by at most, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", _MEASURED, *words], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return int(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "size", [100 << 20, pytest.param(300 << 20, marks=pytest.mark.full)], ids=["100 MiB", "300 MiB"]
)
def test_a_large_file_passes_through_less_than_64_mib(size: int, bucket: Any, tmp_path: Path) -> None:
    """Sent to S3 and fetched from it: the resident memory's peak grows by less than 64 MiB."""
    folder = tmp_path / "ckpts" / "step-1"
    folder.mkdir(parents=True)
    with (folder / "model.safetensors").open("wb") as file:
        for _ in range(3):
            file.write(os.urandom(1 << 20))
        file.truncate(size)
    put(bucket.store, "warm", b"1")
    sent = grown(bucket.url, "archive", str(folder), "--to", bucket.url)
    fetched = grown(bucket.url, "restore", bucket.url + "/step-1", "--into", str(tmp_path / "back"))
    print(f"archive grew by {sent >> 20} MiB, restore by {fetched >> 20} MiB")
    assert 0 < sent < LIMIT and 0 < fetched < LIMIT
