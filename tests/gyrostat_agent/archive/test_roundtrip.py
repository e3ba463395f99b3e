"""What is archived comes back bit for bit, from S3 and from a shared disk."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by its path in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=["s3", "disk"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A prefix in S3, or a folder of a disk."""
    return str(request.getfixturevalue("bucket").url) if request.param == "s3" else f"file://{tmp_path}/shared 盘"


def test_what_is_archived_comes_back_bit_for_bit(url: str, saved: Path, run: Run, tmp_path: Path) -> None:
    """Nested folders, Chinese names, a file of 0 bytes; and the index says what it is."""
    sent = run("archive", saved, "--to", url, "--tag", "stable", "--run", "run-7", "--json")
    assert sent.exit_code == 0, sent.output
    told = json.loads(sent.stdout)
    assert (told["state"], told["step"], told["format"]) == ("archived", 40, "huggingface")
    assert (told["run"], told["tags"], told["files"]) == ("run-7", ["stable"], 4)
    back = run("restore", url, "--into", tmp_path / "back", "--tag", "stable", "--json")
    assert back.exit_code == 0, back.output
    assert json.loads(back.stdout)["digest"] == told["digest"]
    assert contents(tmp_path / "back" / "checkpoint-40") == contents(saved)
    assert [path.name for path in (tmp_path / "back").iterdir()] == ["checkpoint-40"]


def test_the_same_again_sends_nothing(url: str, saved: Path, run: Run) -> None:
    """Archived twice is archived once, and says so with status 0."""
    first, second = (json.loads(run("archive", saved, "--to", url, "--json").stdout) for _ in range(2))
    assert (first["sent_bytes"], second["sent_bytes"]) == (first["bytes"], 0)
    assert second["state"] == "there" and second["digest"] == first["digest"]


def test_what_lies_there_is_never_overwritten(url: str, saved: Path, run: Run) -> None:
    """Restoring over a folder is refused, and the folder is as it was."""
    run("archive", saved, "--to", url)
    before = contents(saved)
    again = run("restore", url, "--into", saved.parent)
    assert "is there already, and nothing is overwritten" in str(again.exception)
    assert contents(saved) == before and [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_an_archive_is_chosen_by_step_or_tag_and_never_guessed(url: str, saved: Path, run: Run, tmp_path: Path) -> None:
    """The newest of a tag; the one of a step; of several none, but all are named."""
    run("archive", saved, "--to", url, "--tag", "stable")
    later = saved.rename(saved.parent / "checkpoint-50")
    run("archive", later, "--to", url, "--tag", "stable")
    assert "there are 2 archives" in str(run("restore", url, "--into", tmp_path / "a").exception)
    assert "there is no archive of step 60" in str(
        run("restore", url, "--into", tmp_path / "a", "--step", 60).exception
    )
    assert run("restore", url, "--into", tmp_path / "a", "--step", 40).exit_code == 0
    assert run("restore", url, "--into", tmp_path / "a", "--tag", "stable").exit_code == 0
    assert run("restore", f"{url}/checkpoint-50", "--into", tmp_path / "b").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["checkpoint-40", "checkpoint-50"]


def test_archives_are_listed_and_an_unfinished_upload_is_none(url: str, saved: Path, run: Run) -> None:
    """What has no index is said to be unfinished, and hides nothing."""
    from gyrostat_agent.archive.store import opened, put

    run("archive", saved, "--to", url, "--tag", "stable")
    put(opened(url, make=True), "checkpoint-60/00000/000000-" + "0" * 32, b"x")
    listed = run("archives", url)
    assert listed.exit_code == 0
    assert "checkpoint-40  step 40  huggingface  4 files" in listed.stdout and "stable" in listed.stdout
    assert "checkpoint-60  an upload that has not ended" in listed.stdout
