"""GyrostatCallback: what Lightning's Trainer calls at each point of its loop, handed to telemetry and steering.

Not a subclass of Lightning's Callback, so that nothing has to be imported, and ``lightning`` and
``pytorch_lightning`` are served alike: a trainer asks a callback for methods by name. One it asks for that is not
here does nothing. No method raises, and without GYROSTAT_RUN_DIR none does anything at all.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from gyrostat.control import Control
from gyrostat.integrations.hf.expertload import ExpertLoad
from gyrostat.integrations.hf.notices import Notices
from gyrostat.integrations.hf.replacements import Replacements
from gyrostat.integrations.hf.weights import Weights
from gyrostat.integrations.lightning import checkpoints as kept_checkpoints
from gyrostat.integrations.lightning import update
from gyrostat.integrations.lightning.metrics import Metrics
from gyrostat.integrations.lightning.resuming import wanted
from gyrostat.integrations.lightning.settings import settings
from gyrostat.integrations.lightning.steering import Steering
from gyrostat.telemetry import Telemetry
from gyrostat.wire.layout import RUN_DIR

_ELSE = ("setup", "teardown")


class GyrostatCallback:
    """Tells Gyrostat what a fit's steps come to, and obeys it: ``Trainer(callbacks=[GyrostatCallback(...)])``.

    ``checkpoints``: a folder for checkpoints that can be gone back to; ``every``: how many steps apart, 0 for none by
    itself; ``keep``: how many. ``guard``: False leaves steps whose loss or gradient is not finite to the optimizer.
    ``patience``: seconds to wait for an answer when two steps in a row were passed over. ``pass_over``: told the ids
    of items that the data must not serve again. Raises ValueError on settings that make no sense.
    """

    def __init__(
        self,
        checkpoints: str | os.PathLike[str] = "",
        *,
        every: int = 0,
        keep: int = 3,
        guard: bool = True,
        patience: float = 30.0,
        pass_over: Callable[[Sequence[int]], None] | None = None,
    ) -> None:
        root = os.path.abspath(os.fspath(checkpoints)) if checkpoints else ""
        self._settings = settings(root, every, keep, guard, patience, pass_over)
        self._restored: dict[str, Any] = {}
        self._fit: _Fit | None = None
        self._last_control: Control | None = None  # holds the last vote: gloo's threads must not be the last to let go

    def __getattr__(self, name: str) -> Any:
        """A point of the loop that nothing is done at; later versions of Lightning may have more of them."""
        if name.startswith("on_") or name in _ELSE:
            return _nothing
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def ckpt_path(self) -> str | None:
        """For ``trainer.fit(..., ckpt_path=)``: what the sidecar wants to be loaded, else the newest, else None."""
        known = kept_checkpoints.kept(self._settings.checkpoints)
        asked = wanted(max((each.last_directive for each in known), default=0))
        folder = asked.checkpoint if asked is not None else known[-1].folder if known else ""
        return kept_checkpoints.file_in(folder) if folder else None

    # -- what a Trainer asks of every callback ---------------------------------------------------------

    @property
    def state_key(self) -> str:
        """The name of this callback's state in a checkpoint."""
        return "gyrostat.integrations.lightning.GyrostatCallback"

    @property
    def _legacy_state_key(self) -> type:
        return type(self)

    def state_dict(self) -> dict[str, Any]:
        """What must outlive the process; nothing where nothing is watched."""
        fit = self._fit
        return {} if fit is None else fit.notices.guard("keeping the knobs", fit.steering.state) or {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up what ``state_dict`` gave; called before the first step."""
        self._restored = dict(state_dict)

    # -- the loop -------------------------------------------------------------------------------------

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """Begin: say Hello, answer a restart, look at the weights."""
        self._end()
        if not os.environ.get(RUN_DIR):
            return
        notices = Notices(trainer.global_rank)
        self._fit = notices.guard("beginning", lambda: self._begun(trainer, module, notices))
        self._do("beginning", lambda fit: fit.begin(trainer))

    def on_train_batch_start(self, trainer: Any, module: Any, *_: Any) -> None:
        """A micro-batch begins; the first of a step begins the step."""
        self._do("timing the step", lambda fit: fit.batch_begins())

    def on_before_backward(self, trainer: Any, module: Any, loss: Any) -> None:
        """The loss that is differentiated, divided by the number of micro-batches as Lightning does."""
        self._do("reading the loss", lambda fit: fit.add_loss(trainer, loss))

    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        """Gradients are there, weights are as before: the last moment to pass a step over."""
        self._do("guarding the update", lambda fit: fit.before_update(optimizer, self._settings.guard))

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        """Where an optimizer step has been made: tell it, keep it, obey."""
        if self._fit is None or trainer.global_step == self._fit.step:
            return
        self._do("telling the step", lambda fit: fit.tell(trainer))
        self._do("writing a checkpoint", lambda fit: fit.steering.save_if_due())
        self._do("steering", lambda fit: fit.steering.step_ends())  # whatever failed before: all ranks are due there

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        """What a validation has logged, as a record of the step it looked at."""
        if not trainer.sanity_checking:
            self._do("telling a validation", lambda fit: fit.tell_validation(trainer))

    def on_train_end(self, trainer: Any, module: Any) -> None:
        """Say goodbye. A training that dies does not come here: that is an alarm."""
        self._do("letting the last vote arrive", lambda fit: fit.steering.end())
        self._do("saying goodbye", lambda fit: fit.telemetry.close())
        self._end()

    def _begun(self, trainer: Any, module: Any, notices: Notices) -> "_Fit":
        telemetry = Telemetry(
            rank=trainer.global_rank, world=trainer.world_size, checkpoint_root=self._settings.checkpoints,
            units={"step_seconds": "s"},
        )  # fmt: skip
        return _Fit(telemetry, Steering(trainer, telemetry, self._settings, self._restored), module, notices)

    def _end(self) -> None:
        if self._fit is not None:
            self._fit.replacements.undo()
            self._last_control = self._fit.steering.control
        self._fit = None

    def _do(self, what: str, act: "Callable[[_Fit], Any]") -> None:
        fit = self._fit
        if fit is not None:
            fit.notices.guard(what, lambda: act(fit))


class _Fit:
    """What one call of ``trainer.fit`` is told and steered by. ``step``: the last optimizer step told."""

    def __init__(self, telemetry: Telemetry, steering: Steering, module: Any, notices: Notices) -> None:
        self.telemetry, self.steering, self.notices = telemetry, steering, notices
        self.replacements = Replacements()
        self.step = -1
        self._weights, self._metrics = Weights(module, notices), Metrics()
        self._finite: Any = None
        self._loss: Any = None
        self._rate: Any = None
        self._told: set[str] = set()  # names that training tells: a validation shows their old values again
        self._seen = update.Seen(None, None, True)
        self._began = 0.0
        self._load: ExpertLoad | None = ExpertLoad(module, notices)
        if self._load.layers:
            self._load.hook(self.replacements)
        else:
            self._load = None

    def begin(self, trainer: Any) -> None:
        self.step = int(trainer.global_step)
        self._finite = self._weights.finite(frozen_too=True)
        self.telemetry.record(self.step, params_finite=self._finite)
        self.steering.begin()

    def batch_begins(self) -> None:
        self._began = self._began or time.perf_counter()

    def add_loss(self, trainer: Any, loss: Any) -> None:
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        here = loss.detach() if scaler is None else loss.detach() / scaler.get_scale()
        self._loss = here if self._loss is None else self._loss + here

    def before_update(self, optimizer: Any, guard: bool) -> None:
        self._rate = optimizer.param_groups[0]["lr"]
        self._seen = update.look(optimizer, self._loss, self._finite)
        self.telemetry.flush()  # the device has just been waited for
        if guard:
            self.steering.before_update(optimizer, self._seen)

    def tell(self, trainer: Any) -> None:
        self.step = int(trainer.global_step)
        self._finite = self._weights.finite()
        overflowed = self._seen.grad_norm is not None and not math.isfinite(self._seen.grad_norm)
        scaled = getattr(trainer.precision_plugin, "scaler", None) is not None
        values = {
            **(self.notices.guard("reading what is logged", lambda: self._metrics.new(trainer)) or {}),
            "loss": self._seen.loss,
            "grad_norm": self._seen.grad_norm,
            "learning_rate": self._rate,
            "params_finite": self._finite,
            "step_seconds": time.perf_counter() - self._began if self._began else None,
            **self.steering.values(),
            **({"step_applied": 0.0} if scaled and overflowed else {}),  # half precision's scaler passed it over
        }
        self._told |= values.keys()
        load = self._load.take() if self._load is not None else None
        self._loss, self._seen, self._began = None, update.Seen(None, None, True), 0.0
        self.telemetry.record(self.step, expert_load=load, **values)

    def tell_validation(self, trainer: Any) -> None:
        values = {name: v for name, v in self._metrics.new(trainer).items() if name not in self._told}
        if values:
            self.telemetry.record(int(trainer.global_step), **values)


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing, as every callback does at most points."""
