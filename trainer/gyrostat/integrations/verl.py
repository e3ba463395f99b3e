"""NOT RUN IN A REAL VERL: written from the source of verl 0.9.1, tested against rows that its own logger wrote.

A tracking backend for verl's driver, and a count of expert load for its workers. For the driver, where the trainer
is started::

    VERL_USE_EXTERNAL_MODULES=gyrostat.integrations.verl gyrostat run -- python -m verl.trainer.main_ppo \\
        trainer.logger='["console","gyrostat"]' ...

verl imports that module in each of its processes, and it makes ``gyrostat`` a backend of ``Tracking``. What verl's
file logger writes as null, a NaN, is told as the NaN it is. For the workers, in a worker of your own::

    class Worker(ActorRolloutRefWorker):
        def init_model(self):
            super().init_model()
            tell_experts(self.actor.engine)

Knobs are not offered: what would be set lives in other processes than the one that tells. ``gyrostat run`` restarts.
"""

import math
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from gyrostat.integrations.hf.expertload import ExpertLoad
from gyrostat.integrations.hf.notices import Notices
from gyrostat.integrations.hf.replacements import Replacements
from gyrostat.telemetry import Telemetry
from gyrostat.wire.layout import RUN_DIR

BACKEND = "gyrostat"
NAMES = {  # where verl's name would not be read as what it measures; all others are told as verl calls them
    "actor/pg_loss": "loss",
    "actor/grad_norm": "grad_norm",
    "actor/entropy": "entropy",
    "actor/kl_loss": "kl",
    "actor/ppo_kl": "ppo_kl",
    "actor/lr": "learning_rate",
    "actor/pg_clipfrac": "clip_fraction",
    "critic/rewards/mean": "reward",
    "response_length/mean": "response_length",
    "response_length/clip_ratio": "truncated_fraction",
    "rollout_corr/kl": "mismatch_kl",
    "timing_s/step": "step_seconds",
    "timing_s/save_checkpoint": "checkpoint_seconds",
}
_GRADIENT = "actor/grad_norm"
_VIOLATIONS = ("actor/moe/max_vio/max", "rollout/moe/max_vio/max")  # the actor's own first: it is what is trained
_UNITS = {
    "step_seconds": "s", "checkpoint_seconds": "s", "timing_s/gen": "s", "entropy": "nats", "kl": "nats",
    "response_length": "tokens",
}  # fmt: skip


class GyrostatTracking:
    """One of the loggers that verl's ``Tracking`` calls: ``log(data, step)`` once a step, ``finish()`` at the end.

    ``checkpoint_root``: the run's ``trainer.default_local_dir``.
    """

    def __init__(self, checkpoint_root: str = "") -> None:
        # verl's driver is one process, whatever RANK and WORLD_SIZE say of the node it is on
        self._telemetry = Telemetry(rank=0, world=1, checkpoint_root=checkpoint_root, units=_UNITS)

    def log(self, data: Mapping[str, Any], step: int) -> None:
        """Tell a step's metrics. Never raises."""
        self._telemetry.record(step, **told(data))

    def finish(self) -> None:
        """A clean end. Where a verl trainer only calls it from a destructor, one that dies seems to end cleanly."""
        self._telemetry.close()


def told(data: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of a row of verl's metrics: its numbers, by the names that the rules know.

    verl leaves out an optimizer step whose gradient norm is not finite: ``step_applied``. ``max_vio`` is the largest
    share of any expert, times the number of experts, less one.
    """
    numbers = {name: value for name, value in data.items() if _is_number(value) and name not in ("step", "expert_load")}
    values = {NAMES.get(name, name): value for name, value in numbers.items()}
    if _GRADIENT in numbers:
        values["step_applied"] = float(math.isfinite(numbers[_GRADIENT]))
    violation = next((numbers[name] for name in _VIOLATIONS if name in numbers), None)
    return values if violation is None else {**values, "max_vio": violation}


def register(tracking: Any) -> None:
    """Make ``gyrostat`` a backend of verl's class ``Tracking``. A second call changes nothing."""
    if BACKEND in tracking.supported_backend:
        return
    tracking.supported_backend.append(BACKEND)
    begin, finish = tracking.__init__, tracking.finish

    def begun(
        self: Any, project_name: str, experiment_name: str, default_backend: Any = "console", config: Any = None
    ) -> None:
        begin(self, project_name, experiment_name, default_backend, config)
        asked = [default_backend] if isinstance(default_backend, str) else default_backend
        if BACKEND in asked and os.environ.get(RUN_DIR):
            self.logger[BACKEND] = GyrostatTracking(_checkpoint_root(config))

    def finished(self: Any, exit_code: int = 0) -> None:
        ours = getattr(self, "logger", {}).get(BACKEND)
        if ours is not None and exit_code == 0 and not getattr(self, "_finished", False):
            ours.finish()  # not where verl has said before that it failed: its destructor comes behind that
        finish(self, exit_code)

    tracking.__init__, tracking.finish = begun, finished


def tell_experts(engine: Any) -> Callable[[], None]:
    """Count the experts that a worker's model chose, and put it into what ``engine.train_batch`` returns.

    ``engine``: of verl's FSDP engine, whose ``module`` is a Transformers model. Told as ``actor/moe/max_vio/...``:
    of each rank's own tokens, of which verl takes the largest. Returns what undoes it; does nothing, and says so,
    where the model has no experts that can be counted.
    """
    notices, replacements = Notices(int(os.environ.get("RANK", "0"))), Replacements()
    load = notices.guard("watching routers", lambda: ExpertLoad(engine.module, notices))
    if load is None or not load.layers:
        notices.say("experts", "experts are not counted: this model has no router that is known here")
        return replacements.undo
    load.hook(replacements)
    train_batch = engine.train_batch

    def counted(*arguments: Any, **named: Any) -> Any:
        load.take()  # what was counted before is of no training step
        output = train_batch(*arguments, **named)
        metrics = notices.guard("counting experts", lambda: violations(load.take()))
        if metrics and isinstance(output, dict) and isinstance(output.get("metrics"), dict):
            output["metrics"].update(metrics)
        return output

    replacements.put(engine, "train_batch", counted)
    return replacements.undo


def violations(counts: Any) -> dict[str, list[float]]:
    """Largest load times experts, less one, of each layer and of all, as verl measures its rollouts.

    ``counts``: tokens by layer and expert, a tensor of shape (layers, experts), or None. Lists of one, as verl
    gathers what its ranks and micro-batches say.
    """
    if counts is None:
        return {}
    share = counts / counts.sum(dim=1, keepdim=True).clamp(min=1)
    layers = (share.max(dim=1).values * counts.shape[1] - 1).tolist()
    named = {f"moe/max_vio/layer_{i}": [value] for i, value in enumerate(layers)}
    return {**named, "moe/max_vio/max": [max(layers)]}


def _is_number(value: Any) -> bool:
    return not isinstance(value, (bool, str, bytes)) and hasattr(value, "__float__") and not getattr(value, "shape", ())


def _checkpoint_root(config: Any) -> str:
    trainer = config.get("trainer") if isinstance(config, Mapping) else None
    root = trainer.get("default_local_dir") if isinstance(trainer, Mapping) else None
    return root if isinstance(root, str) else ""


def _register_where_verl_is() -> None:
    """verl imports this module while it is being imported itself: its ``Tracking`` can be had by then."""
    if "verl" not in sys.modules:
        return
    from importlib import import_module

    # a verl that has changed must not fail to be imported for our sake: it then says that the backend is unknown
    Notices().guard("joining verl's trackers", lambda: register(import_module("verl.utils.tracking").Tracking))


_register_where_verl_is()
