"""A tiny mixture of experts in Lightning, trained for a few steps on this CPU, and broken where that is asked for."""

import math
import os
from pathlib import Path
from typing import Any

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

WIDTH, EXPERTS, TOP_K = 8, 4, 2


class Router(torch.nn.Module):
    """Chooses experts, and says which, as the routers of Transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.num_experts, self.top_k = EXPERTS, TOP_K
        self.weight = torch.nn.Parameter(torch.randn(EXPERTS, WIDTH) * 0.1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores, ids = (x @ self.weight.T).softmax(-1).topk(self.top_k, -1)
        return scores, ids


class Block(torch.nn.Module):
    """One layer of experts."""

    def __init__(self) -> None:
        super().__init__()
        self.router = Router()
        self.experts = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores, ids = self.router(x)
        out = torch.stack([expert(x) for expert in self.experts], 1)
        picked = out.gather(1, ids.unsqueeze(-1).expand(-1, -1, WIDTH))
        return x + (scores.unsqueeze(-1) * picked).sum(1)


class Model(torch.nn.Module):
    """Two blocks and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Block() for _ in range(2))
        self.head = torch.nn.Linear(WIDTH, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Tiny(lightning.LightningModule):
    """Learns a sum. ``nan_loss``: batches, by step, whose loss is NaN; ``nan_weights``: a step that ruins a weight."""

    def __init__(self, nan_loss: tuple[int, ...] = (), nan_weights: int = -1) -> None:
        super().__init__()
        self.model, self.nan_loss, self.nan_weights = Model(), nan_loss, nan_weights
        self.after: dict[int, dict[str, torch.Tensor]] = {}

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.model(x), y)
        self.log("entropy", loss.detach() + 1.0, on_step=True, on_epoch=True)
        return loss * math.nan if self.global_step + 1 in self.nan_loss else loss

    def validation_step(self, batch: Any, _: int) -> None:
        self.log("val_loss", torch.nn.functional.mse_loss(self.model(batch[0]), batch[1]))

    def on_train_batch_end(self, *_: Any) -> None:
        self.after[self.global_step] = {k: v.clone() for k, v in self.state_dict().items()}
        if self.global_step == self.nan_weights:
            torch.nn.init.constant_(self.model.head.bias, math.nan)

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2, weight_decay=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)  # multiplies the rate that it finds
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def data(rows: int = 64) -> DataLoader[Any]:
    """The same rows every time."""
    x = torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(7))
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)


def fit(root: Path, callbacks: list[Any], steps: int, *, ckpt_path: str | None = None, run: Path | None = None,
        broken: Any = (), nan_weights: int = -1, kind: type[Tiny] = Tiny, **options: Any) -> Any:  # fmt: skip
    """Train, under the run directory ``run`` where one is given; the trainer."""
    os.environ.pop("GYROSTAT_RUN_DIR", None)
    if run is not None:
        run.mkdir(mode=0o700, exist_ok=True)
        os.environ["GYROSTAT_RUN_DIR"] = str(run)
    lightning.seed_everything(3, verbose=False)
    trainer = lightning.Trainer(
        accelerator="cpu", max_steps=steps, callbacks=callbacks, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0, default_root_dir=str(root),
        **options,
    )  # fmt: skip
    trainer.fit(
        kind(broken, nan_weights), data(), data(8) if options.get("val_check_interval") else None, ckpt_path=ckpt_path
    )
    return trainer
