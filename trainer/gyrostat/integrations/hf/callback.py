"""GyrostatCallback: what a Hugging Face trainer calls at each point of its loop, handed to telling and steering.

Not a subclass of Transformers' TrainerCallback, so that nothing has to be imported: a trainer asks a callback for
methods by name. One it asks for that is not here does nothing. No method raises, and without GYROSTAT_RUN_DIR
none does anything at all.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from gyrostat.integrations.hf.names import UNITS
from gyrostat.integrations.hf.notices import Notices
from gyrostat.integrations.hf.steering import Steering
from gyrostat.integrations.hf.telling import Telling
from gyrostat.integrations.hf.versions import unfit
from gyrostat.integrations.hf.weights import Weights
from gyrostat.telemetry import Telemetry
from gyrostat.wire.layout import RUN_DIR


class GyrostatCallback:
    """Tells Gyrostat what a trainer's steps come to, and obeys it: ``trainer.add_callback(GyrostatCallback(trainer))``.

    ``trainer``: one of TRL's, or Transformers' own Trainer. ``guard``: False leaves steps whose loss or gradient
    is not finite to the optimizer.
    """

    def __init__(self, trainer: Any, *, guard: bool = True) -> None:
        self._trainer, self._guard = trainer, guard
        self._training: _Training | None = None
        self._notices: Notices | None = None

    def __getattr__(self, name: str) -> Any:
        """A point of the loop that nothing is done at; later versions of Transformers may have more of them."""
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin: say Hello, obey what a restart asks for, watch the trainer, look at the weights."""
        if self._training is not None:  # the last training ended in an error that somebody caught
            self._end()
        if not os.environ.get(RUN_DIR):
            return
        notices = self._notices = self._notices or Notices(getattr(args, "process_index", 0))
        self._training = notices.guard("beginning", lambda: self._begun(args, notices))
        if self._training is not None:
            self._steer("steering", lambda s: s.begin(args, state))
            self._do("telling", lambda t: t.telling.begin(state))

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Between two steps: write what has come from the device meanwhile, obey, begin to count."""
        self._do("writing", lambda t: t.telemetry.flush())
        self._steer("steering before the step", lambda s: s.before_step(state))
        self._do("telling", lambda t: t.telling.step_begins())

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, optimizer: Any = None, **_: Any) -> None:
        """Gradients are there, weights are as before: the last moment to pass a step over."""
        self._do("reading the learning rate", lambda t: t.telling.update_begins(optimizer))
        self._steer("steering before the update", lambda s: s.before_update(optimizer))

    def on_optimizer_step(self, args: Any, state: Any, control: Any, optimizer: Any = None, **_: Any) -> None:
        """The weights have moved."""
        self._steer("steering after the update", lambda s: s.after_update(optimizer))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Tell the step."""
        steered = self._steer("reading the knobs", lambda s: s.values()) or {}
        self._do("telling the step", lambda t: t.telling.step_ends(state, control, steered))

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Tell what only the log has."""
        self._do("telling the log", lambda t: t.telling.logs(state, logs or {}))

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A checkpoint is complete."""
        self._do("telling the checkpoint", lambda t: t.telling.saved(state))
        self._steer("steering at the checkpoint", lambda s: s.saved(state))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Say goodbye and leave the trainer as it was. A training that dies does not come here: that is an alarm."""
        self._end()

    def _begun(self, args: Any, notices: Notices) -> "_Training":
        if said := unfit():
            notices.say("versions", said)
        telemetry = Telemetry(
            rank=getattr(args, "process_index", None),
            world=getattr(args, "world_size", None),
            checkpoint_root=getattr(args, "output_dir", None) or "",
            units=UNITS,
        )
        trainer, guard = self._trainer, self._guard
        weights = notices.guard("looking at the weights", lambda: Weights(trainer.model, notices))
        steering = notices.guard(
            "steering", lambda: Steering(trainer, telemetry, notices=notices, weights=weights, guard=guard)
        )
        return _Training(telemetry, Telling(trainer, telemetry, notices, weights), steering, notices)

    def _end(self) -> None:
        """Say goodbye; the last that has put itself before the trainer's methods steps aside first."""
        self._do("letting go of the trainer", lambda t: t.telling.end())
        self._steer("letting go of the knobs", lambda s: s.end())
        self._do("saying goodbye", lambda t: t.telemetry.close())
        self._do("counting what was written", lambda t: _own_up(t.telemetry, t.notices))
        self._training = None

    def _steer(self, what: str, act: Callable[[Steering], Any]) -> Any:
        return self._do(what, lambda t: None if t.steering is None else act(t.steering))

    def _do(self, what: str, act: "Callable[[_Training], Any]") -> Any:
        training = self._training
        return None if training is None else training.notices.guard(what, lambda: act(training))


class _Training(NamedTuple):
    """What one call of ``trainer.train`` is told and steered by."""

    telemetry: Telemetry
    telling: Telling
    steering: Steering | None  # None where this trainer cannot be steered at all
    notices: Notices


def _own_up(telemetry: Telemetry, notices: Notices) -> None:
    """A run of which nothing was seen must not read as one that was well."""
    counts = telemetry.counts
    if counts.dropped:
        notices.say("records", f"{counts.dropped} records were not written, {counts.written} were: {counts.fault}")


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing, as every callback does at most points."""
