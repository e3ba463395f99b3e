"""Telling: what each optimizer step of a Hugging Face trainer came to, as one record, by the names of docs/series.md.

The record is written at the end of the step, before anything is saved, logged or generated from the new weights.
What comes later of the same step, a checkpoint written or a log line, is a second record of it.
"""

import time
from collections.abc import Mapping
from typing import Any

from gyrostat.integrations.hf.expertload import ExpertLoad
from gyrostat.integrations.hf.metrics import Metrics, logged
from gyrostat.integrations.hf.notices import Notices
from gyrostat.integrations.hf.replacements import Replacements
from gyrostat.integrations.hf.rewards import Rewards
from gyrostat.integrations.hf.update import Update
from gyrostat.integrations.hf.weights import Weights
from gyrostat.telemetry import Telemetry


class Telling:
    """One training's telling, from ``begin`` to ``end``."""

    def __init__(self, trainer: Any, telemetry: Telemetry, notices: Notices, weights: Weights | None) -> None:
        self._trainer, self._telemetry, self._notices = trainer, telemetry, notices
        self._weights = weights
        self._replacements = Replacements()
        self.update = Update(trainer, notices)
        self._metrics = Metrics(trainer)
        self._rewards = Rewards(trainer, notices)
        self._load: ExpertLoad | None = None
        self._told: set[str] = set()
        self._rate: Any = None
        self._saw_update = False
        self._began = self._saving = 0.0

    def begin(self, state: Any) -> None:
        """Watch the trainer, and say whether the weights are sound before the first step."""
        guard = self._notices.guard
        guard("watching the loss", lambda: self.update.watch(self._replacements))
        guard("watching reward functions", lambda: self._rewards.watch(self._replacements))
        guard("watching routers", self._watch_routers)
        guard("timing checkpoints", self._time_checkpoints)
        finite = self._finite(frozen_too=True)
        if finite is not None:
            self._telemetry.record(state.global_step, params_finite=finite)

    def step_begins(self) -> None:
        """Begin a step: what was measured before belongs to those before it."""
        self.update.begin()
        self._rate = None
        self._notices.guard("reading the trainer's metrics", self._metrics.mark)
        self._began = time.perf_counter()

    def update_begins(self, optimizer: Any) -> None:
        """Read the learning rate that the schedule says, before anybody scales it."""
        self._saw_update = True
        self._rate = optimizer.param_groups[0]["lr"]

    def step_ends(self, state: Any, control: Any, steered: Mapping[str, float]) -> None:
        """Tell the step that has just ended. ``steered``: readings of the knobs, and what StepGuard did."""
        guard = self._notices.guard
        values: dict[str, Any] = {
            "loss": self.update.loss,
            "grad_norm": self.update.grad_norm,
            "learning_rate": self._rate,
            **(guard("reading the trainer's metrics", self._metrics.added) or {}),
            **(guard("reading rewards", self._rewards.take) or {}),
            "params_finite": self._finite(),
            "step_applied": guard("asking whether the step was applied", self._applied),
            "checkpoint_busy": float(bool(getattr(control, "should_save", False))),
            **steered,
        }
        load = self._load.take() if self._load is not None else None
        values["step_seconds"] = time.perf_counter() - self._began if self._began else None
        self._told |= {name for name, value in values.items() if value is not None}
        self._telemetry.record(state.global_step, expert_load=load, **values)
        self._say_what_is_missing()

    def logs(self, state: Any, logs: Mapping[str, Any]) -> None:
        """Tell what a log line has that no record has: all of it where the trainer keeps no metrics of its own."""
        values = {name: v for name, v in logged(logs).items() if name not in self._told}
        if values:
            self._telemetry.record(state.global_step, **values)

    def saved(self, state: Any) -> None:
        """Tell that the checkpoint is written, and how long that took."""
        seconds, self._saving = self._saving, 0.0
        self._telemetry.record(state.global_step, checkpoint_busy=0.0, checkpoint_seconds=seconds or None)

    def end(self) -> None:
        """Leave the trainer as it was."""
        self._notices.guard("letting go of the trainer", self._replacements.undo)

    def _finite(self, *, frozen_too: bool = False) -> Any:
        if self._weights is None:
            return None
        weights = self._weights
        return self._notices.guard("looking at the weights", lambda: weights.finite(frozen_too=frozen_too))

    def _applied(self) -> float:
        """0 where the loss scaler of half precision passed the step over; StepGuard's word comes behind this one."""
        return float(not getattr(self._trainer.accelerator, "optimizer_step_was_skipped", False))

    def _watch_routers(self) -> None:
        args, config = self._trainer.args, getattr(self._trainer.model, "config", None)
        why = (
            "compiled: hooks do not run in it"
            if getattr(args, "torch_compile", False)
            else "replicated over GPUs by DataParallel"
            if getattr(args, "n_gpu", 1) > 1
            else "split by experts: each rank sees its own alone"
            if (getattr(getattr(config, "distributed_config", None), "ep_size", None) or 1) > 1
            else ""
        )
        load = ExpertLoad(self._trainer.model, self._notices)
        if load.layers and why:
            self._notices.say("routers", f"experts are not counted: the model is {why}")
        elif load.layers:
            load.hook(self._replacements)
            self._load = load

    def _time_checkpoints(self) -> None:
        """Measure the saving itself: between the step's end and ``on_save`` stands an evaluation too."""
        save = getattr(self._trainer, "_save_checkpoint", None)
        if not callable(save):
            return

        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            result = save(*args, **kwargs)
            self._saving = time.perf_counter() - began
            return result

        self._replacements.put(self._trainer, "_save_checkpoint", timed)

    def _say_what_is_missing(self) -> None:
        """Once, after the first step: what this version of the trainer does not show, by name."""
        if "seen" in self._notices.said:
            return
        self._notices.said["seen"] = ""
        if not self._saw_update:
            self._notices.say(
                "update",
                "learning_rate is told as it is logged, and no update can be guarded or scaled: "
                "this Transformers has no on_pre_optimizer_step",
            )
        if self.update.loss is None:
            self._notices.say("loss", "loss is told as it is logged only: training_step was not called")
        if self.update.grad_norm is None:
            self._notices.say("norm", "grad_norm is told as it is logged only: it was not seen in this step")
