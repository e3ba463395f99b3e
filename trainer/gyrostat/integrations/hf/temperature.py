"""Temperature: of drawing completions and of their log-probabilities, which must be the same.

TRL divides the logits by it in the fused head that it puts into ``model.forward``, where it stands in the function's
closure. A head that is not found there, or is wrapped by mixed precision, is left alone: the knob is not offered.
"""

import sys
from typing import Any

_NAME = "temperature"
_DEPTH = 8


class Temperature:
    """All the places that one trainer keeps its temperature in."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        models = [m for m in (trainer.model, getattr(trainer, "ref_model", None)) if m is not None]
        cells = [_cell(model) for model in models]
        utilities = sys.modules.get("trl.trainer.utils")
        fused = hasattr(utilities, "add_fused_lm_head")
        self._cells = [cell for cell in cells if cell is not None]
        self.offered = hasattr(trainer, _NAME) and (not fused or len(self._cells) == len(models))

    def get(self) -> float:
        """As the log-probabilities are taken, or as completions are drawn."""
        return float(self._cells[0].cell_contents if self._cells else self._trainer.temperature)

    def set(self, value: float) -> None:
        """Set it in all of them."""
        trainer = self._trainer
        trainer.temperature = value
        owners: list[Any] = [getattr(trainer, name, None) for name in ("generation_config", "vllm_generation")]
        for owner in owners:
            if hasattr(owner, _NAME):
                owner.temperature = value
        words = getattr(trainer, "generation_kwargs", None)
        if isinstance(words, dict) and _NAME in words:
            words[_NAME] = value
        for cell in self._cells:
            cell.cell_contents = value


def _cell(model: Any) -> Any:
    """Where the fused head of ``model.forward`` has its temperature; None where it has none."""
    inner = getattr(model, "module", model)  # as DDP wraps a reference model
    function: Any = getattr(inner, "forward", None)
    for _ in range(_DEPTH):
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if code is not None and code.co_name == "_fused_forward" and _NAME in code.co_freevars:
            return function.__closure__[code.co_freevars.index(_NAME)]
        function = getattr(function, "__wrapped__", None)
    return None
