import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint import HuggingFaceStorageReader, load

from gyrostat_agent.checkpoints.verify import verify
from gyrostat_reference.manifest import CheckpointError
from gyrostat_reference.model import LoopMoE
from gyrostat_reference.ranks import Alone
from gyrostat_reference.reading import read
from gyrostat_reference.state import capture, outline, put_back

WRITTEN = [pytest.param("ddp", id="ddp"), pytest.param("fsdp2", id="fsdp2")]
Written = tuple[Path, str]


@pytest.fixture(params=WRITTEN)
def written(request: pytest.FixtureRequest, trained: Any) -> Written:
    """A checkpoint of two ranks, not to be spoilt, and the digest of the state that it holds."""
    _, found = trained(request.param, 2)
    return Path(found[0]["folder"]), found[0]["saved"]


@pytest.fixture
def copied(written: Written, tmp_path: Path) -> Path:
    """A copy that may be spoilt."""
    return Path(shutil.copytree(written[0], tmp_path / "root" / written[0].name))


def flip(folder: Path) -> str:
    """One bit of one number."""
    shard = sorted(folder.glob("*.safetensors"))[-1]
    data = bytearray(shard.read_bytes())
    data[-100] ^= 1
    shard.write_bytes(data)
    return f"{shard.name} has digest"


def lose(folder: Path) -> str:
    """One shard less."""
    shard = sorted(folder.glob("*.safetensors"))[0]
    shard.unlink()
    return f"{shard.name} cannot be opened"


def cut(folder: Path) -> str:
    """A shard without its end."""
    shard = sorted(folder.glob("*.safetensors"))[0]
    os.truncate(shard, 5000)
    return f"{shard.name} has 5000 bytes"


SPOILT = [pytest.param(flip, id="flipped-bit"), pytest.param(lose, id="missing"), pytest.param(cut, id="cut-short")]


def test_sidecar_certifies_shards(written: Written) -> None:
    """What the ranks wrote is verified by the sidecar, all of it: every shard and every number."""
    found = verify(str(written[0]))
    assert (found.fit, found.why, found.step, found.data_cursor) == ("verified", "", 4, 7)
    assert len(list(written[0].glob("shard-*.safetensors"))) == 2
    assert not [path for path in written[0].iterdir() if path.suffix not in (".safetensors", ".json")]


@pytest.mark.parametrize("spoil", SPOILT)
def test_spoilt_shard_is_refused(copied: Path, spoil: Any) -> None:
    """By the sidecar, and by whoever would load it, before the model is touched."""
    assert verify(str(copied)).fit == "verified"
    why = spoil(copied)
    assert verify(str(copied)).fit == "unfit"
    with pytest.raises(CheckpointError, match=why):
        read(copied.parent, copied, outline(LoopMoE()), Alone())


def test_one_process_goes_on_from_many(written: Written) -> None:
    """A plain process takes up what ranks have written, weights, buffers and moments."""
    model = LoopMoE()
    optimizer = torch.optim.AdamW(model.parameters())
    checkpoint = read(written[0].parent, written[0], outline(model), Alone())
    put_back(checkpoint.training, model, optimizer)
    state = capture(model, optimizer)
    assert state.weights.keys() == model.state_dict().keys()
    for ours, theirs in zip(state, checkpoint.training, strict=True):
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert float(state.moments["step/block.experts.fall"]) == 5.0  # updates
    assert len(checkpoint.running) == 2


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")  # that is what no_dist asks for
def test_shards_are_torch_s_own_format(written: Written) -> None:
    """torch's distributed checkpoint reads them without us, and reads the same."""
    expected = outline(LoopMoE())
    ours = read(written[0].parent, written[0], expected, Alone()).training
    theirs = {n: torch.empty(t.shape, dtype=t.dtype) for n, t in {**expected.weights, **expected.moments}.items()}
    load(theirs, storage_reader=HuggingFaceStorageReader(str(written[0])), no_dist=True)
    assert all(torch.equal(theirs[name], tensor) for name, tensor in {**ours.weights, **ours.moments}.items())


@pytest.mark.parametrize(
    ("before", "how", "world"),
    [
        pytest.param("fsdp2", "ddp", 2, id="fsdp2-to-ddp"),
        pytest.param("ddp", "fsdp2", 2, id="ddp-to-fsdp2", marks=pytest.mark.full),
        pytest.param("fsdp2", "fsdp2", 4, id="to-4-ranks", marks=pytest.mark.full),
        pytest.param("fsdp2", "fsdp2", 6, id="to-6-ranks-some-without-a-part", marks=pytest.mark.full),
    ],
)
def test_other_ranks_go_on(launched: Any, trained: Any, tmp_path: Path, before: str, how: str, world: int) -> None:
    """Any number of ranks restores the same bits and goes on together; what one rank refuses, none has touched."""
    _, wrote = trained(before, 2)
    folder = Path(shutil.copytree(wrote[0]["folder"], tmp_path / "step-00000004"))
    found = launched("resume", how, world, tmp_path)
    assert len(found) == world
    for each in found:
        assert each["refused"].startswith(f"CheckpointError: rank 1: {folder.name}: manifest.json has digest ")
        assert each["untouched"] is True
        assert (each["restored"], each["cursor"]) == (wrote[0]["saved"], 7)
        assert (each["norm"], each["then"]) == (found[0]["norm"], found[0]["then"])


@pytest.fixture(scope="module")
def mishaps(launched: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """The root, and what each rank found."""
    root = tmp_path_factory.mktemp("mishaps")
    return root, launched("mishaps", "fsdp2", 2, root)


def test_full_disk_of_one_rank(mishaps: tuple[Path, list[dict[str, Any]]]) -> None:
    """Where one rank cannot write, no checkpoint is left, all ranks count it, and the next one is written."""
    for each in (found["full"] for found in mishaps[1]):
        assert (each["failed"], each["left"]) == (1, []), each["fault"]
        assert each["fault"].startswith("step-00000007: rank 1: ")
        assert (each["then"], each["complete"]) == (1, True)


def test_poison_in_one_part_is_refused_by_all(mishaps: tuple[Path, list[dict[str, Any]]]) -> None:
    """A NaN that one rank holds makes the checkpoint unfit for the sidecar and for every rank."""
    said = "CheckpointError: rank 0: step-00000009: block.experts.fall holds a value that is not finite"
    assert [found["poison"]["refused"] for found in mishaps[1]] == [said] * 2
    assert verify(str(mishaps[0] / "step-00000009")).fit == "unfit"


def test_killed_rank_leaves_no_checkpoint(launched: Any, tmp_path: Path) -> None:
    """A rank that dies while it writes is told at once, and nothing of the checkpoint can be taken for one."""
    (found,) = launched("killed", "fsdp2", 2, tmp_path, ends=False)
    assert found["lost"].startswith("RankLost: rank 0 of 2: another rank is gone")
    assert (found["failed"], found["left"]) == (1, [])
    assert found["fault"].startswith("step-00000004: rank 0 of 2: another rank is gone")
