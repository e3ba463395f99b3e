"""Checkpoints of other trainers, through the source: found, verified by a real child, told apart when written anew."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import layout_folders
import pytest
from checkpoint_folders import child_verifier, until

from gyrostat_agent.checkpoints import CheckpointSource, InlineVerifier
from gyrostat_rules.inputs import UNTOLD, CheckpointSeen

NAN = float("nan")
LAYOUTS = [
    layout_folders.huggingface, layout_folders.dcp, layout_folders.megatron, layout_folders.megatron_dist,
    layout_folders.deepspeed,
]  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Iterator[CheckpointSource]:
    """A source over ``tmp_path`` that verifies at once."""
    made = CheckpointSource(InlineVerifier(), pinning=True)
    made.set_root(str(tmp_path))
    yield made
    made.close()


def polled(source: CheckpointSource) -> list[CheckpointSeen]:
    source.poll()
    return source.drain()


def said(seen: CheckpointSeen) -> tuple[str, str]:
    return seen.fit, seen.why


@pytest.mark.parametrize("make", LAYOUTS, ids=[make.__name__ for make in LAYOUTS])
def test_each_layout_is_found_and_verified_once(
    source: CheckpointSource, tmp_path: Path, make: Callable[..., Path]
) -> None:
    """Its step is that of its files, and its segment whichever the run is in."""
    folder = make(tmp_path)
    (seen,) = polled(source)
    assert (seen.path, seen.fit, seen.segment) == (str(folder), "verified", UNTOLD), seen.why
    assert str(seen.step) in folder.name
    assert polled(source) == []
    assert said(source.recheck(seen.path, seen.digest)) == ("verified", "")


@pytest.mark.parametrize("make", LAYOUTS, ids=[make.__name__ for make in LAYOUTS])
def test_poison_is_found_in_each(source: CheckpointSource, tmp_path: Path, make: Callable[..., Path]) -> None:
    """A single weight that is NaN, whatever file format it is in."""
    make(tmp_path, spoilt=NAN)
    (seen,) = polled(source)
    assert seen.fit == "unfit" and "not finite" in seen.why


def test_one_that_is_written_anew_in_place_is_another(source: CheckpointSource, tmp_path: Path) -> None:
    """A trainer that went back saves its step again under the same name: the old verdict is no word on that."""
    folder = layout_folders.huggingface(tmp_path, step=40)
    (first,) = polled(source)
    shutil.rmtree(folder)
    layout_folders.huggingface(tmp_path, step=40, spoilt=NAN)
    os.utime(folder / "trainer_state.json", (1.0, 1.0))
    told = [said(seen) for seen in polled(source)]
    assert told[0] == ("unfit", "changed after it was verified")
    assert told[-1][0] == "unfit" and "not finite" in told[-1][1]
    assert source.recheck(first.path, first.digest).fit == "unfit"


@pytest.mark.parametrize("change", ["shorter", "touched", "another file", "gone"])
def test_a_change_before_use_is_seen(source: CheckpointSource, tmp_path: Path, change: str) -> None:
    """Right before a directive names it, sizes and times of all its files are looked at."""
    folder = layout_folders.huggingface(tmp_path)
    (seen,) = polled(source)
    weights = folder / "model.safetensors"
    if change == "shorter":
        with open(weights, "r+b") as file:
            file.truncate(100)
    elif change == "touched":
        os.utime(weights, (1.0, 1.0))
    elif change == "another file":
        (folder / "model-00002.safetensors").write_bytes(b"x")
    else:
        shutil.rmtree(folder)
    found = source.recheck(seen.path, seen.digest)
    assert found.fit == "unfit"
    assert found.why == "gone" if change == "gone" else "changed after it was verified" in found.why


@pytest.mark.parametrize("make", LAYOUTS, ids=[make.__name__ for make in LAYOUTS])
def test_a_flipped_bit_before_use_is_seen(source: CheckpointSource, tmp_path: Path, make: Callable[..., Path]) -> None:
    """Of the same size, with the same time, and a finite number: no trainer of these would notice it when it loads."""
    folder = make(tmp_path)
    (seen,) = polled(source)
    weights = max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    before, data = weights.stat(), bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 1
    weights.write_bytes(data)
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = source.recheck(seen.path, seen.digest)
    assert found.fit == "unfit" and "changed after it was verified" in found.why


def test_what_is_too_large_to_be_read_anew_is_known_by_size_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop stands still for seconds, not for the minutes that a terabyte takes."""
    layout_folders.huggingface(tmp_path)
    made = CheckpointSource(InlineVerifier())
    monkeypatch.setattr(InlineVerifier, "reread", lambda self, path, seconds: None)
    made.set_root(str(tmp_path))
    (seen,) = polled(made)
    assert said(made.recheck(seen.path, seen.digest)) == ("verified", "")
    made.close()


def test_half_written_ones_wait(source: CheckpointSource, tmp_path: Path) -> None:
    """What is written last is not there yet: nothing is told of it."""
    folder = layout_folders.huggingface(tmp_path)
    (folder / "trainer_state.json").rename(tmp_path / "later")
    assert polled(source) == []
    (tmp_path / "later").rename(folder / "trainer_state.json")
    assert [seen.fit for seen in polled(source)] == ["verified"]


def test_a_real_child_reads_them(tmp_path: Path) -> None:
    """In the process that a hostile file may kill, and not in the sidecar's own."""
    layout_folders.dcp(tmp_path)
    with child_verifier() as verifier:
        source = CheckpointSource(verifier)
        source.set_root(str(tmp_path))
        found: list[CheckpointSeen] = []

        def told() -> bool:
            found.extend(polled(source))
            return bool(found)

        until(told, "the verdict")
        source.close()
    assert [seen.fit for seen in found] == ["verified"], found[0].why


@pytest.mark.parametrize("make", LAYOUTS, ids=[make.__name__ for make in LAYOUTS])
def test_what_rotation_deletes_lives_on(source: CheckpointSource, tmp_path: Path, make: Callable[..., Path]) -> None:
    """With its folders below, in whatever layout: the pin is told in its place, and is what was verified."""
    folder = make(tmp_path)
    (seen,) = polled(source)
    shutil.rmtree(folder)
    told = polled(source)
    assert [each.fit for each in told] == ["unfit", "verified"]
    assert (told[0].why, told[1].path) == ("gone", str(tmp_path / "gyrostat-pins" / folder.name))
    assert told[1].digest == seen.digest
    assert said(source.recheck(told[1].path, seen.digest)) == ("verified", "")


def test_folders_below_are_pinned_with_it(source: CheckpointSource, tmp_path: Path) -> None:
    """Hugging Face with DeepSpeed keeps its weights in a folder of its own inside."""
    folder = layout_folders.zero_below(tmp_path)
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    polled(source)
    pin = tmp_path / "gyrostat-pins" / folder.name
    assert sorted(str(path.relative_to(pin)) for path in pin.rglob("*")) == names


def test_a_pin_that_was_written_into_is_refused(source: CheckpointSource, tmp_path: Path) -> None:
    """A trainer that opens its old file again to write changes the hard link too: it is seen before it is used."""
    folder = layout_folders.huggingface(tmp_path)
    (seen,) = polled(source)
    with open(folder / "model.safetensors", "r+b") as file:
        file.write(b"new")
    shutil.rmtree(folder)
    pin = polled(source)[-1]
    assert source.recheck(pin.path, seen.digest).fit == "unfit"
