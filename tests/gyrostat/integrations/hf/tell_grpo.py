"""Trains tiny models in one process, watched and not, in good and bad health; prints what came of it as one JSON line.

Called by test_telling.py, in the interpreter that has TRL: ``python tell_grpo.py FOLDER``.
"""

import asyncio
import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trl_tiny as tiny

from gyrostat.integrations.hf import expertload, rewards, steering, telling, update
from gyrostat.integrations.transformers import GyrostatCallback

HOME = Path(sys.argv[1])


def watched(name: str, trainer: Any, *more: Any) -> Any:
    """Train under a callback, into a run directory of that name; what came of it."""
    run = HOME / "runs" / name
    run.mkdir(parents=True, mode=0o700)
    os.environ["GYROSTAT_RUN_DIR"] = str(run)
    callback = GyrostatCallback(trainer)
    trainer.add_callback(callback)
    for one in more:
        trainer.add_callback(one)
    before = set(vars(trainer))
    error = ""
    with open(HOME / f"{name}.err", "w") as err, contextlib.redirect_stderr(err):
        try:
            trainer.train()
        except RuntimeError as died:
            error = str(died)
    del os.environ["GYROSTAT_RUN_DIR"]
    return {
        "weights": tiny.digest(trainer.model),
        "step": trainer.state.global_step,
        "log": trainer.state.log_history,
        "said": (HOME / f"{name}.err").read_text(),
        "error": error,
        "left": sorted(set(vars(trainer)) - before - {"_memory_tracker"}),
        "replaced": "training_step" in vars(trainer),
    }


class At:
    """A callback that does something once, at the beginning of a step."""

    def __init__(self, step: int, act: Callable[[], None]) -> None:
        self._step, self._act = step, act

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda *_, **__: None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self._step:
            self._act()


class Clock:
    """Processor time spent in our own code: its outermost calls alone, however deep they go."""

    def __init__(self) -> None:
        self.seconds, self._depth = 0.0, 0

    def time(self, owner: Any, name: str) -> None:
        inner = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            began, self._depth = time.thread_time(), self._depth + 1
            try:
                return inner(*args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.thread_time() - began

        setattr(owner, name, timed)


def clocked() -> Clock:
    clock = Clock()
    for name in vars(GyrostatCallback):
        if name.startswith("on_") and name not in ("on_train_begin", "on_train_end"):
            clock.time(GyrostatCallback, name)
    for owner, name in (
        (expertload._Stack, "_opened"), (expertload._Stack, "_returned"), (expertload.ExpertLoad, "choice"),
        (rewards.Rewards, "_looked"), (update.Update, "_add_loss"), (update.Update, "_keep_norm"),
    ):  # fmt: skip
        clock.time(owner, name)
    return clock


def alike() -> Any:
    """The same six steps: alone, without a run directory, and watched."""
    alone = tiny.grpo(HOME / "alone", save_strategy="steps", save_steps=3)
    alone.train()
    idle = tiny.grpo(HOME / "idle")
    idle.add_callback(GyrostatCallback(idle))
    functions = list(idle.reward_funcs)
    idle.train()
    untouched = "training_step" not in vars(idle) and idle.reward_funcs == functions
    seen = watched("alike", tiny.grpo(HOME / "seen", save_strategy="steps", save_steps=3))
    return {"alone": tiny.digest(alone.model), "idle": tiny.digest(idle.model), "untouched": untouched, **seen}


def throwing() -> Any:
    """All of ours that can throw does."""

    def throw(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("ours")

    targets = [
        (telling.Telling, "step_ends"), (telling.Telling, "step_begins"), (telling.Telling, "logs"),
        (expertload.ExpertLoad, "add"), (rewards.Rewards, "_look"), (telling.Telling, "update_begins"),
    ]  # fmt: skip
    kept = [(owner, name, getattr(owner, name)) for owner, name in targets]
    for owner, name, _ in kept:
        setattr(owner, name, throw)
    try:
        return watched("throwing", tiny.grpo(HOME / "throwing"))
    finally:
        for owner, name, original in kept:
            setattr(owner, name, original)


def odd_rewards() -> Any:
    """One function is NaN throughout a step, one of a single completion, one is asynchronous, one says nothing."""
    calls = {"lost": 0, "once": 0}

    def lost(completions: list[str], **_: Any) -> list[float]:
        calls["lost"] += 1
        return [math.nan if calls["lost"] == 3 else 1.0] * len(completions)

    def once(completions: list[str], **_: Any) -> list[float]:
        calls["once"] += 1
        return [math.nan if calls["once"] == 3 and i == 1 else float(i) for i in range(len(completions))]

    async def later(completions: list[str], **_: Any) -> list[float]:
        await asyncio.sleep(0)
        return [0.25] * len(completions)

    def silent(completions: list[str], **_: Any) -> list[None]:
        return [None] * len(completions)

    mine = [lost, once, later, silent]
    trainer = tiny.grpo(HOME / "rewards", rewards=mine, steps=4, logging_steps=4)
    return {**watched("rewards", trainer), "mine": trainer.reward_funcs == mine, "kept": [f.__name__ for f in mine]}


def nan_weights() -> Any:
    """A weight becomes NaN between two steps, with nobody there who would mend it."""
    trainer = tiny.grpo(HOME / "weights")
    assert steering.Steering.__init__.__kwdefaults__["patience"]
    steering.Steering.__init__.__kwdefaults__["patience"] = 0.05  # nobody answers

    def spoil() -> None:
        with tiny.torch.no_grad():
            next(iter(trainer.model.parameters()))[0, 0] = math.nan

    trainer.callback_handler.callbacks.insert(0, At(3, spoil))
    return watched("weights", trainer)


def nan_loss() -> Any:
    """Transformers' own trainer, whose filter hides a NaN; gradients accumulate, and nothing is clipped."""
    trainer = tiny.plain(HOME / "plain", gradient_accumulation_steps=2, max_grad_norm=0.0, logging_steps=2)
    calls, original = [0], trainer.compute_loss

    def spoilt(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        loss = original(*args, **kwargs)
        return loss * math.nan if calls[0] == 6 else loss

    trainer.compute_loss = spoilt
    losses: list[float] = []
    step = trainer.training_step

    def kept(*args: Any, **kwargs: Any) -> Any:
        loss = step(*args, **kwargs)
        losses.append(float(loss))
        return loss

    trainer.training_step = kept
    return {**watched("plain", trainer), "losses": losses}


def accumulated() -> Any:
    """Two micro-batches a step, and one reward a generation."""
    return watched("accumulated", tiny.grpo(HOME / "accumulated", steps=3, gradient_accumulation_steps=2))


def cost() -> Any:
    """Processor time of our own code in steps of a model that is not quite as tiny, and of those steps."""
    trainer = tiny.grpo(HOME / "cost", steps=4, hidden=256, per_device_train_batch_size=64, max_completion_length=128)
    clock = clocked()
    began = time.thread_time()
    watched("cost", trainer)
    return {"ours": clock.seconds, "all": time.thread_time() - began, "steps": 4}


PARTS = (alike, throwing, odd_rewards, nan_weights, nan_loss, accumulated, cost)

if __name__ == "__main__":
    results = {part.__name__: part() for part in PARTS if len(sys.argv) < 3 or part.__name__ in sys.argv[2:]}
    print("RESULT " + json.dumps(results))
