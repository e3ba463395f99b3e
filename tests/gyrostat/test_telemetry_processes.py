"""Telemetry among processes and threads: safe to fork, one writer a rank, nothing acknowledged is lost."""

import mmap
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

from sdk_runs import frames, missing, parts, python, records

from gyrostat import Telemetry
from gyrostat.wire import scan


def test_a_forked_child_says_nothing(run: Path) -> None:
    """A data loader forked from the trainer writes nothing, closes nothing of its parent's, and says why."""
    telemetry = Telemetry(run)
    telemetry.record(1, loss=1.0)
    child = os.fork()
    if child == 0:
        telemetry.record(2, loss=2.0)
        telemetry.say()
        telemetry.flush()
        telemetry.close()
        os._exit(0 if telemetry.counts.off and "forked" in telemetry.counts.fault else 1)
    assert os.waitpid(child, 0)[1] == 0
    telemetry.record(3, loss=3.0)
    assert [r.step for r in records(run)] == [1, 3]
    assert missing(frames(run)) == 0


def test_a_forked_child_does_not_keep_its_dead_parents_lock(run: Path) -> None:
    """A data loader that outlives its killed trainer does not shut out the trainer started in its place."""
    script = f"""
        import os, signal, sys, time
        from gyrostat import Telemetry
        telemetry = Telemetry({str(run)!r})
        telemetry.record(1, loss=1.0)
        if os.fork() == 0:
            sys.stdout.write(f"{{os.getpid()}}\\n")
            sys.stdout.flush()
            sys.stdout.close()
            os.close(1)
            os.close(2)
            signal.pause()
        signal.pause()
    """
    trainer = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert trainer.stdout is not None
    with trainer.stdout as said:
        loader = int(said.readline())
    trainer.kill()
    trainer.wait()
    try:
        again = Telemetry(run)
        again.record(2, loss=2.0)
        assert again.counts.fault == ""
        assert [r.step for r in records(run)] == [1, 2]
    finally:
        os.kill(loader, signal.SIGKILL)


def test_a_second_process_of_the_same_rank_waits_for_the_first_to_end(run: Path) -> None:
    """Two processes that both call themselves rank 0: the second writes nothing and says why, until the first ends."""
    first, other = Telemetry(run), Telemetry(run, rank=1)
    first.record(1, loss=1.0)
    other.record(1, loss=1.0)
    script = f"""
        from gyrostat import Telemetry
        second = Telemetry({str(run)!r})
        second.record(1, loss=9.0)
        assert second.counts[:2] == (0, 1), second.counts
        print(second.counts.fault)
    """
    said = python(script)
    assert "another process writes the records of trainer 0" in said
    assert "give each process its own rank" in said
    assert sorted((r.rank, r.values["loss"]) for r in records(run)) == [(0, 1.0), (1, 1.0)]
    first.close()
    second = Telemetry(run)
    second.record(2, loss=2.0)
    assert second.counts.fault == ""


def test_four_threads_lose_nothing(run: Path) -> None:
    """Records from several threads all arrive whole, each with a number of its own."""
    telemetry = Telemetry(run)

    def tell(first: int) -> None:
        for step in range(first, first + 250):
            telemetry.record(step, loss=float(step), **{f"thread_{first}": 1.0})

    threads = [threading.Thread(target=tell, args=(i * 250,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    told = records(run)
    assert missing(frames(run)) == telemetry.counts.dropped
    assert len(told) == telemetry.counts.written == 1000 - telemetry.counts.dropped
    assert all(r.values["loss"] == r.step for r in told)
    assert telemetry.counts.dropped == 0


def test_a_thread_that_holds_telemetry_up_is_not_waited_for(run: Path) -> None:
    """Where the lock is not to be had, the record is dropped within the time of a slow write, and counted later."""
    telemetry = Telemetry(run)
    telemetry.record(1, loss=1.0)
    with telemetry._lock:
        began = time.monotonic()
        telemetry.record(2, loss=2.0)
        telemetry.flush()
        assert time.monotonic() - began < 2.0
        assert telemetry.counts.dropped == 2
        assert "another thread" in telemetry.counts.fault
    telemetry.record(3, loss=3.0)
    assert [r.step for r in records(run)] == [1, 3]
    assert missing(frames(run)) == telemetry.counts.dropped == 2


def test_a_lock_that_never_comes_back_switches_it_off(run: Path) -> None:
    """A thread that died with the lock costs the trainer a second in all, not 50 ms a step for ever."""
    telemetry = Telemetry(run)
    with telemetry._lock:
        for step in range(100):
            telemetry.record(step, loss=1.0)
        assert telemetry.counts.off
        assert telemetry.counts.dropped == 20


def test_a_child_of_a_telemetry_that_never_wrote_says_why_it_is_silent(run: Path) -> None:
    """Made before the fork and used after it: nothing is written, and the counts say so."""
    telemetry = Telemetry(run)
    child = os.fork()
    if child == 0:
        telemetry.record(1, loss=1.0)
        os._exit(0 if telemetry.counts.off and "forked" in telemetry.counts.fault else 1)
    assert os.waitpid(child, 0)[1] == 0
    telemetry.record(2, loss=1.0)
    assert [r.step for r in records(run)] == [2]


def test_every_acknowledged_record_outlives_a_kill(run: Path) -> None:
    """A trainer killed at any moment: each record whose call had returned is read back. Short form of the benchmark."""
    acknowledged = run.parent / "acknowledged"
    script = f"""
        import mmap
        from gyrostat import Telemetry
        telemetry = Telemetry({str(run)!r}, rank=int({{rank}}))
        with open({str(acknowledged)!r}, "r+b") as file:
            told = mmap.mmap(file.fileno(), 8)
        step = 0
        while True:
            step += 1
            telemetry.record(step, loss=float(step), grad_norm=1.0)
            told[:] = step.to_bytes(8, "little")
    """
    draw = random.Random(7)
    for rank in range(4):
        acknowledged.write_bytes(bytes(8))
        with acknowledged.open("r+b") as file:
            told = mmap.mmap(file.fileno(), 8)
        trainer = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script).replace("{rank}", str(rank))])
        want, deadline = draw.randrange(1, 2000), time.monotonic() + 60
        while int.from_bytes(told[:], "little") < want:
            assert trainer.poll() is None
            assert time.monotonic() < deadline
            os.sched_yield()
        trainer.kill()
        trainer.wait()
        last = int.from_bytes(told[:], "little")
        steps = [r.step for r in _whole_records(run) if r.rank == rank]
        assert steps[:last] == list(range(1, last + 1))


def _whole_records(run: Path):  # type: ignore[no-untyped-def]
    """Records of files whose last frame the kill may have cut."""
    for part in parts(run):
        data = part.read_bytes()
        part.write_bytes(data[: scan(data).consumed])
    return records(run)
