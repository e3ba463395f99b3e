"""History: what a run came to, for ``--summary``. In JSON a reward that is not finite is null, and named beside."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from gyrostat.wire.messages import spell


class History:
    """Rewards in the order of the steps taken; a step done again after a rollback stands there twice."""

    def __init__(self) -> None:
        self.rewards: list[tuple[int, float]] = []
        self.skipped = self.rollbacks = 0

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Note a step's values."""
        self.rewards.append((step, values["reward"]))
        self.skipped += values["step_applied"] == 0.0

    def write(self, path: str | os.PathLike[str], died: str, passed_over: frozenset[int]) -> None:
        """Write the summary; ``died`` is the reason, or '' for a run that did not."""
        Path(path).write_text(json.dumps(self._summary(died, passed_over), allow_nan=False) + "\n")

    def _summary(self, died: str, passed_over: frozenset[int]) -> dict[str, object]:
        return {
            "steps": len(self.rewards),
            "last_step": self.rewards[-1][0] if self.rewards else 0,
            "rewards": [[step, reward if math.isfinite(reward) else None] for step, reward in self.rewards],
            "nonfinite": {f"reward at {step}": spell(r) for step, r in self.rewards if not math.isfinite(r)},
            "died": died or False,
            "skipped": self.skipped,
            "rollbacks": self.rollbacks,
            "passed_over": sorted(passed_over),
        }


def line_of(step: int, values: Mapping[str, float]) -> str:
    """A step for people to read."""
    line = (
        f"step {step:4d}  reward {values['reward']:.3f}  entropy {values['entropy']:.3f}  loss {values['loss']:+.4f}"
        f"  grad {values['grad_norm']:.3f}  {values['step_time']:.2f} s"
    )
    return line if values["step_applied"] else f"{line}  skipped"
