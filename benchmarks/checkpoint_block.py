"""How long beginning a checkpoint holds the reference trainer up, as a share of its step.

    python benchmarks/checkpoint_block.py [--steps 30] [--json]

A checkpoint is begun after every step; the same run's steps are the measure. Writing goes on in a thread: what it
takes from the next step is in the step, and is told beside a run that keeps none. Exit status 1 where the median of
the holding is 2 % of the median step or more.
"""

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

from gyrostat import Control, Telemetry
from gyrostat_reference.settings import Settings
from gyrostat_reference.trainer import Trainer

LIMIT = 0.02


class Timed(Trainer):
    """A trainer that times its own beginning of checkpoints, and the rest of each step."""

    def begin_checkpoint(self) -> Path | None:
        """Begin one, and note how long that took."""
        began = time.perf_counter()
        folder = super().begin_checkpoint()
        self.held.append(time.perf_counter() - began)
        return folder


def measured(steps: int, folder: Path | None) -> tuple[list[float], list[float]]:
    """Seconds of each step and of each beginning, the first two steps left out."""
    ends: list[float] = []
    trainer = Timed(
        Settings(steps=steps, checkpoints=folder, checkpoint_every=1), Telemetry(""),
        say=lambda line: ends.append(time.perf_counter()),
    )  # fmt: skip
    trainer.held = []
    trainer.run(Control(trainer.telemetry))
    trainer.finish_writing()
    return [b - a for a, b in itertools.pairwise(ends[1:])], trainer.held[2:]


def main() -> int:
    """Print the shares; the exit status says whether the limit holds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    plain, _ = measured(arguments.steps, None)
    with tempfile.TemporaryDirectory() as folder:
        kept, held = measured(arguments.steps, Path(folder) / "checkpoints")
    share = statistics.median(held) / statistics.median(plain)
    found = {
        "share_of_step": share, "held_ms": 1e3 * statistics.median(held), "held_max_ms": 1e3 * max(held),
        "step_ms": 1e3 * statistics.median(plain), "step_with_checkpoints_ms": 1e3 * statistics.median(kept),
    }  # fmt: skip
    print(
        json.dumps(found) if arguments.json else "\n".join(f"{name:26s} {value:.4g}" for name, value in found.items())
    )
    return 0 if share < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
