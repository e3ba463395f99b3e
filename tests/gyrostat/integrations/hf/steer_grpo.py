"""Steers real trainers in one process, by directives laid as the sidecar lays them: ``python steer_grpo.py FOLDER``.

Called by test_steering.py, in the interpreter that has TRL; prints what came of it as one JSON line.
"""

import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import trl_tiny as tiny
from transformers import AutoModelForCausalLM, TrainerCallback

from gyrostat.integrations.transformers import GyrostatCallback
from gyrostat.wire import Directive, KnobChange, Resume
from gyrostat.wire.layout import RunDirectory

HOME = Path(sys.argv[1])


class At(TrainerCallback):  # type: ignore[misc]
    """Does things at the beginning of steps, before Gyrostat's boundary, and notes the weights at each end."""

    def __init__(self, acts: dict[int, Callable[[], None]]) -> None:
        self.acts, self.weights, self.steps, self.rates = acts, dict[int, str](), list[int](), list[float]()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if act := self.acts.pop(state.global_step + 1, None):
            act()

    def on_step_end(
        self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **_: Any
    ) -> None:
        self.weights[state.global_step] = tiny.digest(model)
        self.steps.append(state.global_step)
        self.rates.append(optimizer.param_groups[0]["lr"])


class Steered:
    """One training under a callback, with a run directory of its own."""

    def __init__(self, name: str, trainer: Any, **more: Any) -> None:
        self.run = HOME / "runs" / name
        self.run.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.folder = RunDirectory(str(self.run))
        Path(self.folder.directives).mkdir(mode=0o700, exist_ok=True)
        self.name, self.trainer = name, trainer
        self.at, self.number, self.error = At({}), 0, ""
        self.callback = GyrostatCallback(trainer, **more)
        trainer.add_callback(self.at)
        trainer.add_callback(self.callback)

    @property
    def steering(self) -> Any:
        return self.callback._training.steering  # type: ignore[union-attr]

    def lay(self, procedure: str = "", arguments: dict[str, Any] | None = None, **knobs: tuple[float, float]) -> None:
        """Lay a directive, as the agent does; ``knobs``: the value expected and the value set."""
        self.number += 1
        telemetry, control = self.callback._training.telemetry, self.steering._control  # type: ignore[union-attr]
        directive = Directive(
            self.number, telemetry.run, "trainer", telemetry.incarnation, control.segment, f"a-{self.number}",
            time.time() + 60, knobs=tuple(KnobChange(k, *v) for k, v in knobs.items()), procedure=procedure,
            arguments=arguments or {},
        )  # fmt: skip
        _write(self.folder.directive(self.number), directive.encode())
        _write(self.folder.bell, self.number.to_bytes(8, "little"))

    def train(self) -> dict[str, Any]:
        os.environ["GYROSTAT_RUN_DIR"] = str(self.run)
        with open(HOME / f"{self.name}.err", "w") as err, contextlib.redirect_stderr(err):
            try:
                self.trainer.train()
            except RuntimeError as died:
                self.error = str(died)
        del os.environ["GYROSTAT_RUN_DIR"]
        return {
            "step": self.trainer.state.global_step, "steps": self.at.steps, "weights": self.at.weights,
            "rates": self.at.rates, "finite": all(p.isfinite().all().item() for p in self.trainer.model.parameters()),
            "said": (HOME / f"{self.name}.err").read_text(), "error": self.error,
        }  # fmt: skip


def _write(path: str, body: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(descriptor, body)
    os.close(descriptor)


def spoilt(trainer: Any, steps: set[int]) -> None:
    """The loss is not a number in these steps, as a bad row makes it."""
    original = trainer.compute_loss

    def compute(*args: Any, **named: Any) -> Any:
        loss = original(*args, **named)
        return loss * math.nan if trainer.state.global_step + 1 in steps else loss

    trainer.compute_loss = compute


def guarded(guard: bool) -> Any:
    trainer = tiny.plain(HOME / "out", steps=6)
    spoilt(trainer, {3})
    return Steered(f"guard-{guard}", trainer, guard=guard).train()


def scaled() -> Any:
    """A plain gradient step moves by half where the rate is halved; nobody sees the halved rate."""
    moved = []
    for scale in (1.0, 0.5):
        trainer = tiny.plain(HOME / "out", steps=1, optim="sgd", max_grad_norm=0.0, learning_rate=1e-2)
        before = [p.detach().clone() for p in trainer.model.parameters()]
        one = Steered(f"scale-{scale}", trainer)
        if scale != 1.0:
            one.at.acts[1] = lambda one=one: one.lay(lr_scale=(1.0, 0.5))
        rates = one.train()["rates"]
        moved.append(max((p - b).abs().max().item() for p, b in zip(trainer.model.parameters(), before, strict=True)))
    return {"moved": moved, "rate": rates[0]}


def rewound(trained: Any, folder: Path, at: int) -> Any:
    """Back to checkpoint-5 before step ``at``: what is read back of the weights and moments at that moment."""
    one, found = Steered(folder.name, trained), {}

    def order() -> None:
        one.lay("rollback", {"checkpoint": str(folder / "checkpoint-5"), "digest": "", "step": 5})
        one.steering._telemetry.flush()

    class After(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            if one.number and not found:
                moments = torch.load(folder / "checkpoint-5" / "optimizer.pt")["state"]
                now = trained.optimizer.state_dict()["state"]
                found["weights"] = tiny.digest(model)
                found["wanted"] = tiny.digest(AutoModelForCausalLM.from_pretrained(folder / "checkpoint-5"))
                found["moments"] = all(torch.equal(now[k]["exp_avg"], v["exp_avg"]) for k, v in moments.items())
                found["at"], found["log"] = state.global_step, len(state.log_history)
                found["lr"] = trained.lr_scheduler.last_epoch
                found["segment"] = one.steering._control.segment

    one.at.acts[at] = order
    trained.add_callback(After())
    result = one.train()
    kept = json.loads((folder / "checkpoint-15" / "trainer_state.json").read_text())["stateful_callbacks"]["gyrostat"]
    return {**result, "found": found, "kept": kept["attributes"], "dir": str(folder), "epoch": trained.state.epoch}


def stopped() -> Any:
    one = Steered("stopped", tiny.grpo(HOME / "stopped", steps=6, save_strategy="steps", save_steps=100))
    one.at.acts |= {2: lambda: one.lay("checkpoint"), 4: lambda: one.lay("stop")}
    return {**one.train(), "saved": sorted(p.name for p in (HOME / "stopped").glob("checkpoint-*"))}


def turned() -> Any:
    """Each knob of GRPO, turned while it runs, and what is read in the place that it is used in."""
    fresh = tiny.model
    fresh("qwen3_moe").save_pretrained(HOME / "base")  # TRL reads the reference model from where the policy is from
    tiny.model = lambda kind, **_: AutoModelForCausalLM.from_pretrained(HOME / "base")
    trainer = tiny.grpo(HOME / "out", steps=4, beta=0.02)
    tiny.model = fresh
    one, found = Steered("turned", trainer), {}

    def order() -> None:
        found["offered"] = {k.name: k.get() for k in one.steering._knobs}
        one.lay(
            max_grad_norm=(1.0, 0.5), kl_coef=(0.02, 0.04), eps_lo=(0.2, 0.18), eps_hi=(0.2, 0.22),
            temperature=(1.0, 0.95), alpha_max=(0.0, 0.1), min_entropy_floor=(0.3, 0.36), router_aux_coef=(0.001, 0.1),
        )  # fmt: skip

    one.at.acts[2] = order
    result = one.train()
    return {
        **result, **found, "max_grad_norm": trainer.args.max_grad_norm, "kl_coef": trainer.beta,
        "eps_lo": trainer.epsilon_low, "eps_hi": trainer.epsilon_high, "bonus": trainer._entropy_bonus_enabled,
        "temperature": [_temperature(trainer.model), trainer.generation_config.temperature, trainer.temperature],
        "reference": _temperature(trainer.ref_model),
        "router": [trainer.router_aux_loss_coef, trainer.model.config.router_aux_loss_coef],
    }  # fmt: skip


def _temperature(model: Any) -> float:
    """What the log-probabilities are divided by."""
    fused = model.forward.__func__
    return float(dict(zip(fused.__code__.co_freevars, fused.__closure__, strict=True))["temperature"].cell_contents)


def passed_over() -> Any:
    """The prompts of step 2 are passed over at step 3, in the midst of a generation: which are drawn."""
    drawn: dict[int, list[str]] = {}

    def reward(prompts: list[str], completions: list[str], trainer_state: Any = None, **_: Any) -> list[float]:
        drawn[trainer_state.global_step + 1] = sorted(set(prompts))
        return [float(len(c)) for c in completions]

    trainer = tiny.grpo(HOME / "out", rewards=[reward], steps=40, num_iterations=3, max_completion_length=2)
    trainer.train_dataset = tiny.sums(8)  # four generations an epoch
    one = Steered("passed_over", trainer)
    one.at.acts[3] = lambda: one.lay("skip_data", {"cursor": [1, 2]})
    return {**one.train(), "drawn": drawn}


def refused(attribute: str, value: Any) -> Any:
    """A trainer that cannot go back in process."""
    trainer = tiny.plain(HOME / "out", steps=1)
    owner = trainer.model if attribute == "peft_config" else trainer
    one = Steered(f"refused-{attribute}", trainer)
    setattr(owner, attribute, value)
    offered: list[str] = []

    def look() -> None:
        delattr(owner, attribute)
        offered.extend(one.steering._control._procedures)

    one.at.acts[1] = look
    return {**one.train(), "offered": offered}


def half_loaded(folder: Path) -> Any:
    """A user's own resume_from_checkpoint of a model with experts: what Transformers leaves out of it is said."""
    trainer = tiny.grpo(folder, steps=17)
    one, found = Steered("half", trainer), list[str]()
    train, trainer.train = trainer.train, lambda: train(resume_from_checkpoint=str(folder / "checkpoint-16"))
    one.at.acts[17] = lambda: found.append(tiny.digest(trainer.model))
    result = one.train()
    wanted = tiny.digest(AutoModelForCausalLM.from_pretrained(folder / "checkpoint-16"))
    return {**result, "whole": found == [wanted]}


def old() -> Any:
    """A Transformers without ``_run_epoch``: its loop stands in one method."""
    from transformers import Trainer

    loop, Trainer._run_epoch = Trainer._run_epoch, None
    trainer = tiny.plain(HOME / "out", steps=1)
    one, offered = Steered("old", trainer), list[str]()
    put_back = At({})
    put_back.on_train_begin = lambda *_, **__: setattr(Trainer, "_run_epoch", loop)  # type: ignore[attr-defined]
    trainer.add_callback(put_back)
    one.at.acts[1] = lambda: offered.extend(one.steering._control._procedures)
    return {**one.train(), "offered": offered}


def resumed(folder: Path) -> Any:
    """A process that begins anew, without being told where from, and finds resume.json."""
    trainer = tiny.grpo(folder, steps=20)
    one, found = Steered("resumed", trainer), {}
    resume = Resume(7, "resumed", str(folder / "checkpoint-5"), "", 5, time.time() + 60, {"lr_scale": 0.5}, (), "died")
    _write(one.folder.resume, resume.encode())

    def look() -> None:
        control = one.steering._control
        found.update(weights=tiny.digest(trainer.model), segment=control.segment, last=control.last_directive)
        found["knobs"] = {knob.name: knob.get() for knob in one.steering._knobs}

    one.at.acts[6] = look
    result = one.train()
    return {**result, "found": found, "drawn": one.trainer.state.stateful_callbacks["gyrostat"]["attributes"]["drawn"]}


if __name__ == "__main__":
    grpo, plain = HOME / "grpo", HOME / "plain"
    saving = {"save_strategy": "steps", "save_steps": 5}
    parts: dict[str, Callable[[], Any]] = {
        "guarded": lambda: guarded(True),
        "unguarded": lambda: guarded(False),
        "scaled": scaled,
        "grpo": lambda: rewound(tiny.grpo(grpo, steps=16, **saving), grpo, 9),
        "plain": lambda: rewound(tiny.plain(plain, steps=24, **saving), plain, 20),
        "stopped": stopped,
        "turned": turned,
        "passed_over": passed_over,
        "old": old,
        "peft": lambda: refused("peft_config", {"default": 1}),
        "half": lambda: half_loaded(grpo),
        "resumed": lambda: resumed(grpo),
    }
    chosen = sys.argv[2:] or list(parts)
    print("RESULT", json.dumps({name: parts[name]() for name in chosen}))
