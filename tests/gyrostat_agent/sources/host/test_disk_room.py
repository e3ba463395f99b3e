"""What room there is for the next checkpoint, by the file systems' own words."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from checkpoint_saves import BEGIN, Saving

from gyrostat_agent.sources.checkpointtimes import CheckpointTimes
from gyrostat_agent.sources.diskroom import room

DISK = {"f_frsize": 100, "f_blocks": 1000, "f_bfree": 300, "f_bavail": 200, "f_files": 50, "f_favail": 5}


def told(sizes: dict[str, int], **disks: dict[str, int]) -> dict[str, float]:
    """By the disks of these roots; others are not there."""

    def statvfs(path: str) -> SimpleNamespace:
        if path not in disks:
            raise FileNotFoundError(path)
        return SimpleNamespace(**{**DISK, **disks[path]})

    return room(sizes, statvfs)


def test_what_root_alone_may_use_is_no_room() -> None:
    """200 of 900 blocks: those kept back are neither free nor used, as df counts."""
    assert told({"a": 5000}, a={}) == {
        "checkpoint_disk_free_bytes": 20000.0,
        "checkpoint_disk_free_share": pytest.approx(200 / 900),
        "checkpoint_inodes_free_share": 0.1,
        "checkpoint_room": 4.0,
    }


def test_the_fullest_of_several_counts() -> None:
    """Each number by itself: one may have bytes and no inodes."""
    found = told({"a": 5000, "b": 10}, a={"f_favail": 50}, b={"f_bavail": 1})
    assert found["checkpoint_disk_free_bytes"] == 100.0 and found["checkpoint_inodes_free_share"] == 0.1
    assert found["checkpoint_room"] == 4.0


@pytest.mark.parametrize(
    ("disk", "absent"),
    [
        ({"f_files": 0, "f_favail": 0}, "checkpoint_inodes_free_share"),
        ({"f_blocks": 0, "f_bfree": 0, "f_bavail": 0}, "checkpoint_disk_free_share"),
    ],
    ids=["no fixed number of files", "a file system that does not count"],
)
def test_what_a_file_system_does_not_count_is_not_told_as_none(disk: dict[str, int], absent: str) -> None:
    """0 of 0 is not full."""
    assert absent not in told({"a": 0}, a=disk)


def test_a_root_that_is_not_there_yet_tells_nothing() -> None:
    """The trainer makes it with its first checkpoint."""
    assert told({"a": 0}) == {}
    assert room({"\0": 0}) == {}


def test_before_a_checkpoint_was_timed_its_size_is_not_guessed(tmp_path: Path) -> None:
    """And from the first on it is by that one's bytes, of the real file system."""
    saving = Saving(tmp_path / "root")
    saving.folder("step-1", 1.5)
    assert "checkpoint_room" not in saving.times.look(saving.now).room
    saving.file("step-1/manifest.json", 5.5, 4000)
    assert len(saving.until(30)) == 1
    found, free = saving.times.look(saving.now).room, os.statvfs(tmp_path)
    assert found["checkpoint_room"] == pytest.approx(free.f_bavail * free.f_frsize / 4000, rel=0.05)
    assert 0.0 < found["checkpoint_disk_free_share"] < 1.0


def test_a_look_without_a_root_tells_no_room() -> None:
    """Nobody has named a folder."""
    assert CheckpointTimes().look(BEGIN).room == {}
