"""Procedures: what the sidecar may ask of a Hugging Face trainer beside turning knobs.

Each checks what it was told before it touches the trainer and raises ValueError otherwise, which Control answers
with. Each returns what it came to, for the Ack.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from gyrostat.control import Procedure
from gyrostat.integrations.hf.epochs import Epochs
from gyrostat.integrations.hf.feed import Feed
from gyrostat.integrations.hf.keeping import Kept, kept_in
from gyrostat.integrations.hf.rewinding import check, rewind
from gyrostat.knob import Knob


class Procedures:
    """The procedures of one trainer. ``forget`` is called when it has gone back."""

    def __init__(
        self, trainer: Any, knobs: Sequence[Knob], feed: Feed, epochs: Epochs, forget: Callable[[Kept], None]
    ) -> None:
        self._trainer, self._knobs, self._feed, self._epochs = trainer, knobs, feed, epochs
        self._forget = forget
        self.stopping = self.saving = False

    def offered(self, *, rewinds: bool) -> dict[str, Procedure]:
        """By name, as Hello shows them."""
        always: dict[str, Procedure] = {"skip_data": self.skip_data, "checkpoint": self.checkpoint, "stop": self.stop}
        return {**always, "rollback": self.rollback} if rewinds else always

    def rollback(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Go back in the weights and forward in the data.

        Arguments: ``checkpoint`` (folder), ``step``; ``digest`` is the sidecar's own, who looks at it once more right
        before: a checkpoint of Transformers has none that could be compared.
        """
        return {"step": self.go_back(arguments.get("checkpoint"), arguments.get("step"))}

    def go_back(self, checkpoint: object, step: object) -> int:
        """Load a checkpoint, of ``step`` unless that is None; the step it now stands at."""
        if not isinstance(checkpoint, str) or not checkpoint:
            raise ValueError(f"'checkpoint' is {checkpoint!r}, not a folder")
        folder = check(self._trainer, checkpoint, step)
        kept = kept_in(rewind(self._trainer, folder).get("stateful_callbacks")) or Kept()
        for knob in self._knobs:
            if knob.name in kept.knobs:
                with suppress(ValueError):
                    knob.set(kept.knobs[knob.name])
        self._feed.leave_rollouts()
        self._epochs.rewound = True
        self._forget(kept)
        return int(self._trainer.state.global_step)

    def skip_data(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Learn nothing more from what was drawn at the places ``cursor`` [low, high), nor serve its prompts again."""
        cursor = arguments.get("cursor")
        if "items" in arguments or cursor is None:
            raise ValueError("rows of this data have no ids: skip_data takes 'cursor', not 'items'")
        if not (isinstance(cursor, list) and len(cursor) == 2 and all(type(c) is int for c in cursor)):
            raise ValueError(f"'cursor' is {cursor!r}, not [low, high]")
        return {"passed_over": self._feed.pass_over(*cursor), "step": self._trainer.state.global_step}

    def checkpoint(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write a checkpoint at the end of the step that now begins."""
        self.saving = True
        return {"step": self._trainer.state.global_step + 1}

    def stop(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """End the run at this boundary, with a checkpoint where the weights are sound."""
        self.stopping = True
        return {"step": self._trainer.state.global_step}
