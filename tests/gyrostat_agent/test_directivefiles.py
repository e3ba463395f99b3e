"""Directive files: settled by name, never overwritten, whole for whoever reads them."""

import os
from pathlib import Path

import pytest

from gyrostat.wire import Directive, Resume, RunDirectory
from gyrostat_agent.actuators.directivefiles import DirectiveFiles
from gyrostat_agent.rundir import prepare
from gyrostat_rules.inputs import DeliveryWord


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """An empty run directory."""
    return prepare(str(tmp_path / "run"))


def directive(number: int, action: str = "i0001.1") -> str:
    return Directive(number, "run", "trainer", "0123456789ab", 0, action, 2e9, procedure="stop").encode().decode()


def rung(run: RunDirectory) -> int:
    return int.from_bytes(Path(run.bell).read_bytes(), "little")


def test_a_directive_is_laid_and_rung(run: RunDirectory) -> None:
    """Under its number, for its owner alone, with nothing else left behind."""
    assert DirectiveFiles(run).carry_out("i0001.1", {"directive": directive(3)}) is None
    assert Path(run.directive(3)).read_text() == directive(3) and rung(run) == 3
    assert sorted(os.listdir(run.directives)) == ["3.json", "bell"]
    assert os.stat(run.directive(3)).st_mode & 0o777 == 0o600 and os.stat(run.bell).st_mode & 0o777 == 0o600


def test_twice_is_once(run: RunDirectory) -> None:
    """Carrying the same intent out again changes nothing, not even the file."""
    files, orders = DirectiveFiles(run), {"directive": directive(1)}
    files.carry_out("i0001.1", orders)
    before = os.stat(run.directive(1)).st_ino
    assert files.carry_out("i0001.1", orders) is None
    assert os.stat(run.directive(1)).st_ino == before and rung(run) == 1


def test_a_number_that_is_taken_is_never_written_over(run: RunDirectory) -> None:
    """The action failed, and says why; the bell is not rung for it."""
    files = DirectiveFiles(run)
    files.carry_out("i0001.1", {"directive": directive(1)})
    failed = files.carry_out("i0002.1", {"directive": directive(1, "i0002.1")})
    assert failed is not None and (failed.action, failed.outcome) == ("i0002.1", DeliveryWord.FAILED)
    assert "says something else" in failed.reason and Path(run.directive(1)).read_text() == directive(1)


def test_the_bell_never_goes_back(run: RunDirectory) -> None:
    """An older intent completed after a crash must not hide the newer one."""
    files = DirectiveFiles(run)
    for number in (2, 1):
        files.carry_out("a", {"directive": directive(number)})
    assert rung(run) == 2


def test_a_resume_file_goes_first(run: RunDirectory) -> None:
    """A restart finds it whatever happens in between; a newer one replaces it."""
    files = DirectiveFiles(run)
    for number in (1, 2):
        resume = Resume(number, "run", "/c/1", "d", 5, 2e9).encode().decode()
        assert files.carry_out("a", {"directive": directive(number), "resume": resume}) is None
    assert Resume.decode(Path(run.resume).read_bytes()).number == 2


def test_a_folder_that_cannot_be_written(run: RunDirectory) -> None:
    """Failed, with the reason; nothing is raised into the loop."""
    os.rmdir(run.directives)
    failed = DirectiveFiles(run).carry_out("a", {"directive": directive(1)})
    assert failed is not None and "directive 1 cannot be written" in failed.reason


def test_newest_counts_files_and_bell(run: RunDirectory) -> None:
    """A number rung once is used up, though its file is gone; what is no directive does not count."""
    files = DirectiveFiles(run)
    assert files.newest() == 0
    files.carry_out("a", {"directive": directive(4)})
    os.unlink(run.directive(4))
    Path(run.directives, "9x.json").touch()
    assert files.newest() == 4
    Path(run.directive(6)).touch()
    assert files.newest() == 6


def test_a_draft_left_by_a_crash_is_no_hindrance(run: RunDirectory) -> None:
    """Half a draft is written anew."""
    Path(run.directives, ".1.json.draft").write_text("half")
    assert DirectiveFiles(run).carry_out("a", {"directive": directive(1)}) is None
    assert Path(run.directive(1)).read_text() == directive(1)
