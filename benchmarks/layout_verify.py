"""How fast checkpoints of each layout are verified: against sha256 alone, and torch.load with isfinite, in one run.

    python benchmarks/layout_verify.py [MiB] [--json]

Float32 weights as each trainer's own writer leaves them; one thread, files in the page cache, so that seconds of the
processor are counted and what runs beside counts little; the best of the rounds, variants take turns. ``verified`` is
what the agent's child does: digest and finiteness of every file, without unpickling. What it is compared with: sha256
of every file, alone; and what people write by hand, torch.load (or safetensors, or a DCP load) with isfinite of every
tensor. Exit status 1 where it is below 5 x sha256, or below 10 x the latter, in a layout.

The size decides: at 128 MiB the second goal was missed in all layouts and the first for DCP; at 512 MiB, the default,
both were met in all. Why was not looked into.
"""

import argparse
import hashlib
import json
import os
import pickle
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from safetensors.torch import load_file, save_file
from torch.distributed import checkpoint

from gyrostat_agent.checkpoints.layouts.examine import examine
from gyrostat_rules.inputs import Fit

ROUNDS = 5
GOALS = {"sha256": 5.0, "load and isfinite": 10.0}
TENSORS = 8
State = dict[str, torch.Tensor]


def weights(size: int) -> State:
    """So many bytes in eight tensors."""
    torch.manual_seed(0)
    return {f"layers.{i}.weight": torch.randn(size // 4 // TENSORS) for i in range(TENSORS)}


def huggingface(folder: Path, state: State) -> None:
    save_file(state, folder / "model.safetensors")
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 40, "log_history": []}))


def dcp(folder: Path, state: State) -> None:
    checkpoint.save({"model": state, "step": 40}, storage_writer=checkpoint.FileSystemWriter(folder), no_dist=True)


def megatron(folder: Path, state: State) -> None:
    args = argparse.Namespace(tensor_model_parallel_size=1, pipeline_model_parallel_size=1, consumed_train_samples=1)
    place = folder / "mp_rank_00"
    place.mkdir()
    torch.save({"args": args, "iteration": 40, "model": state, "checkpoint_version": 3.0}, place / "model_optim_rng.pt")
    (folder.parent / "latest_checkpointed_iteration.txt").write_text("40")


def deepspeed(folder: Path, state: State) -> None:
    saved = {"module": state, "global_steps": 40, "dp_world_size": 1, "mp_world_size": 1, "ds_version": "0.18.2",
             "ds_config": {"zero_optimization": {"stage": 0}}}  # fmt: skip
    torch.save(saved, folder / "mp_rank_00_model_states.pt")
    (folder.parent / "latest").write_text("global_step40")


WRITERS: dict[str, tuple[str, Callable[[Path, State], None]]] = {
    "huggingface": ("checkpoint-40", huggingface), "dcp": ("step-40", dcp), "megatron": ("iter_0000040", megatron),
    "deepspeed": ("global_step40", deepspeed),
}  # fmt: skip


def hashed(folder: Path) -> None:
    for path in files(folder):
        with open(path, "rb") as file:
            hashlib.file_digest(file, "sha256") if sys.version_info >= (3, 11) else hashlib.sha256(file.read())


def loaded(folder: Path) -> None:
    """All of it in memory, and every tensor asked."""
    if (folder / ".metadata").exists():
        metadata = pickle.loads((folder / ".metadata").read_bytes()).state_dict_metadata
        sizes = {name: each.size for name, each in metadata.items() if hasattr(each, "size")}
        state: Any = {name: torch.empty(size) for name, size in sizes.items()}
        checkpoint.load(state, storage_reader=checkpoint.FileSystemReader(folder), no_dist=True)
        assert all(bool(torch.isfinite(each).all()) for each in state.values())
    for path in files(folder):
        if path.suffix in (".pt", ".safetensors"):
            state = load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=False)
            assert all(bool(torch.isfinite(each).all()) for each in tensors(state))


def tensors(state: Any) -> Iterator[torch.Tensor]:
    for each in state.values() if isinstance(state, dict) else ():
        if isinstance(each, torch.Tensor):
            yield each
        else:
            yield from tensors(each)


def verified(folder: Path) -> None:
    seen = examine(str(folder))
    assert seen.fit == Fit.VERIFIED, seen.why


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


VARIANTS = {"sha256": hashed, "load and isfinite": loaded, "verified": verified}


def measured(root: Path, name: str, state: State) -> dict[str, float]:
    """Best MB a second of each variant, for one layout."""
    folder_name, write = WRITERS[name]
    folder = root / name / folder_name
    folder.mkdir(parents=True)
    write(folder, state)
    size = sum(path.stat().st_size for path in files(folder))
    best = dict.fromkeys(VARIANTS, 0.0)
    for _ in range(ROUNDS):
        for variant, run in VARIANTS.items():
            began = time.process_time()
            run(folder)
            best[variant] = max(best[variant], size / 1e6 / (time.process_time() - began))
    for path in files(folder):
        path.unlink()
    return best


def main() -> int:
    """Print speeds and ratios; the exit status says whether the goals are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("mib", nargs="?", type=int, default=512)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # that DCP finds no process group is meant
    torch.set_num_threads(1)
    state = weights(given.mib << 20)
    with tempfile.TemporaryDirectory() as folder:
        found = {name: measured(Path(folder), name, state) for name in WRITERS}
    missed = [f"{name} against {other}" for name, best in found.items() for other, goal in GOALS.items()
              if best["verified"] < goal * best[other]]  # fmt: skip
    if given.json:
        print(json.dumps({"mib": given.mib, "mb_per_s": found, "missed": missed}))
    for name, best in () if given.json else found.items():
        ratios = ", ".join(f"{best['verified'] / best[other]:.1f} x {other}" for other in GOALS)
        print(f"{name:12} verified at {best['verified']:7,.0f} MB/s: {ratios}")
    if not given.json:
        print("goals met" if not missed else f"goals missed: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
