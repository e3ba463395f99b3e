"""Steering: what a Lightning trainer lets the sidecar set and ask, and the guard in front of its optimizers.

Knobs are ``lr_scale`` and, where the Trainer clips, ``gradient_clip_val``: called ``max_grad_norm`` where it clips by
the norm, for under that name the rules turn it. Procedures are ``checkpoint`` and ``stop``. Going back is done by a
restart: Lightning loads a checkpoint before the first step only.
"""

import sys
from collections.abc import Mapping
from typing import Any

from gyrostat.control import Control
from gyrostat.integrations.lightning import checkpoints, update
from gyrostat.integrations.lightning.settings import Settings
from gyrostat.integrations.torch_distributed import TorchCollective
from gyrostat.knob import Knob
from gyrostat.stepguard import StepGuard
from gyrostat.telemetry import Telemetry
from gyrostat.wire.messages import Ack, Resume

_LOOK = 0.1  # seconds between two looks for a SIGTERM while an answer is waited for


class Steering:
    """One fit's steering. ``restored``: what the callback's state in the loaded checkpoint says, {} without one."""

    def __init__(self, trainer: Any, telemetry: Telemetry, settings: Settings, restored: Mapping[str, Any]) -> None:
        self._trainer, self._settings = trainer, settings
        self._telemetry = telemetry
        several = trainer.world_size > 1
        self._ranks = ranks = _own_group() if several else None
        self.guard = StepGuard(agree=ranks.agree_max if ranks else None)
        self.guard.restore(restored.get("skips", ()))
        self._lr_scale = float(restored.get("lr_scale", 1.0))
        self._skipped_in_a_row, self._waited = 0, False
        if "clip" in restored and self._clips:
            self._clip_at(restored["clip"])
        known = checkpoints.kept(settings.checkpoints)
        self.control = Control(
            telemetry,
            self._knobs(),
            {"stop": self._stop, **({"checkpoint": self._checkpoint} if settings.checkpoints else {})},
            collective=ranks,
            last_directive=max([restored.get("last_directive", 0), *(each.last_directive for each in known)]),
            segment=max([restored.get("segment", 0), *(each.segment for each in known)]),
        )

    def begin(self) -> None:
        """Answer what a restart was asked for: the checkpoint is loaded by now, or it is not."""
        resume = self.control.resume(self.control.last_directive)
        if resume is None:
            return
        reason, step = self._obeyed(resume), int(self._trainer.global_step)
        if not reason:
            self.control.segment += 1
        self.control.resumed(resume, step, reason)
        if not reason and self._settings.checkpoints:
            self.save()  # else a death would resume from what was gone back from

    def before_update(self, optimizer: Any, seen: update.Seen) -> None:
        """Gradients are there: pass the step over where they, the loss or the weights are not finite."""
        step = int(self._trainer.global_step) + 1
        scaled = getattr(self._trainer.precision_plugin, "scaler", None) is not None
        loss = 0.0 if seen.loss is None else seen.loss
        grad_norm = 0.0 if seen.grad_norm is None or scaled else seen.grad_norm  # the scaler passes those over itself
        if not self.guard.allows(step, loss if seen.sound else float("nan"), grad_norm):
            update.drop(optimizer)
        update.scale_rates(optimizer, self._lr_scale)

    def save_if_due(self) -> None:
        """Write a checkpoint behind every so many steps, but none behind a step that was passed over."""
        step = int(self._trainer.global_step)
        if self._settings.every and step % self._settings.every == 0 and self.guard.last_applied:
            self.save()

    def step_ends(self) -> None:
        """At the boundary behind a step: obey; wait where the weights are about to be lost."""
        step = int(self._trainer.global_step)
        self._skipped_in_a_row = 0 if self.guard.last_applied else self._skipped_in_a_row + 1
        troubled = self._skipped_in_a_row > 1  # agreed on by all ranks, as the guard's word is
        if troubled and not self._waited:
            self._telemetry.flush()
            acks = self._answer_within(step + 1, self._settings.patience)
        else:
            acks = self.control.apply(step + 1)
        self._waited = troubled and not any(ack.result == ack.APPLIED for ack in acks)

    def _answer_within(self, step: int, seconds: float) -> list[Ack]:
        """Wait for an answer; not beyond a SIGTERM, which Lightning notes and obeys at its next boundary only.

        Ranks must look equally often, so several of them wait it out.
        """
        if self._trainer.world_size > 1:
            return self.control.apply_within(step, seconds)
        for _ in range(max(1, round(seconds / _LOOK))):
            acks = self.control.apply_within(step, min(seconds, _LOOK))
            if acks or getattr(self._trainer, "received_sigterm", False):
                return acks
        return []

    def end(self) -> None:
        """Let the ranks' last vote arrive: a process group that is taken down before it may wait for ever."""
        if self._ranks is not None:
            self._ranks.agree_max(0.0)

    def save(self) -> str:
        """Write a checkpoint; the folder."""
        return checkpoints.save(
            self._trainer, self._settings.checkpoints, segment=self.control.segment,
            last_directive=self.control.last_directive, keep=self._settings.keep,
        )  # fmt: skip

    def values(self) -> dict[str, float]:
        """Readings of the knobs, and what StepGuard did."""
        read = {"lr_scale": self._lr_scale, **self.guard.values()}
        return {**read, self._clip_name: float(self._trainer.gradient_clip_val)} if self._clips else read

    def state(self) -> dict[str, Any]:
        """What must outlive this process, as plain numbers: Lightning writes it into every checkpoint."""
        state: dict[str, Any] = {
            "lr_scale": self._lr_scale, "skips": self.guard.skips(), "segment": self.control.segment,
            "last_directive": self.control.last_directive,
        }  # fmt: skip
        return {**state, "clip": float(self._trainer.gradient_clip_val)} if self._clips else state

    def _obeyed(self, resume: Resume) -> str:
        """Why the restart has not come to what it was for, or ''."""
        if self._trainer.global_step != resume.step:
            return (
                f"training begins at step {self._trainer.global_step}, not {resume.step}: "
                "hand ckpt_path=callback.ckpt_path() to trainer.fit"
            )
        if resume.pass_over and self._settings.pass_over is None:
            return "items are to be passed over, and GyrostatCallback has no pass_over= that could tell the data so"
        if resume.pass_over and self._settings.pass_over is not None:
            self._settings.pass_over(resume.pass_over)
        self._turn(resume.knobs.get("lr_scale", self._lr_scale))
        if self._clips and self._clip_name in resume.knobs:
            self._clip_at(resume.knobs[self._clip_name])
        return ""

    def _knobs(self) -> list[Knob]:
        knobs = [
            Knob("lr_scale", lambda: self._lr_scale, self._turn, 0.01, 1.0, 2.0, doc="multiplies the scheduled rate")
        ]
        if self._clips:
            now = float(self._trainer.gradient_clip_val)
            knobs.append(
                Knob(
                    self._clip_name, lambda: float(self._trainer.gradient_clip_val), self._clip_at,
                    now / 10, now * 2, 2.0, doc="Trainer(gradient_clip_val=)",
                )
            )  # fmt: skip
        return knobs

    @property
    def _clips(self) -> bool:
        return bool(self._trainer.gradient_clip_val)

    @property
    def _clip_name(self) -> str:
        by_value = "value" in str(self._trainer.gradient_clip_algorithm or "").lower()
        return "gradient_clip_val" if by_value else "max_grad_norm"

    def _turn(self, value: float) -> None:
        self._lr_scale = value

    def _clip_at(self, value: float) -> None:
        self._trainer.gradient_clip_val = value

    def _stop(self, _: Mapping[str, Any]) -> None:
        self._trainer.should_stop = True

    def _checkpoint(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"path": self.save()}


def _own_group() -> TorchCollective:
    """A gloo group beside the trainer's own: no stream is touched, and DDP does not end with our votes in its group."""
    return TorchCollective(sys.modules["torch"].distributed.new_group(backend="gloo"))
