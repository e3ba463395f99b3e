"""Damage: whatever was done to a checkpoint, trainer and sidecar refuse it by name, and the one before it serves."""

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from reference_runs import end, fingerprint, train, trainer_at
from safetensors.torch import load, save

from gyrostat_agent.checkpoints.verify import verify
from gyrostat_reference.checkpoint import complete
from gyrostat_reference.damage import WAYS
from gyrostat_reference.data import Place
from gyrostat_reference.faults import FAULTS
from gyrostat_reference.manifest import MANIFEST, MODEL, OPTIMIZER, STATE, File, Manifest, digest_of
from gyrostat_reference.procedures import Procedures
from gyrostat_reference.trainer import Trainer

NEWEST, BEFORE = "step-00000002", "step-00000001"


class Way(NamedTuple):
    """A fault and its way; ``file`` and ``cause`` (a pattern) are in every reason, ``judged`` in the sidecar's."""

    fault: str
    way: str
    file: str
    cause: str
    judged: str


DAMAGES = [
    Way("checkpoint_truncated", "truncate", MODEL, r"has \d+ bytes, not \d+", "is truncated"),
    Way("checkpoint_flipped", "flip", MODEL, "has digest", "digest differs"),
    Way("checkpoint_lost_file", "lose", OPTIMIZER, "cannot be opened", "is missing"),
    Way("checkpoint_manifest", "cut_manifest", MANIFEST, "cannot be read", "cannot be read"),
    Way("checkpoint_nonfinite", "spoil", "block.attended.weight", "holds a value that is not finite", "is not finite"),
]  # fmt: skip


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that ended after step 2, with checkpoints of steps 1 and 2."""
    folder = tmp_path_factory.mktemp("stopped")
    trainer = trainer_at(folder, checkpoint_every=1)
    train(trainer, 2)
    end(trainer)
    return folder


@pytest.fixture
def folder(stopped: Path, tmp_path: Path) -> Path:
    """A copy of that run's checkpoints."""
    shutil.copytree(stopped / "checkpoints", tmp_path / "checkpoints")
    return tmp_path


@pytest.fixture(params=DAMAGES, ids=lambda each: each.way)
def damage(request: pytest.FixtureRequest, folder: Path) -> Way:
    """One of the ways, done to the newest checkpoint."""
    way: Way = request.param
    WAYS[way.way](folder / "checkpoints" / NEWEST)
    return way


def test_every_way_is_a_fault() -> None:
    """A run can be asked for each of them."""
    assert {(each.fault, each.way) for each in DAMAGES} == {
        (name, fault.act) for name, fault in FAULTS.items() if name.startswith("checkpoint")
    }
    assert {each.way for each in DAMAGES} == set(WAYS)


@pytest.mark.parametrize("each", DAMAGES, ids=lambda each: each.fault)
def test_fault_damages_the_newest_checkpoint_alone(folder: Path, each: Way) -> None:
    """At its step, in the run that goes on; a life after it starts from the one before."""
    before = contents(folder / "checkpoints" / BEFORE)
    struck = trainer_at(folder, checkpoint_every=9, faults=(f"{each.fault}@3",))
    train(struck, 3)
    end(struck)
    assert contents(folder / "checkpoints" / BEFORE) == before
    said: list[str] = []
    train(trainer_at(folder, said=said, checkpoint_every=9), 1)
    assert said[-1] == f"resumed from {BEFORE}"


def test_fault_waits_for_the_checkpoint_that_is_being_written(tmp_path: Path) -> None:
    """The newest is the one of the step before, even where its writer has only just begun."""
    trainer = trainer_at(tmp_path, checkpoint_every=1, faults=("checkpoint_lost_file@2",))
    train(trainer, 2)
    assert not (tmp_path / "checkpoints" / BEFORE / OPTIMIZER).exists()
    assert (tmp_path / "checkpoints" / NEWEST / OPTIMIZER).exists()


def test_fault_without_a_checkpoint_harms_nobody(tmp_path: Path) -> None:
    """There is nothing to damage before the first, nor in a run that keeps none."""
    for checkpoints in (tmp_path / "checkpoints", None):
        trainer = trainer_at(tmp_path, checkpoints=checkpoints, faults=("checkpoint_flipped@1",))
        train(trainer, 1)
        end(trainer)


def test_damaged_checkpoint_is_not_resumed_from(folder: Path, damage: Way) -> None:
    """The run goes on from the one before it, and says why, but for a manifest without which it is no checkpoint."""
    said: list[str] = []
    trainer = trainer_at(folder, said=said, checkpoint_every=9)
    train(trainer, 1)
    assert (trainer.step, said[-1]) == (1, f"resumed from {BEFORE}")
    if damage.way != "cut_manifest":
        assert re.match(f"not resumed from: {NEWEST}: {damage.file} {damage.cause}", said[0])


def test_run_resumed_from_the_one_before_is_the_run_that_was(stopped: Path, folder: Path, damage: Way) -> None:
    """The step that was lost is done again, bit for bit."""
    again = trainer_at(folder, checkpoint_every=9)
    train(again, 2)
    whole = trainer_at(stopped, checkpoint_every=9)
    train(whole, 2)
    assert (whole.history.rewards, len(again.history.rewards)) == ([], 1)
    assert fingerprint(again) == fingerprint(whole)
    end(whole)


def test_rollback_to_a_damaged_checkpoint_is_refused(folder: Path, damage: Way) -> None:
    """Whoever asks is told file and cause, and the trainer is as it was."""
    trainer = trainer_at(folder)
    before = fingerprint(trainer)
    path = folder / "checkpoints" / NEWEST
    asked = {"checkpoint": str(path), "digest": digest_of((path / MANIFEST).read_bytes()), "step": 2}
    with pytest.raises(ValueError, match=f"{damage.file} {damage.cause}"):
        Procedures(trainer).rollback(asked)
    assert fingerprint(trainer) == before


def test_sidecar_refuses_it_too(folder: Path, damage: Way) -> None:
    """It would never be certified, nor gone back to; the file, or the tensor, and the cause are named."""
    good, bad = (verify(str(folder / "checkpoints" / name)) for name in (BEFORE, NEWEST))
    assert (good.fit, bad.fit) == ("verified", "unfit")
    assert damage.file in bad.why and damage.judged in bad.why


def test_spoilt_weights_are_under_digests_that_fit(folder: Path) -> None:
    """Only who looks at the numbers finds out: one of them, of the weights."""
    path = folder / "checkpoints" / NEWEST
    before = load((path / MODEL).read_bytes())
    WAYS["spoil"](path)
    manifest = Manifest.decode((path / MANIFEST).read_bytes())
    assert {name: digest_of((path / name).read_bytes()) for name in manifest.files} == {
        name: file.digest for name, file in manifest.files.items()
    }
    after = load((path / MODEL).read_bytes())
    assert sum(int((~torch.isfinite(tensor)).sum()) for tensor in after.values()) == 1
    assert sum(int((after[name] != tensor).sum()) for name, tensor in before.items()) == 1
    assert verify(str(path)).why == f"{MODEL}: 1 value of tensor block.attended.weight is not finite"


def in_shards(root: Path, trainer: Trainer) -> Path:
    """A checkpoint as two ranks write it: no whole files, a shard of each, what DCP says of it in the header."""
    folder, state = root / "step-00000009", trainer.policy.capture()
    folder.mkdir(parents=True)
    block = [name for name in state.weights if name.startswith("block")]
    rest = [name for name in state.weights if name > "exp_avg"]  # so that a moment comes first in the file
    for rank, part in enumerate((rest, block), 1):
        tensors = {f"exp_avg/{name}": torch.zeros_like(state.weights[name]) for name in part}
        told = json.dumps({name: {"saved_offsets": [0] * state.weights[name].dim()} for name in part})
        body = save({**tensors, **{n: state.weights[n].contiguous() for n in part}}, {"DCP_SHARDING_INFO": told})
        (folder / f"shard-{rank:05d}-model-00001-of-00001.safetensors").write_bytes(body)
    (folder / STATE).write_bytes(b"{}")
    files = {path.name: File(path.stat().st_size, digest_of(path.read_bytes())) for path in folder.iterdir()}
    manifest = Manifest(9, 0, 0, 1.0, Place(), trainer.knobs._asdict(), files)
    (folder / MANIFEST).write_bytes(manifest.encode())
    return folder


@pytest.mark.parametrize(
    ("way", "file"),
    [
        pytest.param("truncate", "shard-00001", id="truncate"),
        pytest.param("flip", "shard-00001", id="flip"),
        pytest.param("lose", "shard-00002", id="lose"),
        pytest.param("spoil", "shard-00001", id="spoil"),
        pytest.param("cut_manifest", MANIFEST, id="cut_manifest"),
    ],
)
def test_shards_are_damaged_too(tmp_path: Path, way: str, file: str) -> None:
    """Where each rank wrote its part, one of the parts is hit; a spoilt one keeps what its header says of it."""
    folder = in_shards(tmp_path, trainer_at(tmp_path / "run"))
    assert verify(str(folder)).fit == "verified"
    headers = {path.name: header(path) for path in folder.glob("*.safetensors")}
    WAYS[way](folder)
    judged = verify(str(folder))
    assert judged.fit == "unfit" and file in judged.why
    if way == "spoil":
        assert "value of tensor" in judged.why and "exp_avg" not in judged.why and "digest" not in judged.why
        assert {path.name: header(path) for path in folder.glob("*.safetensors")} == headers


@pytest.mark.parametrize("way", WAYS)
def test_damaged_checkpoints_manifest_tells_whether_it_is_one(folder: Path, way: str) -> None:
    """Cut off, it is no complete checkpoint any more; damaged in any other way it still looks like one."""
    WAYS[way](folder / "checkpoints" / NEWEST)
    found = [path.name for path, _ in complete(folder / "checkpoints")]
    assert found == [BEFORE] if way == "cut_manifest" else [BEFORE, NEWEST]


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a checkpoint."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def header(path: Path) -> bytes:
    """What a safetensors file says of its tensors."""
    data = path.read_bytes()
    return data[8 : 8 + int.from_bytes(data[:8], "little")]
