import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_folders import packed
from checkpoint_folders import written as own_written
from layout_folders import WRITERS, deepspeed, huggingface, megatron, megatron_dist, torch

from gyrostat_agent.checkpoints.layouts import LAYOUTS, of
from gyrostat_agent.checkpoints.layouts.examine import examine

OF = {
    "huggingface": "huggingface", "huggingface-sharded": "huggingface", "huggingface-zero": "huggingface",
    "huggingface-fsdp": "huggingface", "dcp": "dcp", "megatron": "megatron", "megatron-dist": "megatron",
    "deepspeed": "deepspeed",
}  # fmt: skip
BY_NAME = {layout.name: layout for layout in LAYOUTS}


@pytest.mark.parametrize(("writer", "layout"), OF.items(), ids=list(OF))
def test_found(tmp_path: Path, writer: str, layout: str) -> None:
    """Every layout knows its own folders, finds each once, and tells a second writing from the first."""
    folder = WRITERS[writer](tmp_path, 20)
    found = of(str(folder))
    assert found is not None and found.name == layout
    (first,) = found.find(str(tmp_path)).items()
    assert first[0] == str(folder)
    shutil.rmtree(folder)
    assert found.find(str(tmp_path)) == {}
    WRITERS[writer](tmp_path, 20)
    assert found.find(str(tmp_path))[str(folder)] != first[1]
    assert found.find(str(tmp_path / "not-there")) == {}


def test_the_reference_trainers_own(tmp_path: Path) -> None:
    """A folder with a manifest is the reference trainer's, and is verified by its digests."""
    folder = own_written(tmp_path)
    found = of(str(folder))
    assert found is not None and found.name == "reference"
    assert list(found.find(str(tmp_path))) == [str(folder)]
    assert examine(str(folder)).data_cursor == 320


@pytest.mark.parametrize("name", ["runs", "checkpoint-", "checkpoint-x", "iter_", "notes", "checkpoint-1.tmp"])
def test_folders_of_no_layout(tmp_path: Path, name: str) -> None:
    """A folder of another name is nobody's, and is said to be so."""
    (tmp_path / name).mkdir()
    assert of(str(tmp_path / name)) is None
    assert examine(str(tmp_path / name)).why == "it has the name of no checkpoint that is known here"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("checkpoint-7", "trainer_state.json, which is written last, is missing", id="huggingface"),
        pytest.param("global_step7", "mp_rank_00_model_states.pt is missing", id="deepspeed"),
        pytest.param("iter_0000007", "mp_rank_00/model_optim_rng.pt is missing", id="megatron"),
        pytest.param("epoch_1_step_7", ".metadata, which is written last, is missing", id="dcp"),
    ],
)
def test_an_empty_folder(tmp_path: Path, name: str, why: str) -> None:
    """A folder in which nothing is yet says what it waits for, under the step of its name."""
    (tmp_path / name).mkdir()
    found = examine(str(tmp_path / name))
    assert (found.fit, found.step) == ("unfit", 7)
    assert why in found.why


def test_what_the_files_say(tmp_path: Path) -> None:
    """Learning rate, samples seen and time of saving are handed on where the format has them."""
    assert examine(str(huggingface(tmp_path / "a", 20))).knobs == {"lr": 0.0005}
    assert examine(str(deepspeed(tmp_path / "b", 20))).data_cursor == 320
    assert examine(str(megatron(tmp_path / "c", 20))).data_cursor == 160
    folder = megatron_dist(tmp_path / "d", 20)
    assert examine(str(folder)).data_cursor == 160
    newest = max(path.stat().st_mtime for path in folder.iterdir())
    assert examine(str(folder)).saved_at == pytest.approx(newest, abs=1e-3)


def test_a_digest_is_of_names_and_bytes(tmp_path: Path) -> None:
    """One bit or one name makes another digest; the place of the checkpoint does not."""
    folder = huggingface(tmp_path / "a", 20)
    digest = examine(str(folder)).digest
    moved = shutil.copytree(folder, tmp_path / "b" / folder.name)
    assert examine(str(moved)).digest == digest
    (moved / "notes.txt").write_text("1")
    one = examine(str(moved)).digest
    (moved / "notes.txt").rename(moved / "notes2.txt")
    assert len({digest, one, examine(str(moved)).digest}) == 3


@pytest.mark.parametrize("writer", [deepspeed, megatron], ids=["deepspeed", "megatron"])
def test_a_tracker_that_names_an_older_step(tmp_path: Path, writer: Callable[..., Path]) -> None:
    """What was not finished, by the file that is written last, is neither found nor verified."""
    writer(tmp_path, 20)
    tracker = next(path for path in tmp_path.iterdir() if path.name.startswith("latest"))
    before = tracker.read_text()
    folder = writer(tmp_path, 40)
    tracker.write_text(before)
    layout = of(str(folder))
    assert layout is not None and str(folder) not in layout.find(str(tmp_path))
    assert f"{tracker.name} beside it names step 20" in examine(str(folder)).why


def test_a_sibling_knows_what_is_missing(tmp_path: Path) -> None:
    """What all the others have, and a model much shorter than theirs, are told; fewer than two others say nothing."""
    folder = huggingface(tmp_path, 20)
    (folder / "optimizer.pt").unlink()
    huggingface(tmp_path, 40)
    assert examine(str(folder)).fit == "verified"
    huggingface(tmp_path, 60)
    assert examine(str(folder)).why == "optimizer.pt is missing; the 2 others beside it have it"
    other = huggingface(tmp_path, 80)
    (other / "model.safetensors").write_bytes(packed({"embed.weight": ("F32", bytes(400))}))
    assert "in the others beside it at least" in examine(str(other)).why


def test_ranks_that_are_missing(tmp_path: Path) -> None:
    """As many ranks as the saved numbers say must be there, also the last one."""
    folder = deepspeed(tmp_path, 20)
    (folder / "zero_pp_rank_3_mp_rank_00_optim_states.pt").unlink()
    assert examine(str(folder)).why == "zero_pp_rank_3_mp_rank_00_optim_states.pt is missing"
    for path in folder.glob("zero*"):
        path.unlink()
    assert "and 1 more" in examine(str(folder)).why
    folder = megatron(tmp_path, 20)
    shutil.rmtree(folder / "mp_rank_01_001")
    assert examine(str(folder)).why == "mp_rank_01_001/model_optim_rng.pt is missing"


def test_ranks_without_end(tmp_path: Path) -> None:
    """A world of a billion ranks is not believed, nor counted to."""
    folder = deepspeed(tmp_path, 20)
    torch.save({"module": {}, "dp_world_size": 10**9, "mp_world_size": 10**9}, folder / "mp_rank_00_model_states.pt")
    assert "100000 are believed" in examine(str(folder)).why


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take on another user's rights")
def test_weights_of_another_user() -> None:
    """Weights of mode 0600 under another UID: said who must read them, and nothing is certified."""
    with tempfile.TemporaryDirectory() as root:  # tmp_path lies below a folder that nobody else may enter
        Path(root).chmod(0o755)
        folder = huggingface(Path(root), 20)
        (folder / "model.safetensors").chmod(0o600)
        os.seteuid(65534)
        try:
            found = examine(str(folder))
        finally:
            os.seteuid(0)
        assert found.fit == "unfit"
        assert "model.safetensors cannot be read by user 65534, it is user 0's: nothing is certified; " in found.why
        assert examine(str(folder)).fit == "verified"
