"""Telemetry and the run directory as one finds it: nothing is raised, and what is wrong is said in words."""

import os
from pathlib import Path

import pytest
from sdk_runs import parts, python, records

import gyrostat
from gyrostat import Telemetry


def test_a_run_directory_that_is_not_there_is_made(tmp_path: Path) -> None:
    """The first record makes the folders, for this user alone, whatever the umask is."""
    run = tmp_path / "new" / "run"
    before = os.umask(0o002)
    try:
        telemetry = Telemetry(run)
        telemetry.record(1, loss=1.0)
    finally:
        os.umask(before)
    assert telemetry.counts.fault == ""
    assert [p.stat().st_mode & 0o777 for p in (run, run / "records", *parts(run))] == [0o700, 0o700, 0o600]


def replaced_by_link(run: Path) -> None:
    run.rename(run.parent / "real")
    run.symlink_to(run.parent / "real")


def replaced_by_file(run: Path) -> None:
    run.rmdir()
    run.write_text("not a folder")


def records_is_a_link(run: Path) -> None:
    (run.parent / "elsewhere").mkdir(mode=0o700)
    (run / "records").symlink_to(run.parent / "elsewhere")


def lock_is_a_fifo(run: Path) -> None:
    (run / "records").mkdir(mode=0o700)
    os.mkfifo(run / "records" / ".trainer-00000.lock")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda run: run.chmod(0o770), "mode 0770: others may write it; chmod go-w it"),
        (replaced_by_link, "is not a folder; give a real one, not a link"),
        (replaced_by_file, "File exists"),
        (records_is_a_link, "records is not a folder"),
        (lock_is_a_fifo, "lock is not a regular file"),
    ],
    ids=["group may write", "link", "file", "records is a link", "lock is a fifo"],
)
def test_a_run_directory_that_cannot_be_trusted_is_not_written(run: Path, spoil, says: str) -> None:  # type: ignore[no-untyped-def]
    """Nothing is raised, nothing is written, everything is counted, and the reason says what to do."""
    spoil(run)
    telemetry = Telemetry(run)
    for step in range(5):
        telemetry.record(step, loss=1.0)
    assert telemetry.counts[:2] == (0, 5)
    assert says in telemetry.counts.fault
    assert not list(run.parent.rglob("trainer-*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away: run as root to check foreign owners")
def test_a_run_directory_of_another_user_is_not_written(run: Path) -> None:
    """A folder that somebody else owns is refused with both UIDs."""
    os.chown(run, 1234, 1234)
    telemetry = Telemetry(run)
    telemetry.record(1, loss=1.0)
    assert "belongs to UID 1234, not to UID 0" in telemetry.counts.fault


def test_a_folder_that_may_not_be_written_is_said_and_got_over(run: Path) -> None:
    """A read-only folder raises nothing; once it may be written again, records arrive again."""
    script = f"""
        import os
        from gyrostat import Telemetry
        if os.geteuid() == 0:
            os.chown({str(run)!r}, 1234, 1234)
            os.setresuid(1234, 1234, 1234)
        os.chmod({str(run)!r}, 0o500)
        telemetry = Telemetry({str(run)!r})
        for step in range(10):
            telemetry.record(step, loss=1.0)
        assert telemetry.counts[:2] == (0, 10), telemetry.counts
        assert "Permission denied" in telemetry.counts.fault, telemetry.counts
        os.chmod({str(run)!r}, 0o700)
        for step in range(10, 200):
            telemetry.record(step, loss=1.0)
        assert telemetry.counts.written > 100 and telemetry.counts.fault == "", telemetry.counts
    """
    for folder in (run.parent, *run.parents[1:4]):
        if str(folder).startswith("/tmp/pytest-of"):
            folder.chmod(0o755)
    python(script)
    assert records(run)[-1].step == 199


def test_a_run_directory_that_is_taken_away_comes_back(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody removes the folder under a running trainer: nothing is raised, a new part begins in a new folder."""
    monkeypatch.setattr(gyrostat.recordfile, "_CHECK_EVERY", 4)
    telemetry = Telemetry(run)
    telemetry.record(1, loss=1.0)
    for part in (*parts(run), run / "records" / ".trainer-00000.lock"):
        part.unlink()
    (run / "records").rmdir()
    run.rmdir()
    for step in range(2, 20):
        telemetry.record(step, loss=1.0)
    assert records(run)[-1].step == 19
    assert len(records(run)) >= 14
    assert (run / "records" / ".trainer-00000.lock").exists()
