"""Restoring trusts nothing that lies in the archive, and leaves nothing half done under a checkpoint's name."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gyrostat_agent.archive import upload
from gyrostat_agent.archive.catalogue import chosen, listed
from gyrostat_agent.archive.draft import opened_draft, placed
from gyrostat_agent.archive.errors import ArchiveError, DamagedError
from gyrostat_agent.archive.index import INDEX
from gyrostat_agent.archive.pace import Pace
from gyrostat_agent.archive.progress import Silent
from gyrostat_agent.archive.restore import Restored, restore
from gyrostat_agent.archive.store import Store, delete, opened, part, put, read, sizes

PART = 8 << 20
NAME = "checkpoint-40"


class Broken(Silent):
    """Ends the transfer, as a signal would, after so many parts."""

    def __init__(self, parts: int) -> None:
        self._left = parts

    def advance(self, count: int) -> None:
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt


@pytest.fixture
def archived(saved: Path, tmp_path: Path) -> Store:
    """A checkpoint that is archived on a shared disk."""
    store = opened(f"file://{tmp_path}/shared", make=True)
    upload.archive(str(saved), store, upload.Labels(), Pace(), Silent())
    return store


def back(store: Store, into: Path, progress: Silent | None = None) -> Restored:
    """Restore the only archive there is."""
    base, index = chosen(listed(store), store.url, None, None)
    return restore(store, base, index, str(into), Pace(), progress or Silent())


def files(into: Path) -> list[str]:
    """What lies in a folder, without drafts."""
    return [path.name for path in into.iterdir() if not path.name.startswith(".restoring-")] if into.exists() else []


def test_a_flipped_byte_is_refused(bucket: Any, saved: Path, tmp_path: Path) -> None:
    """One bit of one object in S3: the sentence names it, and no checkpoint appears."""
    upload.archive(str(saved), bucket.store, upload.Labels(), Pace(), Silent())
    key, size = next((key, size) for key, size in sizes(bucket.store, NAME) if size == PART)
    body = bytearray(part(bucket.store, key, size) or b"")
    body[1234] ^= 1
    put(bucket.store, key, bytes(body))
    with pytest.raises(DamagedError, match=f"part {key} is not what was archived"):
        back(bucket.store, tmp_path / "back")
    assert not files(tmp_path / "back")


def test_a_part_that_is_gone_or_cut_short_is_refused(archived: Store, tmp_path: Path) -> None:
    """Neither is filled up with zeros."""
    key = next(key for key, size in sizes(archived, NAME) if size == PART)
    put(archived, key, b"short")
    with pytest.raises(DamagedError, match=r"is not what was archived \(5 of 8388608 bytes\)"):
        back(archived, tmp_path / "back")
    delete(archived, [key])
    with pytest.raises(DamagedError, match="is gone"):
        back(archived, tmp_path / "back")
    assert not files(tmp_path / "back")


def said(**changes: Any) -> Callable[[dict[str, Any]], None]:
    """An index that says other things of itself."""
    return lambda index: index.update(changes)


def of_file(**changes: Any) -> Callable[[dict[str, Any]], None]:
    """An index that says other things of its first file."""
    return lambda index: index["files"][0].update(changes)


@pytest.mark.parametrize(
    ("lie", "told"),
    [
        pytest.param(of_file(path="../x"), "not a path of plain names", id="out of the folder"),
        pytest.param(of_file(path="a/../../x"), "not a path of plain names", id="out by a detour"),
        pytest.param(of_file(path="/etc/x"), "not a path of plain names", id="absolute"),
        pytest.param(of_file(path="a\0b"), "not a path of plain names", id="NUL"),
        pytest.param(of_file(path="\ud800"), "not", id="half a character"),
        pytest.param(of_file(path="a/" * 40 + "a"), "not a path of at most", id="deep"),
        pytest.param(of_file(path="空"), "a file is named twice", id="twice"),
        pytest.param(of_file(path="空/x"), "both as a file and as a folder", id="file and folder"),
        pytest.param(of_file(path=7), "not a path", id="no text"),
        pytest.param(said(name="../x"), "is not a plain name", id="archive out of the folder"),
        pytest.param(said(name="other"), "its index is that of other", id="archive of another name"),
        pytest.param(of_file(bytes=-1), "not a whole number", id="size below 0"),
        pytest.param(of_file(bytes=2**60), "not a whole number", id="absurd size"),
        pytest.param(of_file(bytes=1), "its digest and size are not those", id="another size"),
        pytest.param(of_file(bytes=PART * 9), "in 1 parts", id="too few parts"),
        pytest.param(of_file(digest="xxh3_128:" + "0" * 32), "its digest and size are not those", id="digest"),
        pytest.param(of_file(digest="sha1:0"), "has no digest", id="digest of another kind"),
        pytest.param(of_file(parts=["../../../../etc/passwd"]), "no digest of a part", id="part elsewhere"),
        pytest.param(said(part_bytes=1 << 40), "are believed", id="huge parts"),
        pytest.param(said(files=[{}] * 10_001), "at most 10000", id="too many files"),
        pytest.param(said(archive="gyrostat-archive/9"), "this Gyrostat reads", id="from the future"),
        pytest.param(said(archived_at=float("inf")), "not a finite number", id="no number"),
        pytest.param(lambda index: index.pop("digest"), "says nothing of 'digest'", id="no digest"),
    ],
)
def test_an_index_that_lies_is_not_believed(
    lie: Callable[[dict[str, Any]], object], told: str, archived: Store, tmp_path: Path
) -> None:
    """Nothing is fetched on its word, and nothing is written anywhere."""
    body = read(archived, f"{NAME}/{INDEX}", 1 << 20)
    assert body is not None
    index = json.loads(body.data)
    lie(index)
    put(archived, f"{NAME}/{INDEX}", json.dumps(index).encode())
    with pytest.raises(ArchiveError, match=told):
        back(archived, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_an_index_whose_file_digest_lies_consistently_is_found_out(archived: Store, tmp_path: Path) -> None:
    """Parts that are right do not stand for a file that is wrong."""
    from gyrostat_agent.archive.index import encode, fetched

    found = fetched(archived, f"{NAME}/")
    assert found is not None
    first = found[0].files[0]._replace(digest="xxh3_128:" + "0" * 32)
    put(archived, f"{NAME}/{INDEX}", encode(found[0]._replace(files=(first, *found[0].files[1:]))))
    with pytest.raises(DamagedError, match="has another digest than the archive's index says"):
        back(archived, tmp_path / "back")
    assert not files(tmp_path / "back")


def test_an_interrupted_restore_goes_on(archived: Store, saved: Path, tmp_path: Path) -> None:
    """What had come is proven and kept; nothing bears the checkpoint's name until it is whole."""
    into = tmp_path / "back"
    with pytest.raises(KeyboardInterrupt):
        back(archived, into, Broken(3))
    assert not files(into)
    spoilt = next(into.glob(".restoring-*/model.safetensors"))
    with spoilt.open("r+b") as file:
        file.write(b"spoilt")
    total = sum(path.stat().st_size for path in saved.rglob("*") if path.is_file())
    fetched = back(archived, into).fetched
    assert PART <= fetched < total
    assert (into / NAME / "model.safetensors").read_bytes() == (saved / "model.safetensors").read_bytes()
    assert [path.name for path in into.iterdir()] == [NAME]


def test_a_link_in_the_draft_is_not_followed(archived: Store, tmp_path: Path) -> None:
    """Whoever can write into the folder cannot have the restore write elsewhere."""
    into, victim = tmp_path / "back", tmp_path / "victim"
    with pytest.raises(KeyboardInterrupt):
        back(archived, into, Broken(1))
    draft = next(into.glob(".restoring-*"))
    shutil.rmtree(draft / "global_step40")
    victim.mkdir()
    (draft / "global_step40").symlink_to(victim)
    with pytest.raises(ArchiveError, match="is a link"):
        back(archived, into)
    assert not list(victim.iterdir()) and not files(into)


@pytest.mark.parametrize("path", ["sub/x", "x"])
def test_a_link_that_comes_later_is_not_followed_either(path: str, archived: Store, tmp_path: Path) -> None:
    """After the draft was looked at: each step into it is refused by itself."""
    _, index = chosen(listed(archived), archived.url, None, None)
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "x").write_bytes(b"mine")
    with opened_draft(str(tmp_path / "back"), index) as draft:
        os.symlink(victim if "/" in path else victim / "x", path.partition("/")[0], dir_fd=draft.folder)
        with pytest.raises(OSError), placed(draft, path):
            pass
    assert (victim / "x").read_bytes() == b"mine"


def test_two_restores_of_one_archive_do_not_meet(archived: Store, tmp_path: Path) -> None:
    """The second is told of the first."""
    _, index = chosen(listed(archived), archived.url, None, None)
    with opened_draft(str(tmp_path / "back"), index), pytest.raises(ArchiveError, match="by another restore"):
        back(archived, tmp_path / "back")


def test_a_file_that_is_not_the_archives_is_not_put_in_place(archived: Store, tmp_path: Path) -> None:
    """What somebody laid into the draft does not become part of a checkpoint."""
    into = tmp_path / "back"
    with pytest.raises(KeyboardInterrupt):
        back(archived, into, Broken(1))
    (next(into.glob(".restoring-*")) / "evil.py").write_bytes(b"")
    with pytest.raises(ArchiveError, match=r"holds, or lacks, evil\.py; delete that folder"):
        back(archived, into)
    assert not files(into)


def test_room_is_asked_for_before_anything_is_fetched(archived: Store, tmp_path: Path) -> None:
    """An archive larger than the disk: the sentence says by how much, and nothing was written."""
    from gyrostat_agent.archive.index import File

    base, index = chosen(listed(archived), archived.url, None, None)
    disk = os.statvfs(tmp_path)
    large = disk.f_bavail * disk.f_frsize + (1 << 30)
    huge = index._replace(files=(File("x", large, "xxh3_128:" + "0" * 32, ()),))
    with pytest.raises(ArchiveError, match=r"the disk is too full by \d+ of"):
        restore(archived, base, huge, str(tmp_path / "back"), Pace(), Silent())
    assert not files(tmp_path / "back")
