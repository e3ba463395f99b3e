import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from layout_folders import huggingface, model, torch

from gyrostat_agent.checkpoints.layouts.examine import examine


def set_state(folder: Path, **said: Any) -> None:
    state = json.loads((folder / "trainer_state.json").read_text())
    (folder / "trainer_state.json").write_text(json.dumps({**state, **said}))


def link_file(folder: Path) -> None:
    (folder / "optimizer.pt").rename(folder.parent / "elsewhere")
    (folder / "optimizer.pt").symlink_to(folder.parent / "elsewhere")


def link_below(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    (folder / "global_step20").symlink_to(folder.parent / "other")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def newline(folder: Path) -> None:
    (folder / "a\nb").write_text("")


def deep(folder: Path) -> None:
    (folder / "a/b/c/d/e").mkdir(parents=True)


def deep_json(folder: Path) -> None:
    (folder / "trainer_state.json").write_text("[" * 100_000)


def index_out(folder: Path) -> None:
    said = {"weight_map": {"embed.weight": "../model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(said))


def index_odd(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"embed.weight": 7}}')


def link_folder(folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(folder.parent / "elsewhere")


def stray(folder: Path) -> None:
    """The shard of another save beside a single file of weights with an index of its own."""
    said = {"weight_map": dict.fromkeys(model(), "model.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(said))
    shutil.copy(folder / "model.safetensors", folder / "model-00002-of-00002.safetensors")


HOSTILE: list[tuple[Callable[[Path], None], str]] = [
    (link_file, "optimizer.pt is a link; a link is not followed"),
    (link_below, "global_step20 is a link; a link is not followed"),
    (link_folder, "not a folder; a link is not followed"),
    (pipe, "pipe is not a regular file"),
    (newline, "'a\\nb' is not a plain file name"),
    (deep, "a/b/c/d: folders are nested more than 3 deep"),
    (deep_json, "trainer_state.json cannot be read"),
    (index_out, "names '../model.safetensors', which is no file of weights in this folder"),
    (index_odd, "model.safetensors.index.json has no weight_map of tensor to file"),
    (stray, "model-00002-of-00002.safetensors is not in model.safetensors.index.json"),
    (lambda folder: set_state(folder, global_step="20"), "trainer_state.json has no global_step"),
    (lambda folder: set_state(folder, global_step=True), "trainer_state.json has no global_step"),
    (lambda folder: set_state(folder, global_step=21), "its name says step 20, its files say step 21"),
    (
        lambda folder: (folder / "trainer_state.json").write_text("[]") and None,
        "trainer_state.json is not a JSON object",
    ),
    (
        lambda folder: (folder / "rng_state.pth").rename(folder / "rng_state_3.pth") and None,
        "rng_state_0.pth is missing",
    ),
    (lambda folder: (folder / "model.safetensors").unlink(), "it holds no weights of the model"),
    (
        lambda folder: (folder / "model.safetensors").unlink() or (folder / "optimizer.pt").unlink(),
        "it holds no weights",
    ),
]


@pytest.mark.parametrize(
    ("spoil", "why"), HOSTILE, ids=[str(n) + "-" + each[0].__name__ for n, each in enumerate(HOSTILE)]
)
def test_hostile_folders(tmp_path: Path, spoil: Callable[[Path], None], why: str) -> None:
    """Links, pipes, strange names, lies and nesting are refused in one line; nothing is followed, nothing waits."""
    folder = huggingface(tmp_path, 20)
    spoil(folder)
    found = examine(str(folder))
    assert found.fit == "unfit"
    assert why in found.why and "\n" not in found.why


class Foreign:
    """Of a package that no list knows."""


class Runs:
    def __reduce__(self) -> Any:
        return os.system, ("touch ran",)


def test_a_pickle_that_runs_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An optimizer's file that would run a command when it is loaded is unfit, says which, and runs nothing here."""
    monkeypatch.chdir(tmp_path)
    folder = huggingface(tmp_path, 20)
    torch.save({"state": Runs()}, folder / "optimizer.pt")
    found = examine(str(folder))
    assert found.fit == "unfit"
    assert "optimizer.pt: opcode GLOBAL at byte" in found.why and "posix.system, which would run" in found.why
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "fit"), [("optimizer.pt", "attested"), ("value_head.bin", "attested"), ("training_args.bin", "verified")]
)
def test_what_cannot_be_read(tmp_path: Path, name: str, fit: str) -> None:
    """Weights or optimizer state of an unknown class make a checkpoint attested; settings of one do not matter."""
    folder = huggingface(tmp_path, 20)
    torch.save({"state": Foreign()}, folder / name)
    found = examine(str(folder))
    assert found.fit == fit
    assert ("is not on the list" in found.why) == (fit == "attested")
    assert found.digest


def test_the_old_format_is_attested(tmp_path: Path) -> None:
    """An optimizer's file in torch's old format is as it was written, but its numbers cannot be checked."""
    folder = huggingface(tmp_path, 20)
    torch.save({"a": torch.ones(2)}, folder / "optimizer.pt", _use_new_zipfile_serialization=False)
    assert examine(str(folder)).why.startswith("optimizer.pt: written in torch's old format")
    assert examine(str(folder)).fit == "attested"
