"""Where checkpoints are looked for: roots that come and go, that are none, and that only a trainer knows."""

import os
import shutil
from pathlib import Path

import pytest
from checkpoint_saves import BEGIN, Saving

from gyrostat_agent.sources.checkpointtimes import CheckpointTimes


def test_a_root_may_come_and_go(tmp_path: Path) -> None:
    """The trainer makes it with its first checkpoint."""
    saving = Saving(tmp_path / "later")
    assert saving.until(10) == [] and saving.fault == ""
    saving.folder("step-1", 11.5)
    saving.file("step-1/model", 21.5)
    assert len(saving.until(200)) == 1
    shutil.rmtree(saving.root)
    assert saving.until(210) == [] and saving.fault == ""


def test_a_root_that_is_none_is_said_in_words(tmp_path: Path) -> None:
    """And that it is mended."""
    saving = Saving(tmp_path / "file")
    saving.root.write_text("")
    saving.until(3)
    assert saving.fault == f"checkpoints in {saving.root} cannot be timed: Not a directory"
    saving.root.unlink()
    saving.until(5)
    assert saving.fault == ""


@pytest.mark.parametrize("path", ["\0", "a\0b"])
def test_a_root_that_is_no_path(path: str) -> None:
    """A trainer may say anything in its Hello."""
    times = CheckpointTimes()
    times.set_root(path)
    (fault,) = times.look(BEGIN).faults.values()
    assert "cannot be timed" in fault and "\0" not in fault


def test_the_trainers_own_root_is_looked_at_beside_those_given(tmp_path: Path) -> None:
    """Once, where both are the same; the last it said, where it says another."""
    times = CheckpointTimes([str(tmp_path / "given")])
    times.set_root(str(tmp_path / "given"))
    assert times.roots == (str(tmp_path / "given"),)
    times.set_root(str(tmp_path / "said"))
    times.set_root(str(tmp_path / "again"))
    assert times.roots == (str(tmp_path / "given"), str(tmp_path / "again"))


def test_a_root_whose_name_is_not_utf8(tmp_path: Path) -> None:
    """Whatever is said of it can be stored and shown."""
    odd = Saving(Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xff")))
    odd.root.write_text("")
    odd.until(1)
    assert odd.fault == f"checkpoints in {tmp_path}/b? cannot be timed: Not a directory"
