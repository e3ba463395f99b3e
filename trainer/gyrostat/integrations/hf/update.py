"""The update as it was: the loss that was differentiated and the norm of its gradient.

Both are taken where Transformers has them and before it shows them: its filter turns a loss that is NaN into the
mean of those before (``logging_nan_inf_filter``), and its log averages over ``logging_steps``. Tensors are kept as
they are, detached; nobody waits for them.
"""

from typing import Any

from gyrostat.integrations.hf.notices import Notices
from gyrostat.integrations.hf.replacements import Replacements


class Update:
    """Loss and gradient norm of one optimizer step. ``loss``: this rank's, of all its micro-batches, summed as
    Transformers sums them. Either is None where the step had none."""

    def __init__(self, trainer: Any, notices: Notices) -> None:
        self._trainer, self._notices = trainer, notices
        self.loss: Any = None
        self.grad_norm: Any = None

    def watch(self, replacements: Replacements) -> None:
        """Watch the trainer until ``replacements`` are undone."""
        if not replacements.watch(self._trainer, "training_step", self._add_loss):
            self._notices.say("loss", "loss is told as it is logged only: this trainer has no training_step")
        if replacements.watch(self._trainer, "_get_grad_norm", self._keep_norm):
            return
        accelerator = getattr(self._trainer, "accelerator", None)
        if not replacements.watch(accelerator, "clip_grad_norm_", self._keep_norm):
            self._notices.say(
                "norm", "grad_norm is told as it is logged only: nothing here computes it where it is seen"
            )

    def begin(self) -> None:
        """Begin a step."""
        self.loss = self.grad_norm = None

    def _add_loss(self, loss: Any) -> None:
        def add() -> None:
            detached = loss.detach() if hasattr(loss, "detach") else loss
            self.loss = detached if self.loss is None else self.loss + detached

        self._notices.guard("looking at the loss", add)

    def _keep_norm(self, norm: Any) -> None:
        if norm is not None and not hasattr(norm, "full_tensor"):  # whose whole value only a collective knows
            self.grad_norm = norm
