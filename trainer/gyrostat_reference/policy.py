"""Policy: the model that is trained, its frozen reference, its optimizer; what an update does to them.

The model is used bare for rollouts and names, and by ``forward`` for learning, where several ranks share gradients.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from gyrostat_reference.experts import Noise
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import Lesson
from gyrostat_reference.model import Shape
from gyrostat_reference.ranks import Ranks, spread
from gyrostat_reference.state import TrainingState, capture, put_back, whole
from gyrostat_reference.update import Learner, Update, update
from gyrostat_reference.warmup import BASE, base_policy

BETAS = (0.9, 0.95)


class Policy:
    """``model`` and ``base`` start alike, from ``ref_model_path`` or the base policy that comes with the package."""

    def __init__(self, shape: Shape, reference: Path | None, base: str, sharding: str, ranks: Ranks) -> None:
        self.base, self.model = (base_policy(shape, reference, base or BASE) for _ in range(2))
        self.base.requires_grad_(False)
        self.ranks = ranks
        forward = spread(self.model, "fsdp2" if sharding == "fsdp2" else "ddp", ranks)
        router = [p for n, p in self.model.named_parameters() if "router" in n]
        others = [p for n, p in self.model.named_parameters() if "router" not in n]
        self.optimizer = torch.optim.AdamW([{"params": others}, {"params": router}], betas=BETAS, weight_decay=0.0)
        self._learner = Learner(self.model, forward, self.optimizer, ranks)

    def learn(
        self, lessons: Sequence[Lesson], knobs: KnobValues, rate: float, bonus: float, noise: Noise | None,
        allows: Callable[[float, float], bool] | None,
    ) -> Update:  # fmt: skip
        """One step's update at learning rate ``rate``; ``noise`` is on the router in these passes alone."""
        rates = (rate * knobs.lr_scale, rate * knobs.lr_scale * knobs.router_lr_scale)
        for group, at in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = at
        self.model.block.experts.noise = noise
        try:
            return update(self._learner, lessons, knobs, bonus, allows)
        finally:
            self.model.block.experts.noise = None

    def balance(self, counts: Tensor, rate: float) -> None:
        """Move the router's bias after a step with ``counts`` (layers, loops, experts); 0 asks nobody."""
        if rate:
            load = self.ranks.sums(counts.sum((0, 1)).tolist())
            self.model.block.experts.balance(torch.tensor(load), rate)

    def capture(self) -> TrainingState:
        """Weights and moments, copied; of a shard, this rank's part."""
        return capture(self.model, self.optimizer)

    def whole(self) -> TrainingState:
        """Weights and moments, whole; a collective."""
        return whole(self.model, self.optimizer)

    def put_back(self, state: TrainingState, *, moments: bool = True) -> None:
        """Make all what it was, bit for bit; without ``moments`` the optimizer starts afresh."""
        put_back(state, self.model, self.optimizer, moments=moments)
