"""Rewinding: back to a checkpoint inside the running process, by the trainer's own loaders.

What a step leaves behind goes back together: weights, optimizer, schedule, loss scale, random generators, the
trainer's place and its log. What was generated since is thrown away, and engines that hold a copy of the weights
get these. The data goes on (``feed``). The weights are read by the model's own ``from_pretrained``: the trainer's
loader takes a file's names as they are, and leaves out, with a warning, experts that are fused in memory and single
in the file (Transformers 5.24: Qwen2/3-MoE, Mixtral, OLMoE, DeepSeek-V3).
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gyrostat.integrations.hf.keeping import state_of

_INTERNALS = (
    "_load_from_checkpoint", "_load_optimizer_and_scheduler", "_load_rng_state", "_run_epoch", "get_batch_samples",
)  # fmt: skip
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_BESIDE = ("optimizer.pt", "scheduler.pt")
_PLACE = ("global_step", "epoch", "log_history", "best_metric", "best_global_step", "total_flos")


def refusals(trainer: Any) -> Iterator[str]:
    """Why this trainer cannot go back in process; nothing where it can."""
    if getattr(trainer, "is_deepspeed_enabled", False):
        yield "DeepSpeed keeps weights and moments in its own engine"
    if getattr(trainer, "is_fsdp_enabled", False):
        yield "FSDP shards the weights over ranks"
    if getattr(trainer, "is_distributed_loading_by_transformers", False):
        yield "the model was sharded when it was loaded (tensor or expert parallel)"
    if getattr(trainer.model, "peft_config", None):
        yield "PEFT adapters are loaded anew, not in place"
    if getattr(trainer.model, "is_quantized", False):
        yield "quantized weights cannot be copied into"
    missing = [name for name in _INTERNALS if not callable(getattr(trainer, name, None))]
    if missing:
        version = getattr(sys.modules.get("transformers"), "__version__", "of this version")
        yield f"Transformers {version} has no {', '.join(missing)}"


def check(trainer: Any, path: str, step: object) -> Path:
    """The checkpoint's folder, where it can be gone back to; raises ValueError, and touches nothing."""
    folder = Path(path)
    root = Path(trainer.args.output_dir).resolve()
    if root not in folder.resolve().parents:
        raise ValueError(f"{path} is not under this run's output_dir, {root}")
    said = state_of(folder)
    if step is not None and said["global_step"] != step:
        raise ValueError(f"{path} is of step {said['global_step']}, not {step}")
    if said["global_step"] > trainer.state.max_steps:
        raise ValueError(f"{path} is of step {said['global_step']}, past this run's last, {trainer.state.max_steps}")
    if not any((folder / name).is_file() for name in _WEIGHTS):
        raise ValueError(f"{path} holds no weights in one of {', '.join(_WEIGHTS)}")
    if absent := [name for name in _BESIDE if not (folder / name).is_file()]:
        raise ValueError(f"{path} has no {absent[0]} (save_only_model?): moments and schedule cannot go back")
    return folder


def rewind(trainer: Any, folder: Path) -> dict[str, Any]:
    """Load all of a checkpoint that ``check`` has seen; its trainer_state.json. Raises what the loaders raise.

    Weights that are not all there are found before anything is touched: ValueError.
    """
    said, path = state_of(folder), str(folder)
    weights = _weights(trainer.model, path)
    if weights is None:
        trainer._load_from_checkpoint(path)
    else:
        _copy(trainer.model, weights)
    trainer._load_optimizer_and_scheduler(path)
    if hasattr(trainer, "_load_scaler"):
        trainer._load_scaler(path)
    trainer._load_rng_state(path)
    for name in _PLACE:
        if name in said and hasattr(trainer.state, name):
            setattr(trainer.state, name, said[name])
    _forget_since(trainer)
    _send_weights(trainer)
    return said


def _weights(model: Any, path: str) -> dict[str, Any] | None:
    """All weights of the checkpoint, under the names that they have in the model; None for a model of no library."""
    read = getattr(type(model), "from_pretrained", None)
    if read is None:
        return None
    loaded, report = read(path, dtype=next(model.parameters()).dtype, local_files_only=True, output_loading_info=True)
    found: dict[str, Any] = loaded.state_dict()
    absent = sorted({*report.get("missing_keys", ()), *(model.state_dict().keys() - found.keys())})
    if absent:
        raise ValueError(f"{path} lacks {len(absent)} of the model's tensors, such as {absent[0]}")
    return found


def _copy(model: Any, weights: dict[str, Any]) -> None:
    """Into the tensors that are there: optimizer, engines and other ranks know them."""
    with sys.modules["torch"].no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(weights[name])


def _forget_since(trainer: Any) -> None:
    """Gradients, sums and lists of the steps that are undone."""
    trainer.model.zero_grad()
    total: Any = getattr(trainer, "_tr_loss", None)
    if hasattr(total, "zero_"):
        total.zero_()  # not by subtracting: NaN less NaN is NaN
    if not math.isfinite(getattr(trainer, "_total_loss_scalar", 0.0)):
        trainer._total_loss_scalar = 0.0
    if hasattr(trainer, "_globalstep_last_logged"):
        trainer._globalstep_last_logged = trainer.state.global_step
    if isinstance(metrics := getattr(trainer, "_metrics", None), dict) and "train" in metrics:
        metrics["train"].clear()
    if hasattr(trainer, "_entropy_window_stats"):
        trainer._entropy_window_stats = None


def _send_weights(trainer: Any) -> None:
    """Give the rollout engine the same weights before anybody hears that the run went back."""
    if not getattr(trainer, "use_vllm", False):
        return
    engine = getattr(trainer, "vllm_generation", None)
    if engine is None or not hasattr(engine, "sync_weights"):
        trainer._last_loaded_step = -1  # TRL sends them itself, before it generates next
        return
    engine.sync_weights()
    trainer._last_loaded_step = trainer.state.global_step
