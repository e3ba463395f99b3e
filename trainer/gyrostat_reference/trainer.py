"""The trainer: a loop of boundary, rollouts, verification, advantages, update, record, checkpoint.

Control is asked at the boundary, before the step's rollouts: what a directive changes holds from that step on,
and no rollout made before a rollback is ever learnt from. A step that StepGuard skips keeps the data cursor:
the batch is served again with new rollouts, so that a transient fault goes away and a poisoned item comes
back. After three skips in a hundred steps the guard steps aside and the poison is learnt: by itself, the guard
only buys time for someone who passes the item over.
"""

import functools
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Generator

from gyrostat import Control, StepGuard, Telemetry
from gyrostat_reference.advantage import Advantages, group_advantages
from gyrostat_reference.checkpoint import Checkpoint, Running
from gyrostat_reference.data import PromptData
from gyrostat_reference.faults import Fuse, verify
from gyrostat_reference.history import History
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import minibatches
from gyrostat_reference.manifest import Manifest
from gyrostat_reference.measures import Step, are_finite, averaged, measure
from gyrostat_reference.rollout import PolicyDestroyed, Rollouts, roll_out
from gyrostat_reference.state import capture, put_back
from gyrostat_reference.update import Update, update
from gyrostat_reference.warmup import base_policy
from gyrostat_reference.writer import CheckpointWriter

ROLLOUTS, MINIBATCHES = 8, 2  # completions of a prompt; optimizer steps of a step
LEARNING_RATE, BETAS = 1e-3, (0.9, 0.95)


class Settings(NamedTuple):
    """What a run is asked to do; the command line's ``--help`` describes each."""

    steps: int = 60
    seed: int = 0
    checkpoints: Path | None = None
    checkpoint_every: int = 5
    keep: int = 6
    poison_item: int | None = None
    guard: bool = False
    patience: float = 0.25


class Trainer:
    """One run. Knobs and procedures change its public attributes, between steps only."""

    def __init__(
        self, settings: Settings, telemetry: Telemetry, fuse: Fuse | None = None, say: Callable[[str], None] = print
    ) -> None:
        self.settings, self.telemetry, self.say = settings, telemetry, say
        self.fuse = fuse or Fuse()
        self.base, self.model = base_policy(), base_policy()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), LEARNING_RATE, BETAS, weight_decay=0.0)
        self.random = Generator().manual_seed(settings.seed)
        self.data = PromptData(seed=settings.seed)
        self.knobs = KnobValues()
        self.guard = StepGuard() if settings.guard else None
        self.averages: dict[str, float] = {}
        self.step = self.segment = self.last_directive = 0
        self.stopping = False
        self.history = History()
        root = settings.checkpoints
        self.writer = CheckpointWriter(root, settings.keep, self.fuse) if root is not None else None
        self._owes_checkpoint = False
        self._doubtful = False

    def run(self, control: Control) -> None:
        """Train to the last step, or until told to stop; raises PolicyDestroyed."""
        self._stand_in(control)
        while self.step < self.settings.steps:
            self._cross_boundary(control)
            if self.stopping:
                break
            self._take_step(self.step + 1)
            if self._owes_checkpoint or self.step % self.settings.checkpoint_every == 0:
                self.begin_checkpoint()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on as if never stopped, bit for bit."""
        put_back(checkpoint.training, self.model, self.optimizer)
        self._restore_running(checkpoint)
        self.data.place = checkpoint.manifest.place

    def go_back(
        self, checkpoint: Checkpoint, items: frozenset[int], *, seen: int = 0, reset_moments: bool = False
    ) -> None:
        """Go back to a verified checkpoint, but forward in the data: ``items`` and all seen are passed over.

        The moments are the checkpoint's, which is older than the fault, so no spike is in them; without them the
        next twenty or so updates are too large (bias correction), and reward was seen to fall for thirty steps.
        """
        put_back(checkpoint.training, self.model, self.optimizer, moments=not reset_moments)
        self._restore_running(checkpoint)
        place = checkpoint.manifest.place
        self.data.go_past(items | place.passed_over, max(seen, place.seen))
        self.history.rollbacks += 1
        # Written down before the next step: a death before the next regular checkpoint would otherwise resume
        # from the newest one, which is what was gone back from.
        self._owes_checkpoint = True

    def begin_checkpoint(self) -> Path | None:
        """Start writing a checkpoint of the last finished step; its folder, or None where none was begun."""
        if self.writer is None:
            return None
        folder = self.writer.begin(self._snapshot())
        self._owes_checkpoint = self._owes_checkpoint and folder is None
        return folder

    # -- the parts of a step ---------------------------------------------------------------------------

    def _cross_boundary(self, control: Control) -> None:
        self.fuse.reached("apply.before")
        if self._doubtful:  # a step that builds on it may not survive; the sidecar answers within milliseconds
            control.apply_within(self.step + 1, self.settings.patience)
        else:
            control.apply(self.step + 1)
        self.fuse.reached("apply.after")
        self._stand_in(control)

    def _stand_in(self, control: Control) -> None:
        """Take over the segment and directive that the next checkpoint is to name."""
        self.segment, self.last_directive = control.segment, control.last_directive
        if self._owes_checkpoint:
            self.begin_checkpoint()

    def _take_step(self, number: int) -> None:
        began = time.perf_counter()
        batch = self.data.draw()
        rollouts = self._roll_out(number, batch.prompts.repeat_interleave(ROLLOUTS, 0))
        items = torch.tensor(batch.items).repeat_interleave(ROLLOUTS)
        rewards = verify(rollouts.sequences, items, self.settings.poison_item).view(-1, ROLLOUTS)
        advantages = group_advantages(rewards, self.knobs.adv_eps)
        done = self._learn(number, rollouts, advantages)
        if done.applied:
            self.data.accept(batch)
        self.step = number
        self._record(Step(batch, rollouts, rewards, advantages, done), began)
        self.fuse.reached("step.recorded")

    def _roll_out(self, number: int, prompts: torch.Tensor) -> Rollouts:
        try:
            return roll_out(self.model, self.base, prompts, self.random)
        except PolicyDestroyed as error:
            raise PolicyDestroyed(f"step {number}: {error}") from None

    def _learn(self, number: int, rollouts: Rollouts, advantages: Advantages) -> Update:
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * self.knobs.lr_scale
        order = torch.randperm(len(rollouts.mask), generator=self.random)
        batches = minibatches(rollouts, advantages, order, MINIBATCHES)
        allows = functools.partial(self.guard.allows, number) if self.guard is not None else None
        return update(self.model, self.optimizer, batches, self.knobs, allows)

    def _record(self, step: Step, began: float) -> None:
        values = measure(step)
        self.averages = averaged(self.averages, values)
        values |= self.averages
        values |= self.guard.values() if self.guard is not None else {"step_applied": 1.0}
        values["learning_rate"] = LEARNING_RATE * self.knobs.lr_scale
        values["params_finite"] = float(are_finite(self.model))
        values["checkpoint_busy"] = float(self.writer is not None and self.writer.busy)
        values["step_time"] = time.perf_counter() - began
        self.telemetry.record(self.step, expert_load=step.rollouts.counts, **values)
        self.history.add(self.step, values)
        self._doubtful = not math.isfinite(values["loss"]) or not values["params_finite"]
        self.say(_line(self.step, values))

    # -- what a checkpoint holds -------------------------------------------------------------------------

    def _snapshot(self) -> Checkpoint:
        random = bytes(self.random.get_state().tolist())
        manifest = Manifest(
            self.step, self.segment, self.last_directive, time.time(), self.data.place, self.knobs._asdict(), {}
        )
        return Checkpoint(manifest, capture(self.model, self.optimizer), Running(random, dict(self.averages)))

    def _restore_running(self, checkpoint: Checkpoint) -> None:
        self.knobs = checkpoint.knobs
        self.step = checkpoint.manifest.step
        self.averages = dict(checkpoint.running.averages)
        self.random.set_state(torch.frombuffer(bytearray(checkpoint.running.random), dtype=torch.uint8))


def _line(step: int, values: dict[str, float]) -> str:
    line = (
        f"step {step:4d}  reward {values['reward']:.3f}  entropy {values['entropy']:.3f}  loss {values['loss']:+.4f}"
        f"  grad {values['grad_norm']:.3f}  {values['step_time']:.2f} s"
    )
    return line if values["step_applied"] else f"{line}  skipped"
