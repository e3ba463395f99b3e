"""Pins: no certified checkpoint is lost to a trainer's rotation, whatever it deletes and when."""

import os
import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkpoint_folders import contents, floats, packed, written

from gyrostat_agent.checkpoints import CheckpointSource, InlineVerifier
from gyrostat_agent.checkpoints.pins import FOLDER, Pins
from gyrostat_agent.checkpoints.verifier import Verifier
from gyrostat_rules.inputs import CheckpointSeen
from gyrostat_rules.keeping import Keep


class Counting(InlineVerifier):
    """Which paths were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def start(self, path: str) -> None:
        self.read.append(path)
        super().start(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def verifier() -> Counting:
    return Counting()


@pytest.fixture
def source(root: Path, verifier: Counting) -> Iterator[CheckpointSource]:
    made = source_of(root, verifier)
    yield made
    made.close()


def source_of(root: Path, verifier: Verifier, *, pinning: bool = True) -> CheckpointSource:
    made = CheckpointSource(verifier, pinning=pinning)
    made.set_root(str(root))
    return made


def polled(source: CheckpointSource) -> list[tuple[str, str, str]]:
    """Where under the root, what it is, why."""
    source.poll()
    return [(_where(seen), seen.fit, seen.why) for seen in source.drain()]


def _where(seen: CheckpointSeen) -> str:
    folder, name = os.path.split(seen.path)
    return f"{FOLDER}/{name}" if os.path.basename(folder) == FOLDER else name


def pinned(root: Path) -> list[str]:
    return sorted(path.name for path in (root / FOLDER).iterdir()) if (root / FOLDER).is_dir() else []


def test_what_rotation_deletes_lives_on_as_its_pin(source: CheckpointSource, root: Path, verifier: Counting) -> None:
    """The checkpoint goes, its pin is told as verified in the same breath, and no byte is read again for it."""
    folder = written(root, 1)
    assert polled(source) == [("step-00000001", "verified", "")]
    assert pinned(root) == ["step-00000001"]
    shutil.rmtree(folder)
    assert polled(source) == [("step-00000001", "unfit", "gone"), (f"{FOLDER}/step-00000001", "verified", "")]
    assert verifier.read == [str(folder)]
    assert polled(source) == []


def test_a_pin_costs_no_byte_while_its_checkpoint_is_there(source: CheckpointSource, root: Path) -> None:
    """Its files are the same ones on the disk, or share their blocks: what is doubled is a folder."""
    folder = written(root, 1)
    polled(source)
    for name in os.listdir(folder):
        pin, file = root / FOLDER / folder.name / name, folder / name
        same = os.path.samefile(pin, file)
        assert same or pin.read_bytes() == file.read_bytes()


def test_a_pin_is_judged_anew_by_the_next_agent(source: CheckpointSource, root: Path) -> None:
    """It was told by an agent that is no more; what it holds is read before it is believed."""
    folder = written(root, 1)
    polled(source)
    shutil.rmtree(folder)
    other = Counting()
    later = source_of(root, other)
    assert polled(later) == [(f"{FOLDER}/step-00000001", "verified", "")]
    assert other.read == [str(root / FOLDER / "step-00000001")]
    later.close()


def test_a_spoilt_pin_is_refused_at_use(source: CheckpointSource, root: Path) -> None:
    """A pin that was cut short since is found by the look right before a directive names it."""
    folder = written(root, 1)
    polled(source)
    shutil.rmtree(folder)
    source.poll()
    seen = source.drain()[-1]
    assert source.recheck(seen.path, seen.digest).fit == "verified"
    with open(root / FOLDER / "step-00000001" / "model.safetensors", "r+b") as file:
        file.truncate(100)
    said = source.recheck(seen.path, seen.digest)
    assert said.fit == "unfit" and "truncated" in said.why


def test_an_ill_checkpoint_keeps_no_pin(source: CheckpointSource, root: Path) -> None:
    """It is pinned before it is read, and let go when it is known what it is."""
    weights = packed({"head.weight": ("F32", floats(10)[:-4] + b"\x00\x00\xc0\x7f")})
    written(root, 1, files={**contents(), "model.safetensors": weights})
    ((name, fit, _),) = polled(source)
    assert (name, fit, pinned(root)) == ("step-00000001", "unfit", ["step-00000001"])
    source.keep(Keep((), frozenset({name})))
    assert pinned(root) == []


def test_only_what_is_judged_and_not_needed_is_let_go(source: CheckpointSource, root: Path) -> None:
    """What is still being verified stays, and so does what is to be kept."""
    for step in (1, 2, 3):
        written(root, step)
    polled(source)
    source.keep(Keep(("step-00000002",), frozenset({"step-00000001", "step-00000002"})))
    assert pinned(root) == ["step-00000002", "step-00000003"]


def test_a_nearly_full_disk_keeps_the_best_alone(
    source: CheckpointSource, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trainer that cannot write its next checkpoint is worse off than one with a single pin."""
    for step in (1, 2):
        written(root, step)
    polled(source)
    both = Keep(("step-00000002", "step-00000001"), frozenset({"step-00000001", "step-00000002"}))
    source.keep(both)
    assert pinned(root) == ["step-00000001", "step-00000002"]
    real = os.statvfs(root)
    full = os.statvfs_result((*real[:4], 0, *real[5:10]))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    source.keep(both)
    assert pinned(root) == ["step-00000002"]


def test_a_name_that_is_used_again_is_pinned_again(source: CheckpointSource, root: Path) -> None:
    """A trainer that begins anew in the same folder must not find the pin of another run's step."""
    shutil.rmtree(written(root, 1))
    folder = written(root, 1)
    polled(source)
    shutil.rmtree(folder)
    again = written(root, 1, files=contents(seed=9))
    polled(source)
    pin = root / FOLDER / folder.name
    assert (pin / "model.safetensors").read_bytes() == (again / "model.safetensors").read_bytes()


def test_without_pinning_nothing_is_made_and_nothing_is_let_go(root: Path) -> None:
    """An agent that only observes leaves pins of an earlier one alone, and finds them."""
    folder = written(root, 1)
    first = source_of(root, InlineVerifier())
    polled(first)
    first.close()
    written(root, 2)
    shutil.rmtree(folder)
    watching = source_of(root, InlineVerifier(), pinning=False)
    assert (f"{FOLDER}/step-00000001", "verified", "") in polled(watching)
    watching.keep(Keep((), frozenset({"step-00000001"})))
    assert pinned(root) == ["step-00000001"]
    watching.close()


def test_a_folder_that_is_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    """Whoever can write into the root must not have the agent make or delete files elsewhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".x.draft").mkdir()
    (root / FOLDER).symlink_to(elsewhere)
    source = source_of(root, InlineVerifier())
    written(root, 1)
    assert polled(source) == [("step-00000001", "verified", "")]
    assert "is no folder; a link is not followed" in source.pin_fault
    source.keep(Keep((), frozenset({"step-00000001"})))
    assert [path.name for path in elsewhere.iterdir()] == [".x.draft"]
    source.close()


def test_what_cannot_be_pinned_is_said_and_verified_all_the_same(source: CheckpointSource, root: Path) -> None:
    """A file in the place of the folder: the checkpoint is still told, and why it is not safe from rotation."""
    (root / FOLDER).write_text("mine")
    written(root, 1)
    assert polled(source) == [("step-00000001", "verified", "")]
    assert "cannot be pinned: File exists" in source.pin_fault
    (root / FOLDER).unlink()
    written(root, 2)
    polled(source)
    assert source.pin_fault == "" and pinned(root) == ["step-00000002"]


def test_a_draft_of_an_agent_that_was_killed_is_cleared_away(root: Path) -> None:
    """What was half made is no pin, and does not stay for ever."""
    (root / FOLDER / ".step-00000001.draft").mkdir(parents=True)
    assert Pins(str(root)).find() == ({}, {})
    assert pinned(root) == []


def test_no_certified_one_is_lost_in_a_thousand_races(root: Path) -> None:
    """A trainer saves and rotates as fast as it can, keeping one: the newest two that are verified are always there."""
    files = {name: data for name, data in contents().items() if name != "optimizer.safetensors"}
    saved, rng, done = threading.Semaphore(0), random.Random(7), threading.Event()

    def train() -> None:
        for step in range(1, 1001):
            written(root, step, files=files)
            saved.release()
            if rng.random() < 0.5:
                while saved._value > rng.randrange(4):  # sometimes it waits for the agent, sometimes it runs ahead
                    os.sched_yield()
            for old in range(max(1, step - 3), step):
                shutil.rmtree(root / f"step-{old:08d}", ignore_errors=True)
        done.set()
        saved.release()

    source, verified = source_of(root, InlineVerifier()), dict[str, None]()
    trainer = threading.Thread(target=train)
    trainer.start()
    while not done.is_set():
        saved.acquire(timeout=60)
        source.poll()
        for seen in source.drain():
            if seen.fit == "verified":
                verified[os.path.basename(seen.path)] = None
        newest = sorted(verified)[-2:]
        assert [name for name in newest if not _is_there(root, name)] == []
        source.keep(Keep(tuple(newest), frozenset(verified)))
    trainer.join(timeout=60)
    source.close()
    assert len(verified) > 100
    assert pinned(root) == sorted(verified)[-2:]


def _is_there(root: Path, name: str) -> bool:
    """Whole, under one of its names."""
    return (root / FOLDER / name / "manifest.json").exists() or (root / name / "manifest.json").exists()
