"""A user's GRPO run of a tiny Qwen3-MoE that something happens to: ``python mend_grpo.py FAULT FOLDER GATE``.

Gyrostat is there by its three lines alone. A fault that needs a certified checkpoint waits for the file GATE before
it strikes. Called by test_mended.py under ``gyrostat run``; prints what came of it behind ``RESULT``.
"""

import json
import math
import os
import signal
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import torch
import trl_tiny as tiny
from transformers import TrainerCallback

FAULT, FOLDER, GATE = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
STRUCK = FOLDER / "struck"
PUSH = 3.0  # added to the scores of two experts
SETTINGS: dict[str, dict[str, Any]] = {
    "nan_weights": {"steps": 24, "save_steps": 5},
    "nan_reward": {"steps": 40, "save_steps": 5},
    "poisoned": {"steps": 44, "save_steps": 200, "num_iterations": 3, "max_completion_length": 4},
    "entropy": {
        "kind": "llama",
        "steps": 100,
        "learning_rate": 1e-2,
        "save_steps": 200,
        "max_completion_length": 8,
        "lr_scheduler_type": "constant",
    },
    "router": {"steps": 76, "save_steps": 200, "learning_rate": 4e-3, "lr_scheduler_type": "constant"},
    "killed": {"steps": 20, "save_steps": 5},
}


class Fault(TrainerCallback):  # type: ignore[misc]
    """Strikes once in the life of the run."""

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        if STRUCK.exists():
            return
        if state.global_step == 7 and FAULT in ("nan_weights", "nan_reward", "killed"):
            _wait()
        if state.global_step == 8 and FAULT == "nan_weights":
            STRUCK.touch()
            with torch.no_grad():
                next(model.parameters()).fill_(math.nan)
        if state.global_step == 20 and FAULT == "router":
            STRUCK.touch()
            _skew(model)
        if state.global_step == 8 and FAULT == "killed":
            STRUCK.touch()
            os.kill(os.getpid(), signal.SIGKILL)


class Seen(TrainerCallback):  # type: ignore[misc]
    """What the run measured, by step."""

    def __init__(self) -> None:
        self.entropy: list[float] = []
        self.steps: list[int] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if "entropy" in (logs or {}):
            self.entropy.append(logs["entropy"])
            self.steps.append(state.global_step)


def _wait() -> None:
    end = time.monotonic() + 60
    while not GATE.exists():
        assert time.monotonic() < end, "no checkpoint was certified in time"
        time.sleep(0.02)


def _skew(model: Any) -> None:
    """Two experts of each layer get nearly all tokens: their scores are raised by what all tokens have in common."""
    seen: dict[Any, Any] = {}
    gates = [layer.mlp.gate for layer in model.model.layers]
    hooks = [g.register_forward_pre_hook(lambda m, args: seen.setdefault(m, args[0].reshape(-1, 32))) for g in gates]
    with torch.no_grad():
        model(torch.randint(4, 99, (16, 16), generator=torch.Generator().manual_seed(0)))
        for gate, hook in zip(gates, hooks, strict=True):
            hook.remove()
            mean = seen[gate].mean(0)
            gate.weight[:2] += PUSH * mean / mean.square().sum()


def _luck(completions: list[str], **_: Any) -> list[float]:
    """A reward that nothing can be learnt from: the policy stays as it is, and its tokens stay many."""
    return [zlib.crc32(c.encode()) % 1000 / 1000 for c in completions]


class Poisoned:
    """A prompt whose every loss is NaN, met first in the fourth generation; the reward function sees it come."""

    def __init__(self) -> None:
        self.prompts: set[str] = set()
        self.generations = self.losses = 0
        self.there = False

    def reward(self, prompts: list[str], completions: list[str], **_: Any) -> list[float]:
        self.generations += 1
        if self.generations == 4:
            self.prompts = set(prompts)
        self.there = bool(self.prompts & set(prompts))
        return tiny.digits(completions)

    def spoil(self, trainer: Any) -> None:
        compute = trainer.compute_loss

        def spoilt(*args: Any, **named: Any) -> Any:
            self.losses += self.there
            return compute(*args, **named) * (math.nan if self.there else 1.0)

        trainer.compute_loss = spoilt
        trainer.train_dataset = tiny.sums(10)  # five generations of three steps an epoch: it comes again and again


def _lost() -> Any:
    """Returns NaN from step 9 on, until the run has gone back: however long an agent takes to answer."""
    farthest, gone_back = 0, False

    def reward(completions: list[str], trainer_state: Any, **_: Any) -> list[float]:
        nonlocal farthest, gone_back
        done = trainer_state.global_step
        farthest, gone_back = max(farthest, done), gone_back or done < farthest
        return [math.nan if done >= 8 and not gone_back else r for r in tiny.digits(completions)]

    return reward


POISON = Poisoned()


def _one_letter(completions: list[str], **_: Any) -> list[float]:
    return [min(1.0, c.count("a") / max(1, len(c)) / 0.8) for c in completions]


def _rewards() -> Any:
    by_fault = {"entropy": _one_letter, "router": _luck, "nan_reward": _lost(), "poisoned": POISON.reward}
    return [by_fault[FAULT]] if FAULT in by_fault else None


def prepared(seen: Seen) -> Any:
    """The trainer as its user has it, and the fault in it."""
    FOLDER.mkdir(exist_ok=True)
    trainer = tiny.grpo(FOLDER / "out", rewards=_rewards(), save_strategy="steps", **SETTINGS[FAULT])
    if FAULT == "poisoned":
        POISON.spoil(trainer)
    trainer.add_callback(Fault())
    trainer.add_callback(seen)
    return trainer


if __name__ == "__main__":
    from gyrostat.integrations.transformers import GyrostatCallback

    seen = Seen()
    trainer = prepared(seen)
    trainer.add_callback(GyrostatCallback(trainer))
    began = time.monotonic()
    trainer.train()
    result = {
        "step": trainer.state.global_step,
        "finite": all(p.isfinite().all().item() for p in trainer.model.parameters()),
        "losses": POISON.losses,
        "entropy": seen.entropy,
        "steps": seen.steps,
        "seconds": time.monotonic() - began,
    }
    print("RESULT", json.dumps(result))
