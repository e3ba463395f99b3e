"""Trains a tiny model of each MoE family with a rate of 0 and counts its experts by hand, from the same batches.

Called by test_expertload.py, in the interpreter that has TRL: ``python count_experts.py FOLDER``. By hand means from
what comes into each router, with weights multiplied and the largest taken here, by numpy.
"""

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import trl_tiny as tiny

from gyrostat.integrations.transformers import GyrostatCallback

HOME = Path(sys.argv[1])
torch = tiny.torch


def trained(name: str, kind: str, model: Any = None, **more: Any) -> tuple[Any, list[list[Any]]]:
    """A trainer after three steps under a callback, and each step's batches."""
    trainer = tiny.plain(HOME / name, kind=kind, trained=model, steps=3, learning_rate=0.0, **more)
    batches: list[Any] = []
    step = trainer.training_step

    def kept(model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        batches.append({key: value.clone() for key, value in inputs.items()})
        return step(model, inputs, *args, **kwargs)

    trainer.training_step = kept
    run = HOME / "runs" / name
    run.mkdir(parents=True, mode=0o700)
    os.environ["GYROSTAT_RUN_DIR"] = str(run)
    trainer.add_callback(GyrostatCallback(trainer))
    with open(HOME / f"{name}.err", "w") as err, contextlib.redirect_stderr(err):
        trainer.train()
    each = len(batches) // 3
    return trainer, [batches[i * each : (i + 1) * each] for i in range(3)]


def by_hand(model: Any, batches: list[Any]) -> list[list[int]]:
    """Counts of shape (layers, experts): each token that is no padding, once for each expert chosen."""
    seen: dict[str, list[Any]] = {}
    hooks = [
        module.register_forward_pre_hook(lambda m, args, name=name: seen.setdefault(name, []).append((m, args[0])))
        for name, module in model.named_modules()
        if name.endswith((".gate", ".router"))
    ]
    model.train()
    with torch.no_grad():
        for batch in batches:
            model(**batch)
    for hook in hooks:
        hook.remove()
    real = [np.asarray(batch["attention_mask"]).reshape(-1).astype(bool) for batch in batches]
    return [_counted(calls, real) for calls in seen.values()]


def _counted(calls: list[Any], real: list[Any]) -> list[int]:
    counts = np.zeros(tiny.EXPERTS, int)
    for (router, hidden), mask in zip(calls, real, strict=True):
        x = np.asarray(hidden.detach(), np.float32).reshape(-1, hidden.shape[-1])
        logits = x @ np.asarray(router.weight.detach(), np.float32).T
        if getattr(router, "bias", None) is not None:
            logits = logits + np.asarray(router.bias.detach())
        if hasattr(router, "e_score_correction_bias"):
            logits = _limited(1 / (1 + np.exp(-logits)) + np.asarray(router.e_score_correction_bias))
        chosen = np.argsort(-logits, axis=1)[:, : tiny.TOP_K]
        counts += np.bincount(chosen[mask].reshape(-1), minlength=tiny.EXPERTS)
    return counts.tolist()


def _limited(scores: Any) -> Any:
    """DeepSeek-V3's: of two groups of four the one whose two best are best; the other cannot be chosen."""
    groups = scores.reshape(len(scores), 2, 4)
    best = np.sort(groups, axis=2)[:, :, -2:].sum(2).argmax(1)
    return np.where(np.arange(2)[None, :, None] == best[:, None, None], groups, -np.inf).reshape(len(scores), 8)


class Riddle(torch.nn.Module):
    """A router that nobody knows: it returns weights of all experts, and no choice."""

    def __init__(self) -> None:
        super().__init__()
        self.num_experts, self.top_k = 4, 2
        self.weight = torch.nn.Parameter(torch.zeros(4, 32))

    def forward(self, hidden: Any) -> Any:
        return torch.softmax(hidden @ self.weight.T, -1)


def riddle() -> Any:
    """A dense model with such a router in it, whose word counts for nothing."""
    model = tiny.model("llama")
    model.model.layers[0].mlp.router = Riddle()
    plain = model.model.layers[0].mlp.forward

    def forward(hidden: Any) -> Any:
        return plain(hidden) + 0.0 * model.model.layers[0].mlp.router(hidden).sum()

    model.model.layers[0].mlp.forward = forward
    return model


if __name__ == "__main__":
    results: dict[str, Any] = {}
    cases = {kind: (kind, None, {}) for kind in tiny.FAMILIES if kind != "llama"}
    recomputed = {"gradient_accumulation_steps": 2, "gradient_checkpointing": True}
    for name, reentrant in (("recomputed", False), ("reentrant", True)):
        cases[name] = ("qwen3_moe", None, {**recomputed, "gradient_checkpointing_kwargs": {"use_reentrant": reentrant}})
    cases["dense"] = ("llama", None, {})
    cases["riddle"] = ("llama", riddle(), {})
    for name, (kind, model, more) in cases.items():
        trainer, steps = trained(name, kind, model, **more)
        hand = [by_hand(trainer.model, batches) for batches in steps] if tiny.FAMILIES[kind] else []
        results[name] = {"hand": hand, "said": (HOME / f"{name}.err").read_text()}
        results[name]["recomputes"] = bool(trainer.model.is_gradient_checkpointing)
    print("RESULT " + json.dumps(results))
