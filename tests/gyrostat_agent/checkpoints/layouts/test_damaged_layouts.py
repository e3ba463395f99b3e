import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from layout_folders import WRITERS

from gyrostat_agent.checkpoints.layouts.examine import examine
from gyrostat_rules.inputs import CheckpointSeen

NAMES = list(WRITERS)
OTHER_TRACKERS = ("latest", "latest_checkpointed_iteration.txt")
MARKS = ("trainer_state.json", ".metadata")


@pytest.fixture(scope="module", params=NAMES)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CheckpointSeen]:
    """A good checkpoint, the newest of three in its root, and the verdict on it."""
    root = tmp_path_factory.mktemp(request.param)
    folder = [WRITERS[request.param](root, step) for step in (20, 40, 60)][-1]
    return folder, examine(str(folder))


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "latest")


def weights(folder: Path) -> list[Path]:
    return [path for path in files(folder) if path.suffix in (".safetensors", ".distcp", ".pt")]


def truncate(folder: Path, dice: random.Random) -> None:
    path = dice.choice(files(folder))
    os.truncate(path, dice.randrange(path.stat().st_size))


def empty(folder: Path, dice: random.Random) -> None:
    os.truncate(dice.choice(files(folder)), 0)


def lose(folder: Path, dice: random.Random) -> None:
    dice.choice(files(folder)).unlink()


def flip(folder: Path, dice: random.Random) -> None:
    path = dice.choice(files(folder))
    data = bytearray(path.read_bytes())
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def smear(folder: Path, dice: random.Random) -> None:
    path = dice.choice(weights(folder))
    data = bytearray(path.read_bytes())
    at = dice.randrange(len(data))
    data[at : at + 64] = b"\xff" * len(data[at : at + 64])
    path.write_bytes(data)


def swap(folder: Path, dice: random.Random) -> None:
    one, other = dice.sample(weights(folder), 2)
    one.rename(folder / "aside")
    other.rename(one)
    (folder / "aside").rename(other)


def leave_unfinished(folder: Path, dice: random.Random) -> None:
    """As it is while it is being written: what is written last is not there, or names the one before."""
    marks = [path for path in files(folder) if path.name in MARKS]
    for path in marks:
        path.unlink()
    for tracker in [folder.parent / name for name in OTHER_TRACKERS if (folder.parent / name).exists()]:
        tracker.write_text(re.sub("60", "40", tracker.read_text()))
    dice.choice(weights(folder)).unlink()


def misname(folder: Path, dice: random.Random) -> None:
    """A checkpoint of one step under the name of another."""
    step = dice.randrange(61, 99)
    for tracker in [folder.parent / name for name in OTHER_TRACKERS if (folder.parent / name).exists()]:
        tracker.write_text(re.sub("60", str(step), tracker.read_text()))
    folder.rename(folder.parent / folder.name.replace("60", str(step)))


DAMAGES: list[tuple[Callable[[Path, random.Random], None], int]] = [
    (truncate, 6), (empty, 3), (lose, 5), (flip, 6), (smear, 3), (swap, 2), (leave_unfinished, 2), (misname, 1),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "times"), [pytest.param(*each, id=each[0].__name__) for each in DAMAGES])
def test_damaged(
    written: tuple[Path, CheckpointSeen], tmp_path: Path, damage: Callable[[Path, random.Random], None], times: int
) -> None:
    """No damaged checkpoint is verified under the digest of the good one; nearly all are refused with a reason."""
    folder, good = written
    for turn in range(times):
        root = shutil.copytree(folder.parent, tmp_path / str(turn))
        dice = random.Random(f"{folder.parent.name[:-1]}-{damage.__name__}-{turn}")
        damage(root / folder.name, dice)
        found = examine(str(next(path for path in root.iterdir() if path.is_dir() and path.name not in ELDER)))
        assert found.fit != "verified" or found.digest != good.digest
        if damage not in (
            flip,
            smear,
            swap,
        ):  # without sums, finite numbers in place of others show by the digest alone
            assert found.fit == "unfit", found
        assert found.why or found.fit == "verified"
        assert "\n" not in found.why


ELDER = {f"{name}{step}" for name in ("checkpoint-", "step-", "global_step") for step in (20, 40)} | {
    "iter_0000020",
    "iter_0000040",
}


@pytest.mark.parametrize("where", ["model", "optimizer"])
@pytest.mark.parametrize("value", [float("nan"), float("-inf")], ids=["nan", "inf"])
@pytest.mark.parametrize("name", NAMES)
def test_one_bad_value(tmp_path: Path, name: str, value: float, where: str) -> None:
    """One value that is not finite, in weights or in a moment of the optimizer, is found and its tensor named."""
    found = examine(str(WRITERS[name](tmp_path, 20, spoilt=value, where=where)))
    tensor = "head.weight" if where == "model" else "exp_avg"
    assert found.fit == "unfit"
    assert re.search(rf": 1 value of tensor \S*{tensor}\S* is not finite$", found.why)


@pytest.mark.parametrize("name", NAMES)
def test_good(tmp_path: Path, name: str) -> None:
    """A whole checkpoint of each layout is verified, alone and beside others, with its step; its digest is stable."""
    folder = WRITERS[name](tmp_path, 20)
    alone = examine(str(folder))
    assert (alone.fit, alone.why, alone.step, alone.path) == ("verified", "", 20, str(folder))
    WRITERS[name](tmp_path, 40)
    WRITERS[name](tmp_path, 60)
    assert examine(str(folder)) == alone
    assert re.fullmatch("xxh3_128:[0-9a-f]{32}", alone.digest)


def test_swapped_shards_of_hugging_face(tmp_path: Path) -> None:
    """Two shards of the same length that changed places are found by the index."""
    folder = WRITERS["huggingface-sharded"](tmp_path, 20)
    swap_names = sorted(folder.glob("model-*.safetensors"))[:2]
    swap_names[0].rename(folder / "aside")
    swap_names[1].rename(swap_names[0])
    (folder / "aside").rename(swap_names[1])
    found = examine(str(folder))
    assert found.fit == "unfit"
    assert "is not in it, as the index says" in found.why
