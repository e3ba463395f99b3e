"""Steering: what a Hugging Face trainer lets the sidecar set and ask, and the obeying of it between two steps.

Called by GyrostatCallback at the points of the loop; what each point is good for stands in ``docs/trl_control.md``.
A version of Transformers without the internals that a procedure needs is steered without it, which is said once.
"""

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gyrostat.control import Control
from gyrostat.integrations.hf.bonus import Bonus
from gyrostat.integrations.hf.epochs import Epochs, LoopLeft
from gyrostat.integrations.hf.feed import Feed
from gyrostat.integrations.hf.keeping import Kept, all_kept, keep, kept_in
from gyrostat.integrations.hf.knobs import Scale, offered
from gyrostat.integrations.hf.leftout import left_out
from gyrostat.integrations.hf.notices import Notices
from gyrostat.integrations.hf.procedures import Procedures
from gyrostat.integrations.hf.replacements import Replacements
from gyrostat.integrations.hf.rewinding import refusals
from gyrostat.integrations.hf.update import Update
from gyrostat.integrations.hf.weights import Weights
from gyrostat.integrations.torch_distributed import TorchCollective
from gyrostat.stepguard import StepGuard
from gyrostat.telemetry import Telemetry
from gyrostat.wire import Ack, Resume

_PATIENCE = 10.0  # seconds that a poisoned run waits for an order, once: its next step may not survive


class Steering:
    """One training's steering, from ``begin`` to ``end``. ``guard``: False leaves every step to the optimizer.

    ``weights``: looked at between two steps; those that telling looks at, so that they are gone through once.
    """

    def __init__(
        self,
        trainer: Any,
        telemetry: Telemetry,
        *,
        notices: Notices | None = None,
        weights: Weights | None = None,
        guard: bool = True,
        patience: float = _PATIENCE,
    ) -> None:
        self._trainer, self._telemetry, self._patience = trainer, telemetry, patience
        self._notices = notices or Notices(telemetry.rank)
        self._replacements = Replacements()
        self._scale, self._bonus, self._feed = Scale(), Bonus(trainer), Feed(trainer)
        self._epochs = Epochs(trainer, self._feed, self._leave)
        self._update = Update(trainer, self._notices)
        self._ranks = _ranks(telemetry.world, trainer.args)
        self._guard = self._guarding() if guard else None
        self._weights = weights
        self._knobs = tuple(offered(trainer, self._scale, self._bonus))
        self._procedures = Procedures(trainer, self._knobs, self._feed, self._epochs, self._went_back)
        self._control: Control | None = None
        self._sound = True  # as all ranks see it
        self._skipped = 0  # steps in a row that were passed over, or should have been
        self._waited = False  # for an order, since the run was last sound

    def begin(self, args: Any, state: Any) -> None:
        """Before the first step: say what may be set and asked, and go where a restart is to go."""
        self._update.watch(self._replacements)
        self._feed.watch(self._replacements)
        self._epochs.watch(self._replacements)
        refused = list(refusals(self._trainer))
        if refused:
            self._notices.say("rollback", f"no rollback within the process, only by a restart: {'; '.join(refused)}")
        kept = kept_in(getattr(state, "stateful_callbacks", None)) if state.global_step else None
        self._take_up(kept or Kept(), state)
        self._control = Control(
            self._telemetry, self._knobs, self._procedures.offered(rewinds=not refused), collective=self._ranks,
            last_directive=kept.last_directive if kept else 0, segment=kept.segment if kept else 0,
        )  # fmt: skip
        if (resume := self._control.resume(self._control.last_directive)) is not None:
            self._obey(self._control, resume, "; ".join(refused))
        elif state.global_step:
            self._say_left_out(Path(args.output_dir) / f"checkpoint-{state.global_step}")
        self._keep()

    def before_step(self, state: Any) -> None:
        """Between two steps: obey. Where the next step would build on what is not finite, wait for an order.

        Raises LoopLeft where the run is to end here.
        """
        if self._control is None:
            return
        self._look(state)
        step = state.global_step + 1
        if self._sound or self._waited:
            acks = self._control.apply(step)
        else:
            self._telemetry.flush()
            acks, self._waited = self._control.apply_within(step, self._patience), True
        if any(ack.result == Ack.APPLIED for ack in acks):
            self._waited = False
        self._heed()
        self._keep()
        self._update.begin()

    def before_update(self, optimizer: Any) -> None:
        """Gradients are there: pass a step over that is not finite, scale the learning rate of others."""
        if self._guard is not None and not self._allows(self._guard):
            optimizer.zero_grad(set_to_none=True)  # nothing moves: no moment, no weight decay
        self._scale.put_in(optimizer)

    def after_update(self, optimizer: Any) -> None:
        """The weights have moved: schedules and checkpoints see the learning rate as it was."""
        self._scale.take_out()

    def saved(self, state: Any) -> None:
        """A checkpoint is complete: it was asked for once."""
        self._procedures.saving = False

    def end(self) -> None:
        """Leave the trainer as it was. Knobs stay where they were turned to."""
        self._scale.take_out()
        self._replacements.undo()

    def values(self) -> dict[str, float]:
        """Of the step that has just ended: how the knobs stand, what StepGuard did, which data it saw."""
        self._bonus.adapt()
        self._keep()
        if self._procedures.saving:
            self._trainer.control.should_save = True
        low, count = self._feed.present
        place = {"data_cursor": float(low), "data_items": float(count)} if count else {}
        guarded = self._guard.values() if self._guard is not None else {}
        return {**self._read(), **self._bonus.values(), **place, **guarded}

    # -- inside ---------------------------------------------------------------------------------------

    def _guarding(self) -> StepGuard | None:
        """None where somebody else decides on the step: a loss scaler passes over by itself, DeepSpeed steps itself."""
        if getattr(self._trainer, "is_deepspeed_enabled", False):
            self._notices.say("guard", "StepGuard is off: DeepSpeed steps within its own engine")
            return None
        if getattr(getattr(self._trainer, "accelerator", None), "scaler", None) is not None:
            self._notices.say("guard", "StepGuard is off: the loss scaler of half precision passes steps over itself")
            return None
        return StepGuard(agree=self._ranks.agree_max if self._ranks is not None else None)

    def _allows(self, guard: StepGuard) -> bool:
        loss, norm = self._update.loss, self._update.grad_norm
        read = [1.0 if value is None else float(value) for value in (loss, norm)]
        allowed = guard.allows(self._trainer.state.global_step + 1, *read)
        wrong = not all(map(math.isfinite, read)) or not allowed
        self._skipped = self._skipped + 1 if wrong else 0
        return allowed

    def _look(self, state: Any) -> None:
        """Are the weights finite, and were the last steps? All ranks come to one answer, and wait together."""
        found = self._weights.still() if self._weights is not None else None
        finite = found is None or float(found) > 0
        wrong = float(not finite or self._skipped > 1)
        if self._ranks is not None:
            wrong = self._ranks.agree_max(wrong)
        if not finite and self._sound:
            self._telemetry.record(state.global_step, params_finite=0.0)  # it may have come after the step was told
        self._sound = not wrong
        if self._sound:
            self._waited = False

    def _heed(self) -> None:
        """Do what procedures have put off until Control has answered."""
        if not self._procedures.stopping:
            return
        self._trainer.control.should_training_stop = True
        if self._epochs.watched:
            raise LoopLeft
        self._trainer.control.should_save = self._sound

    def _leave(self, model: Any, trial: Any) -> None:
        """The loop was left: keep the last finished step where it is worth keeping."""
        trainer = self._trainer
        if self._sound and trainer.state.global_step and hasattr(trainer, "_save_checkpoint"):
            trainer._save_checkpoint(model, trial)
            trainer.control = trainer.callback_handler.on_save(trainer.args, trainer.state, trainer.control)

    def _went_back(self, kept: Kept) -> None:
        """After a rollback: what was wrong is undone, and the guard's skips since with it."""
        self._sound, self._skipped, self._waited = True, 0, False
        if self._guard is not None:
            self._guard.restore(kept.skips)

    def _obey(self, control: Control, resume: Resume, refused: str) -> None:
        """Load what a restart was made for, whether the command line has done so already or not."""
        state, root = self._trainer.state, Path(self._trainer.args.output_dir)
        known = list(all_kept(root))
        reason = ""
        try:
            if refused and state.global_step != resume.step:
                raise ValueError(f"{refused}: start it with resume_from_checkpoint={resume.checkpoint}")
            if not refused:
                self._procedures.go_back(resume.checkpoint, resume.step)
            self._turn(resume.knobs)
            seen = max((k.drawn for k in known), default=0)
            self._feed.owed = max(seen, resume.step * self._trainer.args.gradient_accumulation_steps) - self._feed.drawn
        except Exception as error:  # the trainer's own loaders: a failure is an answer
            reason = f"{type(error).__name__}: {error}"
            self._notices.say("resume", f"resume {resume.number} failed: {reason}")
        control.segment = max([control.segment, *(k.segment for k in known)]) + (not reason)
        control.resumed(resume, state.global_step, reason)

    def _say_left_out(self, folder: Path) -> None:
        if names := left_out(self._trainer.model, folder):
            text = f"Transformers has loaded {folder.name} without {len(names)} of its tensors, such as {names[0]}: "
            text += "they are as the model was built; start from from_pretrained(that folder), or go back to it"
            self._notices.say("left out", text)

    def _take_up(self, kept: Kept, state: Any) -> None:
        """Go on as the checkpoint says that the trainer was started from."""
        self._turn(kept.knobs)
        if self._guard is not None:
            self._guard.restore(kept.skips)
        self._feed.drawn = state.global_step * self._trainer.args.gradient_accumulation_steps
        self._feed.owed = kept.drawn - self._feed.drawn  # Transformers itself counts the steps, not what was drawn

    def _turn(self, values: Mapping[str, float]) -> None:
        for knob in self._knobs:
            if knob.name in values:
                knob.set(values[knob.name])

    def _read(self) -> dict[str, float]:
        return {knob.name: float(knob.get()) for knob in self._knobs}

    def _keep(self) -> None:
        if self._control is None:
            return
        skips = tuple(self._guard.skips()) if self._guard is not None else ()
        kept = Kept(self._control.segment, self._control.last_directive, self._feed.drawn, self._read(), skips)
        keep(self._trainer.state, kept)


def _ranks(world: int, args: Any) -> TorchCollective | None:
    """The trainer's own process group, on the device that its backend wants."""
    torch = sys.modules.get("torch")
    if world < 2 or torch is None or not torch.distributed.is_initialized():
        return None
    gloo = torch.distributed.get_backend() == "gloo"
    return TorchCollective(device="cpu" if gloo else getattr(args.device, "type", "cuda"))
