"""A rank that is killed and one that stalls, as real processes: what others see of them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def child(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """The trainer's command line in a process of its own, which does not outlive the block."""
    command = [sys.executable, "-m", "gyrostat_reference", "--run-dir", "", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(120, process.kill)
        limit.start()
        try:
            yield process
        finally:
            limit.cancel()
            process.kill()


def test_rank_killed_dies_by_sigkill() -> None:
    """Before its step, with nothing said but the fault's own line."""
    with child("--fault", "rank_killed@2", "--steps", "3") as process:
        out, err = process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert [line.split()[:2] for line in out.splitlines()] == [["step", "1"], ["fault", "rank_killed:"]]
    assert err == ""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="how a process waits is read from /proc, of Linux")
def test_rank_stall_stands_still() -> None:
    """It says the fault's line, then lives on and does nothing: no step, no end."""
    with child("--fault", "rank_stall@2", "--steps", "2") as process:
        assert process.stdout is not None
        assert any(line.startswith("fault rank_stall") for line in process.stdout)
        deadline = time.monotonic() + 60
        while not _is_asleep(process.pid) and process.poll() is None and time.monotonic() < deadline:
            os.sched_yield()
        assert process.poll() is None
        assert _is_asleep(process.pid)
        process.send_signal(signal.SIGINT)  # where it stands is what it says when it is woken
        out, err = process.communicate()
    assert out == ""
    assert "time.sleep" in err


def _is_asleep(pid: int) -> bool:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"
