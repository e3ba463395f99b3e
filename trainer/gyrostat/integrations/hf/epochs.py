"""Epochs: the loop of a Hugging Face trainer, left at a boundary, and gone on with where its epochs run out.

How many epochs there are is counted before the first step. A run that has gone back, or has thrown data away, needs
more of them to come to its last step.
"""

from collections.abc import Callable
from typing import Any

from gyrostat.integrations.hf.feed import Feed
from gyrostat.integrations.hf.replacements import Replacements


class LoopLeft(BaseException):
    """Raised at a boundary to begin no further step. No Exception: nobody who catches those may keep it."""


class Epochs:
    """Stands before ``_run_epoch``. ``finish`` is called when the loop was left by ``LoopLeft``."""

    def __init__(self, trainer: Any, feed: Feed, finish: Callable[[Any, Any], None]) -> None:
        self._trainer, self._feed, self._finish = trainer, feed, finish
        self.rewound = False
        self.watched = False

    def watch(self, replacements: Replacements) -> bool:
        """Watch the trainer until ``replacements`` are undone; False where this version has no such method."""
        original = getattr(self._trainer, "_run_epoch", None)
        if not callable(original):
            return False

        def run(*args: Any, **named: Any) -> Any:
            try:
                result = original(*args, **named)
                if not args and isinstance(named.get("epoch"), int):
                    self._go_on(original, named)
                return result
            except LoopLeft:
                self._trainer.control.should_training_stop = True
                self._finish(named.get("model"), named.get("trial"))
                return None

        replacements.put(self._trainer, "_run_epoch", run)
        self.watched = True
        return True

    def _go_on(self, original: Callable[..., Any], named: dict[str, Any]) -> None:
        """After the last epoch that was counted: more of them, until the last step or until nothing is served."""
        trainer, epoch = self._trainer, named["epoch"]
        while (self.rewound or self._feed.dropped) and epoch + 1 >= trainer.state.num_train_epochs:
            done = trainer.state.global_step >= trainer.state.max_steps or trainer.control.should_training_stop
            before = self._feed.drawn
            if done:
                return
            epoch += 1
            trainer.control = trainer.callback_handler.on_epoch_begin(trainer.args, trainer.state, trainer.control)
            original(**{**named, "epoch": epoch})
            if self._feed.drawn == before:
                return
