"""Two processes by Lightning's own launcher, DDP on gloo; one of them has a NaN: ``fit_ddp.py FOLDER RUN``."""

import math
import sys
from pathlib import Path
from typing import Any

import torch
from lightning_tiny import Tiny, fit

from gyrostat.integrations.lightning import GyrostatCallback


class OneRank(Tiny):
    """A loss that is NaN at step 5 of the last rank."""

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        loss = super().training_step(batch, number)
        return loss * math.nan if (self.global_step, self.global_rank) == (4, 1) else loss


if __name__ == "__main__":
    folder, run = (Path(word) for word in sys.argv[1:3])
    callback = GyrostatCallback(folder / "kept", every=4)
    trainer = fit(folder, [callback], 8, run=run, kind=OneRank, strategy="ddp", devices=2)
    after = trainer.lightning_module.after
    untouched = all(torch.equal(after[4][name], after[5][name]) for name in after[4])
    print(f"RANK {trainer.global_rank} untouched={untouched} steps={trainer.global_step}", flush=True)
