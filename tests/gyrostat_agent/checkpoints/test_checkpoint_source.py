import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkpoint_folders import child_verifier, contents, until, written

from gyrostat_agent.checkpoints import CheckpointSource, InlineVerifier
from gyrostat_rules.inputs import CheckpointSeen


@pytest.fixture
def source(tmp_path: Path) -> Iterator[CheckpointSource]:
    """A source over ``tmp_path / "root"``, which does not exist yet, that verifies at once."""
    made = CheckpointSource(InlineVerifier())
    made.set_root(str(tmp_path / "root"))
    yield made
    made.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def polled(source: CheckpointSource) -> list[tuple[str, str, str]]:
    source.poll()
    return [(os.path.basename(seen.path), seen.fit, seen.why) for seen in source.drain()]


def test_root_that_appears_later(source: CheckpointSource, root: Path) -> None:
    """No root and an empty root hold nothing, silently; what comes into it is verified, once."""
    assert polled(source) == []
    root.mkdir()
    assert polled(source) == []
    written(root, 1)
    assert polled(source) == [("step-00000001", "verified", "")]
    assert polled(source) == []
    assert source.fault == ""


def test_no_root_is_looked_at_before_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a Hello names the root, nothing is found, not even in the folder that the sidecar runs in."""
    written(tmp_path)
    monkeypatch.chdir(tmp_path)
    source = CheckpointSource(InlineVerifier())
    assert polled(source) == []
    source.set_root(str(tmp_path))
    assert [seen.fit for seen in source.drain()] == ["verified"]
    source.close()


def test_newest_first(source: CheckpointSource, root: Path) -> None:
    """After a start it is the newest checkpoint that is judged first."""
    for step, at in ((1, 300), (2, 100), (3, 200)):
        os.utime(written(root, step) / "manifest.json", (at, at))
    assert [name for name, *_ in polled(source)] == ["step-00000001", "step-00000003", "step-00000002"]


def test_unfinished_checkpoint_is_no_checkpoint(source: CheckpointSource, root: Path) -> None:
    """A folder without a manifest is not told of; when the manifest comes, it is."""
    folder = written(root)
    (folder / "manifest.json").rename(root / "later")
    assert polled(source) == []
    (root / "later").rename(folder / "manifest.json")
    assert polled(source) == [("step-00000020", "verified", "")]


def test_vanished(source: CheckpointSource, root: Path) -> None:
    """Rotation is told of, once; a checkpoint that comes back is verified anew."""
    folder = written(root)
    polled(source)
    (folder / "manifest.json").unlink()
    assert polled(source) == [("step-00000020", "unfit", "gone")]
    assert polled(source) == []
    shutil.rmtree(folder)
    written(root)
    assert polled(source) == [("step-00000020", "verified", "")]


def test_a_root_that_vanishes_has_deleted_nothing(source: CheckpointSource, root: Path) -> None:
    """A mount that is away for a minute costs no certificate; it is said what is wrong, and what does not work."""
    written(root)
    polled(source)
    away = root.rename(root.parent / "away")
    assert (polled(source), "is not there any more: is it mounted?" in source.fault) == ([], True)
    root.mkdir()  # the mount's own folder, which is empty
    assert (polled(source), "is another folder now, and empty" in source.fault) == ([], True)
    root.rmdir()
    away.rename(root)
    assert (polled(source), source.fault) == ([], "")


def test_a_root_that_is_made_anew_is_believed(source: CheckpointSource, root: Path) -> None:
    """Once something is saved there again: what was there is gone."""
    written(root)
    polled(source)
    shutil.rmtree(root)
    polled(source)
    root.mkdir()
    written(root, 30)
    assert sorted(polled(source)) == [("step-00000020", "unfit", "gone"), ("step-00000030", "verified", "")]
    assert source.fault == ""


def test_a_root_that_is_emptied_is_believed(source: CheckpointSource, root: Path) -> None:
    """The same folder without them: somebody has deleted them."""
    shutil.rmtree(written(root))
    shutil.rmtree(written(root, 30))
    folder = written(root, 40)
    polled(source)
    shutil.rmtree(folder)
    assert (polled(source), source.fault) == ([("step-00000040", "unfit", "gone")], "")


def test_changed(source: CheckpointSource, root: Path) -> None:
    """Another manifest under a name that was verified: unfit first, then judged anew with its own digest."""
    folder = written(root)
    source.poll()
    (before,) = source.drain()
    shutil.rmtree(folder)
    written(root, files=contents(5))
    source.poll()
    spoilt, after = source.drain()
    assert spoilt == before._replace(fit="unfit", why="changed after it was verified")
    assert after.fit == "verified"
    assert after.digest != before.digest


def test_root_that_cannot_be_listed(source: CheckpointSource, root: Path) -> None:
    """A source that is blind says so, and calls nothing gone that it merely cannot see."""
    written(root)
    polled(source)
    root.rename(root.parent / "aside")
    root.write_text("no folder")
    assert polled(source) == []
    assert source.fault == f"{root} cannot be listed: Not a directory"
    root.unlink()
    (root.parent / "aside").rename(root)
    assert polled(source) == []
    assert source.fault == ""


class Slow:
    """Verifies when it is told to: stands for the time that a large checkpoint takes."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._inline = InlineVerifier()

    def start(self, path: str) -> None:
        self.asked.append(path)

    def finish(self) -> None:
        self._inline.start(self.asked.pop(0))

    def results(self) -> list[CheckpointSeen]:
        return self._inline.results()


def test_gone_or_changed_while_it_is_verified(root: Path) -> None:
    """A verdict on what is no longer there is not told; of two on one path, only the later is."""
    slow = Slow()
    source = CheckpointSource(slow)
    source.set_root(str(root))
    folder = written(root)
    assert polled(source) == []
    shutil.rmtree(folder)
    assert polled(source) == []
    slow.finish()
    assert polled(source) == []
    written(root)
    assert polled(source) == []
    shutil.rmtree(folder)
    written(root, files=contents(5))
    assert polled(source) == []
    assert len(slow.asked) == 2
    slow.finish()
    assert polled(source) == []
    slow.finish()
    assert polled(source) == [("step-00000020", "verified", "")]
    source.close()


def test_watch_wakes_without_a_poll(root: Path) -> None:
    """Where the system tells of changes, a new checkpoint is told of before the next tick, and quiet stays quiet."""
    root.mkdir()
    woken = threading.Event()
    source = CheckpointSource(InlineVerifier(), woken.set)
    source.set_root(str(root))
    assert source.drain() == []
    woken.clear()
    written(root)
    assert woken.wait(20)
    assert until(source.drain, "the checkpoint")[0].fit == "verified"
    shutil.rmtree(root / "step-00000020")
    assert until(source.drain, "its end")[0].why == "gone"
    source.close()


def test_looking_and_logging_do_not_wake(root: Path) -> None:
    """Neither a look at the root nor a log that is written to in it is followed by another look."""
    written(root)
    log = root / "log"
    log.touch()
    rings: list[int] = []
    source = CheckpointSource(InlineVerifier(), lambda: rings.append(1))
    source.set_root(str(root))
    for _ in range(20):
        polled(source)
        with log.open("a") as file:
            file.write("a line\n")
    (root / "last").mkdir()  # an event after which every earlier one has been delivered
    until(lambda: rings, "an event")
    assert len(rings) == 1
    source.close()


def test_watch_follows_a_root_that_is_made_anew(root: Path) -> None:
    """A root that was moved aside and made again is watched again after the next poll."""
    root.mkdir()
    source = CheckpointSource(InlineVerifier())
    source.set_root(str(root))
    source.drain()
    root.rename(root.parent / "aside")
    root.mkdir()
    polled(source)
    written(root)
    assert until(source.drain, "the checkpoint")[0].fit == "verified"
    source.close()


def test_root_that_cannot_be_watched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no watch can be had, polling finds everything."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr("watchdog.observers.api.BaseObserver.schedule", refuse)
    written(root)
    source = CheckpointSource(InlineVerifier())
    source.set_root(str(root))
    assert [seen.fit for seen in source.drain()] == ["verified"]
    assert source.drain() == []
    shutil.rmtree(root / "step-00000020")
    assert polled(source) == [("step-00000020", "unfit", "gone")]
    source.close()


def test_with_a_real_child(root: Path) -> None:
    """Draining never waits for the child; the verdict comes in a later pass."""
    written(root, 1)
    (written(root, 2) / "state.json").unlink()
    with child_verifier() as verifier:
        source = CheckpointSource(verifier)
        source.set_root(str(root))
        assert source.drain() == []
        found: list[CheckpointSeen] = []
        until(lambda: found.extend(source.drain()) or len(found) == 2, "two verdicts")
        assert {seen.step: seen.fit for seen in found} == {1: "verified", 2: "unfit"}
        source.close()


def test_recheck(source: CheckpointSource, root: Path) -> None:
    """Right before use: what is as it was is what it was, and every change of manifest or size is found."""
    folder = written(root)
    source.poll()
    (seen,) = source.drain()
    assert source.recheck(seen.path, seen.digest) == seen
    os.truncate(folder / "model.safetensors", 99)
    assert "model.safetensors is truncated: 99 of" in source.recheck(seen.path, seen.digest).why
    (folder / "model.safetensors").write_bytes(contents()["model.safetensors"])
    assert source.recheck(seen.path, seen.digest).fit == "verified"
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "step": 21}))
    changed = source.recheck(seen.path, seen.digest)
    assert (changed.fit, changed.why[:60]) == (
        "unfit",
        "changed after it was verified: its digest is xxh3_128:" + changed.digest[9:15],
    )
    shutil.rmtree(folder)
    assert source.recheck(seen.path, seen.digest) == seen._replace(fit="unfit", why="gone")


def test_recheck_keeps_what_verification_found(source: CheckpointSource, root: Path) -> None:
    """A recheck makes nothing fit that was found unfit, and believes the digest of an agent before this one."""
    unread = {**contents(), "state.json": b'{"averages": NaN}'}
    written(root, 1, unread)
    source.poll()
    (seen,) = source.drain()
    assert seen.fit == "unfit"
    assert source.recheck(seen.path, seen.digest) == seen
    later = CheckpointSource(InlineVerifier())
    written(root, 2)
    source.poll()
    (good,) = source.drain()
    assert later.recheck(good.path, good.digest) == good
