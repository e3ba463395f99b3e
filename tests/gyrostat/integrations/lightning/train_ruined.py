"""A training whose weights are ruined once, at step 14 of its first life: ``train_ruined.py FOLDER RUN_DIR``."""

import sys
import time
from pathlib import Path
from typing import Any

import torch
from lightning_tiny import Tiny, fit

from gyrostat.integrations.lightning import GyrostatCallback

if __name__ == "__main__":
    folder, run = (Path(word) for word in sys.argv[1:3])
    ruined = folder / "ruined"
    once = -1 if ruined.exists() else 14
    before = Tiny.on_train_batch_end

    def slowly(self: Any, *batch: Any) -> None:
        """The work of a real step; and the note that this life has ruined its weights."""
        time.sleep(0.02)
        before(self, *batch)
        if self.global_step == once:
            ruined.touch()

    Tiny.on_train_batch_end = slowly
    callback = GyrostatCallback(folder / "kept", every=4)
    trainer = fit(folder, [callback], 40, run=run, ckpt_path=callback.ckpt_path(), nan_weights=once, max_epochs=-1)
    finite = all(torch.isfinite(p).all().item() for p in trainer.model.parameters())
    print(f"TRAINED {trainer.global_step} finite={finite}")
