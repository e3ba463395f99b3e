"""The record file: what a disk can do to it is counted and said, and what was written stays whole."""

import resource
import subprocess
from pathlib import Path

import pytest
from sdk_runs import frames, missing, parts, python, records

from gyrostat import Telemetry, recordfile
from gyrostat.wire import Hello, Kind, scan

VALUES = {f"series_{i}": float(i) for i in range(30)}


def test_every_part_begins_with_hello_and_schema(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader can begin at any part: it says who writes and what the columns are; no record is lost between."""
    monkeypatch.setattr(recordfile, "PART_BYTES", 2000)
    telemetry = Telemetry(run)
    for step in range(40):
        telemetry.record(step, **VALUES)
    assert len(parts(run)) > 5
    for part in parts(run):
        first, second, *rest = scan(part.read_bytes()).frames
        assert (first.kind, second.kind, rest[0].kind) == (Kind.HELLO, Kind.SCHEMA, Kind.RECORD)
        assert Hello.decode(first.body).incarnation == telemetry.incarnation
    assert [r.step for r in records(run)] == list(range(40))
    assert missing(frames(run)) == 0


def test_when_nobody_takes_records_away_counts_go_before_scalars(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past half the cap expert counts are dropped, near its end records; both are counted, and room comes back."""
    monkeypatch.setattr(recordfile, "PART_BYTES", 4000)
    monkeypatch.setattr(recordfile, "CAP_BYTES", 40_000)
    monkeypatch.setattr(recordfile, "_CHECK_EVERY", 4)
    telemetry = Telemetry(run)
    for step in range(300):
        telemetry.record(step, expert_load=[[1] * 64] * 2, **VALUES)
    counts = telemetry.counts
    kept = records(run)
    assert 0 < sum(r.load is not None for r in kept) < len(kept) < 300
    assert counts.loads_dropped >= sum(r.load is None for r in kept)
    assert counts.dropped == 300 - len(kept)
    assert "no sidecar takes records away" in counts.fault
    assert sum(p.stat().st_size for p in parts(run)) <= 40_000

    before = frames(run)
    for part in parts(run)[:-1]:
        part.unlink()
    for step in range(300, 320):
        telemetry.record(step, expert_load=[[1] * 64] * 2, **VALUES)
    late = [r for r in records(run) if r.step >= 300]
    assert late[-1].step == 319
    assert late[-1].load is not None
    assert telemetry.counts.fault == ""
    after = [f for f in frames(run) if f.sequence > before[-1].sequence]
    assert missing([before[-1], *after]) == telemetry.counts.dropped


def test_three_slow_writes_of_a_hundred_switch_it_off(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer does not pay for a sick disk: the third write over 50 ms is the last, and it is said why.

    The clock is turned, not the disk: no file system at hand is slow on demand.
    """
    ticks = iter(range(10**6))
    telemetry = Telemetry(run)
    telemetry.record(0, loss=1.0)
    monkeypatch.setattr(recordfile, "perf_counter", lambda: next(ticks) * 0.06)
    telemetry.record(1, loss=1.0)
    telemetry.record(2, loss=1.0)
    assert (telemetry.counts.slow, telemetry.counts.off) == (2, False)
    telemetry.record(3, loss=1.0)
    monkeypatch.undo()
    for step in range(4, 10):
        telemetry.record(step, loss=1.0)
    assert [r.step for r in records(run)] == [0, 1, 2, 3]
    assert telemetry.counts[:2] == (4, 6)
    assert telemetry.counts.off
    assert "3 of 100 writes took over 50 ms" in telemetry.counts.fault
    assert "put the run directory on tmpfs or a local disk" in telemetry.counts.fault


def test_slow_writes_far_apart_are_borne(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One slow write now and then is no sick disk."""
    clock = {"now": 0.0, "step": 0.0}

    def tick() -> float:
        clock["now"] += clock["step"]
        return clock["now"]

    monkeypatch.setattr(recordfile, "perf_counter", tick)
    telemetry = Telemetry(run)
    for step in range(500):
        clock["step"] = 0.06 if step % 60 == 0 else 0.0
        telemetry.record(step, loss=1.0)
    assert not telemetry.counts.off
    assert len(records(run)) == 500


def can_mount() -> bool:
    """True where this user may mount a file system that only one process sees."""
    asked = ["unshare", "--mount", "mount", "-t", "tmpfs", "gyrostat-test", "/mnt"]
    try:
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not can_mount(), reason="no right to mount a tmpfs: RLIMIT_FSIZE beside this test stands for it")
def test_a_full_disk_is_counted_and_got_over(run: Path) -> None:
    """On a disk that is full nothing is raised, losses are counted, the reader sees whole frames, and it recovers."""
    script = f"""
        import subprocess, sys
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from gyrostat import Telemetry
        from sdk_runs import frames, missing, parts, records
        run = Path({str(run)!r})
        command = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "gyrostat-test", str(run)]
        subprocess.run(command, check=True)  # seen by this process alone, gone with it
        values = {VALUES!r}
        telemetry = Telemetry(run)
        for step in range(2000):
            telemetry.record(step, **values)
        full = telemetry.counts
        assert full.dropped > 0 and "No space left" in full.fault or "fitted on the disk" in full.fault, full
        assert len(records(run)) == full.written == 2000 - full.dropped, full
        before = frames(run)
        for part in parts(run):
            part.unlink()
        for step in range(2000, 2200):
            telemetry.record(step, **values)
        assert records(run)[-1].step == 2199
        assert telemetry.counts.fault == ""
        lost_with_the_file = missing(before + frames(run)) - telemetry.counts.dropped
        assert 0 <= lost_with_the_file < 64, lost_with_the_file  # written after the unlink, before the next look
    """
    python(script, "unshare", "--mount")


def test_a_file_size_limit_is_counted_and_got_over(run: Path) -> None:
    """Where the system cuts a write short, the stump is taken back: the reader sees whole frames only."""
    script = f"""
        import resource
        from gyrostat import Telemetry
        values = {VALUES!r}
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        telemetry = Telemetry({str(run)!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        for step in range(100):
            telemetry.record(step, **values)
        counts = telemetry.counts
        assert counts.dropped > 0 and counts.written + counts.dropped == 100, counts
        assert "bytes fitted on the disk" in counts.fault or "File too large" in counts.fault, counts
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        for step in range(100, 110):
            telemetry.record(step, **values)
        assert telemetry.counts.fault == "", telemetry.counts
        print(telemetry.counts.dropped)
    """
    dropped = int(python(script))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 20_000
    assert [r.step for r in records(run)] == [s for s in range(110) if s < 100 - dropped or s >= 100]
    assert missing(frames(run)) == dropped
