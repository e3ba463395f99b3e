"""NOT RUN IN A REAL MEGATRON: Megatron-LM, by its own training callbacks (megatron/training/callbacks.py, 2026).

In your pretraining script, where ``pretrain`` is called::

    from megatron.training import get_args, pretrain
    pretrain(..., callbacks=[GyrostatCallback(lambda: get_args().iteration)])

Started as ``gyrostat run -- torchrun ... pretrain_gpt.py ...``. An older Megatron has no callbacks: its log is read all
the same. Told are the reduced losses, the gradient norm before clipping, whether Megatron passed the iteration over,
the learning rate; ``lr_scale`` may be set. Experts are not counted here: which rank holds which of them is Megatron's.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gyrostat

NAMES = {"lm loss": "loss", "rl/entropy_term": "entropy", "rl/kl_term": "kl"}


class Moment(Protocol):
    """What of Megatron's CallbackContext is read here."""

    optimizer: Any
    loss_dict: dict[str, Any] | None
    grad_norm: float | None
    skipped_iter: bool | None


class GyrostatCallback:
    """One rank's callback. ``iteration``: the last finished one, asked once, when training starts.

    ``collective``: over all ranks, on the host: ``TorchCollective(torch.distributed.new_group(backend="gloo"))``, made
    on all ranks. Without one nothing can be set where there are several ranks.
    """

    def __init__(
        self, iteration: Callable[[], int], collective: gyrostat.Collective | None = None, checkpoints: str = ""
    ) -> None:
        self._iteration, self._collective, self._checkpoints = iteration, collective, checkpoints
        self._lr_scale, self._rates = 1.0, list[float]()
        self._step = 0

    def on_train_start(self, moment: Moment) -> None:
        """Say Hello. RANK and WORLD_SIZE are torchrun's."""
        self._step = self._iteration()
        self._telemetry = gyrostat.Telemetry(checkpoint_root=self._checkpoints)
        scale = gyrostat.Knob("lr_scale", lambda: self._lr_scale, self._turn, 0.01, 1.0, max_factor=2.0)
        self._control = gyrostat.Control(self._telemetry, [scale], collective=self._collective)

    def on_train_step_start(self, moment: Moment) -> None:
        """Obey, then scale the rates that Megatron's scheduler has set for this iteration."""
        self._control.apply(self._step + 1)
        self._rates = [group["lr"] for group in moment.optimizer.param_groups]
        self._set_rates(moment, [rate * self._lr_scale for rate in self._rates])

    def on_train_step_end(self, moment: Moment) -> None:
        """Tell the iteration. The scheduler sets new rates where one was applied; else the old ones are put back."""
        self._step += 1
        if moment.skipped_iter:
            self._set_rates(moment, self._rates)
        losses = {NAMES.get(name, name): value for name, value in (moment.loss_dict or {}).items()}
        self._telemetry.record(
            self._step, **losses, grad_norm=moment.grad_norm, learning_rate=self._rates[0], lr_scale=self._lr_scale,
            step_applied=float(not moment.skipped_iter),
        )  # fmt: skip

    def on_train_end(self, moment: Moment) -> None:
        """Say goodbye."""
        self._telemetry.close()

    def _turn(self, value: float) -> None:
        self._lr_scale = value

    @staticmethod
    def _set_rates(moment: Moment, rates: Sequence[float]) -> None:
        for group, rate in zip(moment.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
