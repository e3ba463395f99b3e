"""Uploads that are interrupted, race, or are of what cannot be archived."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from gyrostat_agent.archive import upload
from gyrostat_agent.archive.errors import ArchiveError, DamagedError, StoreError
from gyrostat_agent.archive.index import key_of
from gyrostat_agent.archive.pace import Pace
from gyrostat_agent.archive.progress import Silent
from gyrostat_agent.archive.store import Store, put, read, sizes

Run = Callable[..., Result]
PART = 8 << 20
_CALL = "import sys; from gyrostat_agent.cli.checkpointarchive import archive; archive(sys.argv[1:])"


class Then(Silent):
    """Does something once, when so many parts have been told of."""

    def __init__(self, parts: int, what: Callable[[], object]) -> None:
        self._left, self._what = parts, what

    def advance(self, count: int) -> None:
        self._left -= 1
        if self._left == 0:
            self._what()


def send(folder: Path, store: Store, progress: Silent | None = None, **labels: Any) -> upload.Archived:
    """Archive a folder."""
    return upload.archive(str(folder), store, upload.Labels(**labels), Pace(), progress or Silent())


def test_killed_in_the_middle_it_goes_on_and_sends_nothing_twice(bucket: Any, saved: Path, run: Run) -> None:
    """SIGKILL: no index is there, and what had arrived is not sent again."""
    (saved / "zz.bin").write_bytes(os.urandom(4 * PART))
    words = [sys.executable, "-c", _CALL, str(saved), "--to", bucket.url, "--bandwidth", "4MB"]
    child = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while len(bucket.server.puts(bucket.name)) < 3 and time.monotonic() < end:
            time.sleep(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    there = {key for key, size in sizes(bucket.store, saved.name) if size in (PART, PART // 2, 1000, 2)}
    assert there and not any(key.endswith("index.json") for key in there)
    assert "there is no archive; there is checkpoint-40/: an upload" in str(
        run("restore", bucket.url, "--into", saved.parent.parent / "back").exception
    )
    before = len(bucket.server.puts(bucket.name))
    assert run("archive", saved, "--to", bucket.url).exit_code == 0
    after = [key[key.index(saved.name) :] for key in bucket.server.puts(bucket.name)[before:]]
    assert not there & set(after) and len(after) == len(set(after))
    assert after[-1] == f"{saved.name}/index.json"
    total = sum(size for key, size in sizes(bucket.store, saved.name) if not key.endswith(".json"))
    assert total == sum(path.stat().st_size for path in saved.rglob("*") if path.is_file())


def test_a_truncated_part_is_sent_again(bucket: Any, saved: Path) -> None:
    """A part of another size than it should have is not taken for the part."""
    sent = send(saved, bucket.store)
    key, size = next((key, size) for key, size in sizes(bucket.store, saved.name) if size == PART)
    put(bucket.store, key, b"half")
    from gyrostat_agent.archive.store import delete

    delete(bucket.store, [f"{saved.name}/index.json"])
    assert send(saved, bucket.store).sent == size and sent.sent > 2 * PART


def test_of_two_uploads_of_one_step_one_wins_and_the_other_says_so(bucket: Any, saved: Path, tmp_path: Path) -> None:
    """The loser changes nothing of the winner's, and leaves nothing behind."""
    other = tmp_path / "elsewhere" / saved.name
    other.mkdir(parents=True)
    (other / "model.safetensors").write_bytes(b"others")
    won: list[upload.Archived] = []
    with pytest.raises(ArchiveError, match="is there already, with other contents"):
        send(saved, bucket.store, Then(2, lambda: won.append(send(other, bucket.store))))
    assert won[0].state == "archived"
    keys = {key for key, _ in sizes(bucket.store, saved.name)}
    digest = won[0].archive.files[0].parts[0]
    assert keys == {f"{saved.name}/index.json", key_of(f"{saved.name}/", 0, 0, digest)}


def test_two_uploads_of_the_same_are_one_archive(bucket: Any, saved: Path) -> None:
    """Whoever is second finds it there: status 0, and the archive is whole."""
    states: list[str] = []
    threads = [threading.Thread(target=lambda: states.append(send(saved, bucket.store).state)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(states) == ["archived", "there"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: os.truncate(folder / "model.safetensors", 21 << 20), id="longer"),
        pytest.param(lambda folder: os.truncate(folder / "model.safetensors", 9 << 20), id="shorter"),
        pytest.param(lambda folder: (folder / "空").unlink(), id="one file less"),
        pytest.param(lambda folder: (folder / "new").write_bytes(b"1"), id="one file more"),
        pytest.param(lambda folder: os.replace(folder / "空", folder / "trainer_state.json"), id="replaced"),
    ],
)
def test_a_folder_that_changes_meanwhile_is_not_archived(
    change: Callable[[Path], object], saved: Path, tmp_path: Path
) -> None:
    """Whatever changes, there is no index, and the sentence says what to do."""
    from gyrostat_agent.archive.store import opened

    store = opened(f"file://{tmp_path}/shared", make=True)
    with pytest.raises(ArchiveError, match=r"was not archived: .*(changed while|missing)"):
        send(saved, store, Then(2, lambda: change(saved)))
    assert read(store, f"{saved.name}/index.json", 1 << 20) is None


def test_a_file_that_is_swapped_while_it_is_read_is_found_out(saved: Path, tmp_path: Path) -> None:
    """Even where the right one is back when all has been read, and the folder looks as before."""
    from gyrostat_agent.archive.store import opened

    weights, aside, wrong = saved / "model.safetensors", tmp_path / "aside", tmp_path / "wrong"
    wrong.write_bytes(bytes(weights.stat().st_size))

    def swap() -> None:
        weights.rename(aside)
        wrong.rename(weights)

    class Swapping(Then):
        """Puts the right file back with the weights' last part."""

        def advance(self, count: int) -> None:
            super().advance(count)
            if count == PART // 2:
                weights.rename(wrong)
                aside.rename(weights)

    store = opened(f"file://{tmp_path}/shared", make=True)
    with pytest.raises(ArchiveError, match=r"model\.safetensors changed while it was read"):
        send(saved, store, Swapping(1, swap))
    assert read(store, f"{saved.name}/index.json", 1 << 20) is None


@pytest.mark.parametrize(
    ("make", "told"),
    [
        pytest.param(lambda place: place.symlink_to("/etc/passwd"), "is a link", id="link"),
        pytest.param(lambda place: place.symlink_to("/etc"), "is a link", id="link to a folder"),
        pytest.param(lambda place: os.mkfifo(place), "is no regular file", id="fifo"),
        pytest.param(lambda place: place.with_name("a\nb").write_bytes(b""), "not a path of plain names", id="newline"),
        pytest.param(lambda place: open(os.fsencode(place) + b"\xff", "wb").close(), "not a path of plain names",
                     id="not UTF-8"),
        pytest.param(lambda place: place.with_suffix(".distcp").write_bytes(b"1"), "the save has not ended", id="DCP"),
    ],
)  # fmt: skip
def test_what_could_not_be_restored_is_not_archived(
    make: Callable[[Path], object], told: str, saved: Path, tmp_path: Path
) -> None:
    """Links, devices, names of no use elsewhere and saves without an end are refused before anything is sent."""
    from gyrostat_agent.archive.store import opened

    make(saved / "odd")
    store = opened(f"file://{tmp_path}/shared", make=True)
    with pytest.raises(ArchiveError, match=told):
        send(saved, store)
    assert not list(sizes(store, ""))


def test_tags_are_added_to_an_archive_that_is_there(bucket: Any, saved: Path, tmp_path: Path) -> None:
    """Nothing is sent again for them; a shared disk, which cannot, says so."""
    from gyrostat_agent.archive.store import opened

    send(saved, bucket.store, tags=("nightly",))
    again = send(saved, bucket.store, tags=("stable", "nightly"))
    assert (again.state, again.sent, again.archive.tags) == ("there", 0, ("nightly", "stable"))
    disk = opened(f"file://{tmp_path}/shared", make=True)
    send(saved, disk)
    with pytest.raises(StoreError, match="tag it when it is archived"):
        send(saved, disk, tags=("stable",))


def test_cold_parts_have_an_index_that_is_read_at_once(bucket: Any, saved: Path, run: Run, tmp_path: Path) -> None:
    """The class is that of the parts alone; restoring says that they must be brought back first."""
    assert run("archive", saved, "--to", bucket.url, "--storage-class", "GLACIER").exit_code == 0
    listed = bucket.server.ask("GET", f"/{bucket.name}?list-type=2")
    classes = [one.partition("</StorageClass>")[0] for one in listed.split("<StorageClass>")[1:]]
    assert sorted(set(classes)) == ["GLACIER", "STANDARD"] and classes.count("STANDARD") == 1
    assert "checkpoint-40" in run("archives", bucket.url).stdout
    cold = run("restore", bucket.url, "--into", tmp_path / "back")
    assert "cold storage class; have it brought back first" in str(cold.exception)


def test_a_checkpoint_that_is_not_what_its_manifest_says_is_refused(tmp_path: Path) -> None:
    """The reference trainer's manifest has digests: a damaged checkpoint gets no archive."""
    from checkpoint_folders import written

    from gyrostat_agent.archive.store import opened

    folder = written(tmp_path)
    store = opened(f"file://{tmp_path}/shared", make=True)
    assert send(folder, store).archive.format == "gyrostat-reference/1"
    weights = next(folder.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with pytest.raises(DamagedError, match="is not what the checkpoint's manifest says"):
        send(folder, opened(f"file://{tmp_path}/second", make=True))
