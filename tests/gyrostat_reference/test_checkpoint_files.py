import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from reference_runs import digest, end, fingerprint, train, trainer_at

from gyrostat_reference.checkpoint import Checkpoint, complete
from gyrostat_reference.faults import Fuse
from gyrostat_reference.manifest import MANIFEST, MODEL, OPTIMIZER, STATE, CheckpointError, Manifest
from gyrostat_reference.procedures import Procedures
from gyrostat_reference.ranks import Alone
from gyrostat_reference.reading import read
from gyrostat_reference.state import outline
from gyrostat_reference.trainer import Trainer
from gyrostat_reference.writer import CheckpointWriter


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    """A trainer after two steps, with a checkpoint of the second; tests leave it as it is."""
    trainer = trainer_at(tmp_path_factory.mktemp("trained"))
    train(trainer, 2)
    end(trainer)
    return trainer


@pytest.fixture
def saved(trained: Trainer, tmp_path: Path) -> Path:
    """A copy of that checkpoint to spoil, in a root of its own that the trainer uses."""
    assert trained.keeper.writer is not None
    shutil.copytree(trained.settings.checkpoints or "", tmp_path / "root")
    trained.keeper.writer = CheckpointWriter(tmp_path / "root", 6, Fuse())
    return tmp_path / "root" / "step-00000002"


def loaded(trained: Trainer, saved: Path, named: str = "") -> Checkpoint:
    """What the trainer reads of a checkpoint."""
    return read(saved.parent, saved, outline(trained.policy.model), Alone(), named)


def test_round_trip(trained: Trainer, saved: Path) -> None:
    """What is read back is what was there, bit for bit."""
    now = trained.policy.capture()
    found = loaded(trained, saved, digest(saved))
    assert found.training.weights.keys() == now.weights.keys()
    assert found.training.moments.keys() == now.moments.keys()
    assert all(torch.equal(t, now.weights[n]) for n, t in found.training.weights.items())
    assert all(torch.equal(t, now.moments[n]) for n, t in found.training.moments.items())
    assert [running.random for running in found.running] == [bytes(trained.random.get_state().tolist())]
    assert found.running[0].estimates.encode() == trained.estimates.encode()
    assert (found.manifest.place, found.knobs) == (trained.data.place, trained.knobs)


def test_files_are_private_and_complete(saved: Path) -> None:
    """Nobody else may read them, and nothing unfinished is left beside them."""
    assert {p.name for p in saved.iterdir()} == {MANIFEST, MODEL, OPTIMIZER, STATE}
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]
    assert all(p.stat().st_mode & 0o077 == 0 for p in saved.iterdir())


def flip(folder: Path) -> None:
    data = bytearray((folder / MODEL).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / MODEL).write_bytes(data)


def cut(folder: Path) -> None:
    os.truncate(folder / OPTIMIZER, 1000)


def lose(folder: Path) -> None:
    (folder / OPTIMIZER).unlink()


def lose_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def spoil_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_bytes(b"[" * 5000)


def link_file(folder: Path) -> None:
    (folder / MODEL).rename(folder.parent / "elsewhere")
    (folder / MODEL).symlink_to(folder.parent / "elsewhere")


def link_folder(folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize("spoil", [flip, cut, lose, lose_manifest, spoil_manifest, link_file, link_folder])
def test_a_spoilt_checkpoint_is_refused(trained: Trainer, saved: Path, spoil: Callable[[Path], None]) -> None:
    """Whatever is wrong with it, rollback raises and the trainer is as it was."""
    before, named = fingerprint(trained), digest(saved)
    spoil(saved)
    with pytest.raises(CheckpointError):
        Procedures(trained).rollback({"checkpoint": str(saved), "digest": named, "step": 2})
    assert fingerprint(trained) == before


def rewrite(trained: Trainer, saved: Path, **weights: torch.Tensor) -> Path:
    """Write the checkpoint once more with other weights, every digest right."""
    assert trained.keeper.writer is not None
    found = loaded(trained, saved)
    training = found.training._replace(weights={**found.training.weights, **weights})
    folder = trained.keeper.writer.begin(found._replace(training=training))
    trained.keeper.writer.wait()
    assert folder is not None
    return folder


@pytest.mark.parametrize(
    ("weight", "reason"),
    [
        pytest.param(torch.full((96,), torch.nan), "not finite", id="nan"),
        pytest.param(torch.ones(95), "norm.weight is not there, or not all of it", id="shape"),
        pytest.param(torch.ones(96, dtype=torch.float64), "float64", id="type"),
    ],
)
def test_a_sound_file_with_wrong_tensors_is_refused(
    trained: Trainer, saved: Path, weight: torch.Tensor, reason: str
) -> None:
    """Digests prove that the bytes are the writer's, not that the values are any good."""
    before = fingerprint(trained)
    folder = rewrite(trained, saved, **{"norm.weight": weight})
    with pytest.raises(CheckpointError, match=reason):
        Procedures(trained).rollback({"checkpoint": str(folder), "digest": digest(folder)})
    assert fingerprint(trained) == before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"digest": "xxh3_128:" + "0" * 32}, id="another digest"),
        pytest.param({"digest": ""}, id="no digest"),
        pytest.param({"step": 3}, id="another step"),
        pytest.param({"pass_over": [512]}, id="an item that is none"),
        pytest.param({"pass_over": 7}, id="no list"),
        pytest.param({"checkpoint": "/etc"}, id="outside the root"),
        pytest.param({"checkpoint": "../root"}, id="the root itself"),
        pytest.param({"reset_moments": 1}, id="no flag"),
    ],
)
def test_wrong_arguments_are_refused(trained: Trainer, saved: Path, change: dict[str, object]) -> None:
    """A rollback that is not what the sidecar certified raises, and the trainer is as it was."""
    before = fingerprint(trained)
    arguments = {"checkpoint": str(saved), "digest": digest(saved), "step": 2, **change}
    with pytest.raises(ValueError):
        Procedures(trained).rollback(arguments)
    assert fingerprint(trained) == before


def test_a_name_that_is_taken_is_not_written_to_again(trained: Trainer, saved: Path) -> None:
    """A step that is done again gets a name with its segment: the older folder may be certified."""
    before = digest(saved)
    assert rewrite(trained, saved).name == "step-00000002-s0"
    assert rewrite(trained, saved).name == "step-00000002-s0-2"
    assert digest(saved) == before


def test_rotation_deletes_the_oldest(trained: Trainer, saved: Path) -> None:
    """Age goes by segment, then step: what came after a jump back is newer, whatever its step."""
    writer = CheckpointWriter(saved.parent, 2, Fuse())
    found = loaded(trained, saved)
    for step, segment in ((9, 0), (4, 1)):
        writer.begin(found._replace(manifest=found.manifest._replace(step=step, segment=segment)))
        writer.wait()
    assert [path.name for path, _ in complete(saved.parent)] == ["step-00000009", "step-00000004"]


def test_one_is_written_at_a_time(trained: Trainer, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that is due while one is under way is not begun, and counted."""
    assert trained.keeper.writer is not None
    monkeypatch.setattr(CheckpointWriter, "busy", True)
    with pytest.raises(ValueError, match="being written"):
        Procedures(trained).checkpoint({})
    assert trained.keeper.writer.missed == 1


def test_manifest_round_trip(saved: Path) -> None:
    """A manifest reads back as it was written."""
    body = (saved / MANIFEST).read_bytes()
    assert Manifest.decode(body).encode() == body


def test_a_full_disk_is_counted(trained: Trainer, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The training goes on, and the writer says why there is no checkpoint."""

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    assert trained.keeper.writer is not None
    monkeypatch.setattr(os, "fsync", full)
    trained.begin_checkpoint()
    trained.keeper.writer.wait()
    assert (trained.keeper.writer.failed, trained.keeper.writer.fault) == (
        1,
        "step-00000002-s0: No space left on device",
    )
    assert [path.name for path, _ in complete(saved.parent)] == [saved.name]
