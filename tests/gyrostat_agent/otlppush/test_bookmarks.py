"""How far a collector was told: kept over restarts, and never believed where it is not as we write it."""

import os
from pathlib import Path

import pytest

from gyrostat.wire import RunDirectory
from gyrostat_agent.otlppush.bookmarks import Bookmarks, Place
from gyrostat_agent.rundir import prepare


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return prepare(str(tmp_path / "run"))


def file(run: RunDirectory) -> Path:
    return Path(run.agent) / "otlp.json"


def test_a_place_is_kept(run: RunDirectory) -> None:
    """Of each signal, in a file that is its user's alone."""
    marks = Bookmarks(run)
    marks.move("logs", Place("00000012.3", "00000001.0"))
    marks.move("traces", Place("00000011.0"))
    again = Bookmarks(run)
    assert again.place("logs") == Place("00000012.3", "00000001.0") and again.place("traces") == Place("00000011.0")
    assert again.place("metrics") == Place() and file(run).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "said",
    [
        b"", b"{", b"[]", b"null", b"[" * 3000, b"\xff", b'{"logs": 7}', b'{"logs": {"told": "x", "needed": ""}}',
        b'{"logs": {"told": 7}}', b'{"logs": {"told": "1.0; DROP"}}', b'{"logs": {"told": "1.0"}}' + b" " * 9000,
    ],
)  # fmt: skip
def test_a_file_that_is_none_says_nothing(run: RunDirectory, said: bytes) -> None:
    """Whatever stands there: one begins as if nobody had been told."""
    file(run).write_bytes(said)
    file(run).chmod(0o600)
    assert Bookmarks(run).place("logs") == Place()


def test_others_cannot_lead_it_astray(run: RunDirectory, tmp_path: Path) -> None:
    """A file that others can write, or a link, is not read; a link at the draft's place is not written through."""
    good = b'{"logs": {"told": "00000001.0", "needed": ""}}'
    file(run).write_bytes(good)
    file(run).chmod(0o666)
    assert Bookmarks(run).place("logs") == Place()
    file(run).unlink()
    (tmp_path / "elsewhere").write_bytes(good)
    file(run).symlink_to(tmp_path / "elsewhere")
    assert Bookmarks(run).place("logs") == Place()
    os.symlink(tmp_path / "elsewhere", f"{file(run)}.draft")
    Bookmarks(run).move("logs", Place("00000009.0"))
    assert (tmp_path / "elsewhere").read_bytes() == good


def test_a_place_that_cannot_be_written_is_known_all_the_same(run: RunDirectory) -> None:
    """A full disk costs the next agent some telling twice, and this one nothing."""
    marks = Bookmarks(run)
    os.mkdir(f"{file(run)}.draft")
    marks.move("logs", Place("00000002.0"))
    assert marks.place("logs") == Place("00000002.0")
