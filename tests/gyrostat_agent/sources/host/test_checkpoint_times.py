"""How long checkpoints take to be saved, whatever trainer saves them; by a clock in the test's hand."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_saves import BEGIN, Saving


@pytest.fixture
def saving(tmp_path: Path) -> Saving:
    """A root that has been looked at once, and is empty."""
    made = Saving(tmp_path)
    made.until(0)
    return made


def save(saving: Saving, folder: str, begin: float, files: list[str]) -> None:
    """A save of ten seconds a file; files of 1000 bytes grow in two halves, but for the small ones at the end."""
    inside = {os.path.dirname(file) for file in files if "/" in file}
    saving.folder(folder, begin)
    for name in sorted(inside):
        saving.folder(f"{folder}/{name}", begin)
    for number, file in enumerate(files):
        if file not in (".metadata", "manifest.json"):
            saving.file(f"{folder}/{file}", begin + 10 * number + 5, 500)
        saving.file(f"{folder}/{file}", begin + 10 * number + 10)
    assert saving.until(begin + 10 * len(files) - 1) == []


LAYOUTS = {
    "hugging face": ("checkpoint-200", ["config.json", "model.safetensors", "optimizer.pt", "trainer_state.json"]),
    "torch dcp": ("step-200", ["__0_0.distcp", "__1_0.distcp", ".metadata"]),
    "megatron": ("iter_0000200", ["mp_rank_00/model_optim_rng.pt", "mp_rank_01/model_optim_rng.pt"]),
    "deepspeed": ("global_step200", ["mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"]),
    "verl": ("global_step_200", ["actor/model_world_size_2_rank_0.pt", "critic/model.pt", "data.pt"]),
    "reference": ("step-00000200-s1", ["model.safetensors", "state.json", "manifest.json"]),
}  # fmt: skip


@pytest.mark.parametrize(("folder", "files"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_save_is_told_once_with_its_seconds_and_bytes(saving: Saving, folder: str, files: list[str]) -> None:
    """From the folder's making to the last write, in each trainer's layout."""
    save(saving, folder, 5.3, files)
    assert saving.until(200) == [(folder, pytest.approx(10.0 * len(files)), 1000 * len(files))]
    assert saving.until(2000) == [] and saving.fault == ""


@pytest.mark.parametrize(("last", "patience"), [(".metadata", 6), ("manifest.json", 6), ("optimizer.pt", 65)])
def test_what_is_known_to_be_written_last_tells_the_end(saving: Saving, last: str, patience: int) -> None:
    """Else a minute must pass in which nothing changes: an optimizer's state may take as long to be gathered."""
    save(saving, "step-7", 5.5, ["weights", last])
    assert saving.until(24 + patience) == [("step-7", 20.0, 2000)]


def test_a_pause_in_a_save_is_part_of_it(saving: Saving) -> None:
    """The files come when the ranks have gathered what stands in them."""
    saving.folder("checkpoint-1", 5.25)
    saving.file("checkpoint-1/model", 6.5)
    saving.file("checkpoint-1/optimizer", 60.75)
    assert saving.until(300) == [("checkpoint-1", 55.5, 2000)]


def test_a_folder_that_is_empty_for_long_is_not_finished(saving: Saving) -> None:
    """Some trainers make it before they gather."""
    saving.folder("checkpoint-1", 5.25)
    saving.file("checkpoint-1/model", 400.75)
    assert saving.until(600) == [("checkpoint-1", 395.5, 1000)]


def test_a_save_between_two_looks_is_told_by_its_files(saving: Saving) -> None:
    """A small model on a fast disk."""
    saving.folder("checkpoint-1", 5.25)
    saving.file("checkpoint-1/first", 5.25)
    saving.file("checkpoint-1/second", 5.75)
    os.utime(saving.root / "checkpoint-1", (BEGIN + 5.5, BEGIN + 5.5))  # when the second was made
    assert saving.until(100) == [("checkpoint-1", 0.5, 2000)]


@pytest.mark.parametrize("draft", [".step-00000040.tmp", "tmp-checkpoint-40", "tmp_step_40"])
def test_a_folder_that_is_renamed_when_it_is_whole_counts_from_its_beginning(saving: Saving, draft: str) -> None:
    """What it is called while it is written says nothing."""
    saving.folder(draft, 4.5)
    saving.file(f"{draft}/model", 5.0, 500)
    saving.file(f"{draft}/model", 31.0)
    saving.rename(draft, "step-00000040")
    told = saving.until(200)
    assert told == [("step-00000040", pytest.approx(26.5, abs=1.0), 1000)]


def test_a_folder_that_is_put_here_whole_is_told_by_its_files(saving: Saving) -> None:
    """It was written in another place, while we looked here."""
    elsewhere = Saving(saving.root / "elsewhere")
    elsewhere.root.mkdir()
    elsewhere.folder("step-3", 10.0)
    elsewhere.file("step-3/model", 12.0)
    elsewhere.file("step-3/optimizer", 40.0)
    os.utime(elsewhere.root / "step-3", (BEGIN + 30.0, BEGIN + 30.0))
    saving.until(50)
    (elsewhere.root / "step-3").rename(saving.root / "step-3")
    assert saving.until(200) == [("step-3", 28.0, 2000)]


def test_one_that_is_older_than_our_looking_is_not_told(saving: Saving) -> None:
    """Nobody saw it being written: a copy of last week's."""
    saving.until(50)
    saving.folder("step-3", -9000.0)
    saving.file("step-3/model", -8000.0)
    assert saving.until(300) == []


@pytest.mark.parametrize("age", [3000.0, 3.0], ids=["finished", "half written"])
def test_what_was_there_before_us_is_not_told(tmp_path: Path, age: float) -> None:
    """Its beginning was not seen, and half of a save's time would be believed."""
    saving = Saving(tmp_path)
    saving.folder("checkpoint-1", -age)
    saving.file("checkpoint-1/model", -age + 1.0)
    saving.until(10)
    if age < 60:
        saving.file("checkpoint-1/optimizer", 11.0)
    assert saving.until(300) == []


@pytest.mark.parametrize("known", [True, False], ids=["seen being saved", "there before us"])
def test_a_checkpoint_that_is_saved_again_in_place_is_told_again(tmp_path: Path, known: bool) -> None:
    """After a rollback the same step comes again, and its files are written over."""
    saving = Saving(tmp_path)
    if known:
        saving.until(0)
    saving.folder("checkpoint-100", 1.0 if known else -5000.0)
    for name in ("model", "optimizer"):
        saving.file(f"checkpoint-100/{name}", 2.0 if known else -5000.0)
    first = saving.until(500)
    assert len(first) == known
    saving.file("checkpoint-100/model", 500.5)
    saving.file("checkpoint-100/optimizer", 521.0)
    assert saving.until(900) == [("checkpoint-100", pytest.approx(20.5, abs=1.0), 2000)]


def _evaluated(saving: Saving) -> None:
    saving.file("step-1/eval_results.json", 400.0, 10)


def _pruned(saving: Saving) -> None:
    saving.remove("step-1/optimizer", 400.0)


@pytest.mark.parametrize("change", [_evaluated, _pruned])
def test_what_is_done_to_a_checkpoint_later_is_no_save(saving: Saving, change: Callable[[Saving], None]) -> None:
    """Somebody evaluates it, or throws the optimizer's state away."""
    save(saving, "step-1", 1, ["model", "optimizer"])
    assert len(saving.until(300)) == 1
    change(saving)
    assert saving.until(1500) == []


def test_saves_at_once_are_told_one_by_one(saving: Saving) -> None:
    """Two trainers with one root, or a policy and its critic."""
    for name in ("actor-10", "critic-10"):
        saving.folder(name, 3.5)
    for name, size in (("actor-10", 3000), ("critic-10", 1000)):
        saving.file(f"{name}/.metadata", 8.5, size)
    assert sorted(saving.until(100)) == [("actor-10", 5.0, 3000), ("critic-10", 5.0, 1000)]


def test_other_folders_are_not_looked_into(saving: Saving) -> None:
    """Logs and samples lie beside checkpoints."""
    for name in ("logs", ".gyrostat", "step-latest"):
        saving.folder(name, 1.0)
        saving.file(f"{name}/.metadata", 2.0)
    saving.file("checkpoint-5", 2.0)  # a file, though it is called so
    assert saving.until(200) == [] and saving.fault == ""


def test_a_folder_that_vanishes_midway_is_forgotten(saving: Saving) -> None:
    """The trainer gave up, or a person did; the same step that is saved later counts from then."""
    saving.folder("step-1", 1.0)
    saving.file("step-1/model", 2.0)
    saving.until(10)
    shutil.rmtree(saving.root / "step-1")
    assert saving.until(200) == [] and saving.fault == ""
    save(saving, "step-1", 201.5, ["model"])
    assert saving.until(400) == [("step-1", 10.0, 1000)]


def test_a_folder_that_cannot_be_read_is_said_in_words(saving: Saving) -> None:
    """Others are timed all the same, and so is this one once it may be read."""
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    saving.folder("step-1/inside", 1.0)
    (saving.root / "step-1/inside").chmod(0)
    save(saving, "step-2", 5, ["model"])
    assert [told.name for told in saving.until(100)] == ["step-2"]
    assert saving.fault == f"{saving.root}/step-1 cannot be timed: Permission denied"
    (saving.root / "step-1/inside").chmod(0o700)
    saving.until(120)
    assert saving.fault == ""


@pytest.mark.parametrize("skew", [3600.0, -3600.0, 4.0, -4.0])
def test_a_file_server_with_another_clock(tmp_path: Path, skew: float) -> None:
    """Costs no more than the time between two looks at either end."""
    saving = Saving(tmp_path, skew)
    saving.until(100)
    save(saving, "step-1", 105, ["model", "optimizer", "rng"])
    assert saving.until(400) == [("step-1", pytest.approx(30.0, abs=2.0), 3000)]


def test_a_clock_that_is_set_back(saving: Saving) -> None:
    """What was known is of another time; saves from now on are told."""
    save(saving, "step-1", 5, ["model"])
    saving.until(20)
    saving.now = BEGIN - 7200.0
    save(saving, "step-2", -7189.5, ["model"])
    assert saving.until(-7000) == [("step-2", 10.0, 1000)]


def _link(place: Path) -> None:
    place.symlink_to("/")


def _loop(place: Path) -> None:
    place.symlink_to(place.parent)


@pytest.mark.parametrize("make", [_link, _loop, os.mkfifo], ids=["link to /", "link to itself", "FIFO"])
def test_what_is_no_file_is_passed_by(saving: Saving, make: Callable[[Path], None]) -> None:
    """It is neither followed nor opened, and has no bytes; the same as a checkpoint's name is none."""
    saving.folder("step-1", 1.0)
    make(saving.root / "step-1/odd")
    make(saving.root / "step-99")
    saving.file("step-1/model", 4.0)
    saving.until(10)
    (told,) = saving.until(200)
    assert (told.name, told.bytes) == ("step-1", 1000) and saving.fault == ""


def test_a_folder_in_a_folder_for_ever(saving: Saving) -> None:
    """Deeper than any trainer goes nothing is looked at, and nothing ends."""
    saving.folder("step-1/" + "/".join("d" * 200), 1.0)
    saving.file("step-1/model", 2.0)
    assert [told.bytes for told in saving.until(200)] == [1000]


def test_more_files_than_can_be_looked_at(saving: Saving) -> None:
    """A tree of any size is given up, once, in words; its neighbours are timed."""
    crowd = saving.root / "step-1"
    crowd.mkdir()
    for number in range(10_001):
        os.mknod(crowd / str(number))
    save(saving, "step-2", 5, ["model"])
    assert [told.name for told in saving.until(100)] == ["step-2"]
    assert saving.fault == f"{crowd} cannot be timed: it holds more than 10000 files"
    as_root = Saving(crowd)
    as_root.until(2)
    assert as_root.fault == f"checkpoints in {crowd} cannot be timed: it holds more than 10000 names"
