"""What TRL 1.16 itself has saved, ``checkpoint-2`` of a tiny MoE: verified whole, and its damage found."""

import shutil
from pathlib import Path

import pytest

from gyrostat_agent.checkpoints import CheckpointSource, InlineVerifier
from gyrostat_agent.checkpoints.layouts.examine import examine

SAVED = Path(__file__).parents[1] / "data" / "trl" / "checkpoint-2"
FILES = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(SAVED, tmp_path / "checkpoint-2"))


def test_it_is_verified(folder: Path) -> None:
    """Weights, moments, scheduler, random states: all numbers were read, nothing was unpickled."""
    seen = examine(str(folder))
    assert (seen.fit, seen.why, seen.step) == ("verified", "", 2)
    assert seen.knobs["lr"] == pytest.approx(5e-4)


def test_it_is_found_under_its_root(folder: Path) -> None:
    """As the agent does: by name and mark, with a pin beside it."""
    source = CheckpointSource(InlineVerifier(), pinning=True)
    source.set_root(str(folder.parent))
    (seen,) = source.drain()
    assert (seen.path, seen.fit) == (str(folder), "verified")
    pin = folder.parent / "gyrostat-pins" / "checkpoint-2"
    assert sorted(p.name for p in pin.iterdir()) == sorted(p.name for p in folder.iterdir())
    source.close()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["cut short", "emptied", "gone"])
def test_its_damage_is_found(folder: Path, name: str, damage: str) -> None:
    """Each of the files that a run is resumed from; one that is gone is missed beside two others that have it."""
    for step in (1, 3):
        shutil.copytree(SAVED, folder.parent / f"checkpoint-{step}")
    file = folder / name
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 if damage == "cut short" else 0])
    seen = examine(str(folder))
    assert seen.fit == "unfit", (name, damage, seen.fit)


def test_a_moment_that_is_not_finite_is_found(folder: Path) -> None:
    """Optimizer states are what resuming would poison the weights with."""
    import torch

    state = torch.load(folder / "optimizer.pt", weights_only=True)
    state["state"][0]["exp_avg"].view(-1)[0] = float("nan")
    torch.save(state, folder / "optimizer.pt")
    seen = examine(str(folder))
    assert seen.fit == "unfit" and "not finite" in seen.why
