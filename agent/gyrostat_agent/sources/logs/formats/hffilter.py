"""HF's loss filter: where a loss of 0 stands for a NaN, and the row says so by what stands beside it.

``logging_nan_inf_filter`` (on by default) puts the running mean in place of a loss that is not finite, and right after
a row that mean is 0. A loss that is truly 0 is common, above all in GRPO (printed with four decimals, or groups whose
completions all got one reward), so that 0 alone says nothing:

1. A gradient that is finite and not 0 came from a finite loss.
2. In RL, no gradient where every group's rewards differ and completions count is impossible.
3. Elsewhere a loss does not get from a tenth to nothing at all within one row.
"""

import math

_FAR_FROM_NOTHING = 0.1


class LossFilter:
    """One log's rows, in order."""

    def __init__(self) -> None:
        self._before = 0.0  # newest loss that is not 0
        self._rewarded = False  # alternate rows of GRPO tell no reward

    def undo(self, values: dict[str, float]) -> None:
        """Put NaN back in place of a loss of 0 that hides one."""
        loss = values.get("loss")
        if loss is None:
            return
        self._rewarded = self._rewarded or "reward" in values
        if loss != 0.0:
            self._before = abs(loss) if math.isfinite(loss) else self._before
        elif self._hides(values):
            values["loss"] = math.nan

    def _hides(self, values: dict[str, float]) -> bool:
        gradient = values.get("grad_norm", 0.0)
        if gradient != 0.0:
            return not math.isfinite(gradient)
        if self._rewarded:
            return (
                "grad_norm" in values
                and values.get("frac_reward_zero_std") == 0.0
                and values.get("reward_std", 0.0) > 0.0
                and values.get("completions/clipped_ratio", 0.0) < 1.0  # all cut off: they may count for nothing
            )
        return self._before >= _FAR_FROM_NOTHING
