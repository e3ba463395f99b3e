"""The simulated trainer: real Telemetry, Control and StepGuard around a step that is a line of arithmetic.

It does what trainer/gyrostat_reference does at each boundary, in the same order, with the same promises.
"""

import math
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from chaos_deaths import Death
from chaos_store import Saved, Store

from gyrostat import Control, Knob, StepGuard, Telemetry
from gyrostat.wire import Ack, Directive, Resume


class Plan(NamedTuple):
    """How a scenario's trainer is made and what befalls it. Steps count from 1; an item's number is its place."""

    guard: bool = True
    poison_items: tuple[int, ...] = ()  # poisoned for ever: until passed over
    poison_once: tuple[int, ...] = ()  # poisoned when first served, fine when served again
    poison_from_step: int = 0  # a bad knob: every step from here on, whatever the data
    harmless_after_turn: bool = False  # the bad knob is cured by a smaller lr_scale
    sampling_fails: bool = False  # once a parameter is not finite, the next step ends the process with 1
    exit_at: int = 0  # ends with 1 at this step, once
    checkpoint_every: int = 3
    busy: bool = False  # says that a checkpoint is being written, one record in two
    syncing: bool = False  # says that weights are on their way, one record in two
    raises: tuple[str, ...] = ()  # procedures that raise
    stopped_at: int = 0  # SIGSTOP at this step ...
    stopped_rounds: int = 0  # ... for so many rounds
    stopped_in_ack: bool = False  # ... between obeying and answering
    turned_at: int = 0  # a person turns lr_scale at this step
    silent_at: int = 0  # no word from this step on: a stall


class Ended(Exception):
    """The process ends by itself with this status."""

    def __init__(self, status: int) -> None:
        self.status = status


class Trainer:
    """One life of the trainer. ``passes(point)`` may kill it; ``note`` hears of each directive begun."""

    def __init__(
        self, plan: Plan, store: Store, path: str, run: str, served: set[int],
        passes: Callable[[str], bool], note: Callable[[Directive | Resume, str], None], sleep: Callable[[int], None],
        now: Callable[[], float],
    ) -> None:  # fmt: skip
        self.plan, self.store, self._passes, self._note, self._served = plan, store, passes, note, served
        self._sleep, self._now = sleep, now
        self.step = self.cursor = self.seen = 0
        self.passed_over: frozenset[int] = frozenset()
        self.finite = True
        self.lr_scale = 1.0
        self.stopping = self.owes_checkpoint = False
        self.told: list[tuple[str, int, int]] = []
        self.poisoned_steps: list[tuple[str, int]] = []  # applied with poison
        self.guard = StepGuard(limit=2) if plan.guard else None
        self.telemetry = Telemetry(path, run=run, rank=0, world=1, checkpoint_root=store.root)
        self.control = Control.__new__(Control)  # known before it is made: death may come while it says Hello
        self._wrap()

    def begin(self) -> None:
        """Find the place to go on from, say Hello, obey ``resume.json``; raises Death."""
        if (newest := self.store.newest()) is not None:
            self._restore(newest)
            self.cursor = self.seen = newest.cursor
        last = max((s.last_directive for s in self.store.saved), default=0)
        self.control.__init__(  # type: ignore[misc]
            self.telemetry, [Knob("lr_scale", lambda: self.lr_scale, self._set_lr, 0.05, 2.0, max_factor=2.0)],
            {"rollback": self.rollback, "skip_data": self.skip_data, "stop": self.stop},
            last_directive=last, segment=max((s.segment for s in self.store.saved), default=0),
        )  # fmt: skip
        self._pass("trainer.hello")
        self._listen()
        if (resume := self.control.resume(last_applied=last)) is not None:
            self._obey(resume)

    def turn(self) -> None:
        """One boundary and one step; raises Ended or Death."""
        self._pass("apply.before")
        if self.step + 1 == self.plan.turned_at:
            self.lr_scale *= 0.9
        self.control.apply(self.step + 1)
        if self.owes_checkpoint:
            self._save()
        if self.stopping:
            self.telemetry.close()
            raise Ended(0)
        self._take_step(self.step + 1)
        if self.owes_checkpoint or self.step % self.plan.checkpoint_every == 0:
            self._save()

    def release(self) -> None:
        """What the kernel does with the descriptors of a process that ended."""
        self.telemetry._file.close()
        bell = getattr(self.control, "_bell", None)
        if bell is not None and bell._fd >= 0:
            os.close(bell._fd)

    # -- a step ---------------------------------------------------------------------------------------

    def _take_step(self, number: int) -> None:
        if self.plan.sampling_fails and not self.finite:
            raise Ended(1)
        item = self._draw()
        poisoned = self._poisons(item, number)
        loss = math.nan if poisoned or not self.finite else 1.0 + 0.01 * (number % 3)
        applied = self.guard.allows(number, loss, 0.5) if self.guard else True
        self._served.add(item)
        if applied:
            self.cursor = item + 1
            self.finite = self.finite and not poisoned
        self.step = number
        values = {
            "loss": loss, "step_applied": float(applied), "params_finite": float(self.finite), "suspect_item": item,
            "checkpoint_busy": float(self.plan.busy and number % 2),
            "weight_sync_busy": float(self.plan.syncing and number % 2),
        }  # fmt: skip
        self.telemetry.record(number, **values)
        self.told.append((self.telemetry.incarnation, self.control.segment, number))
        if applied and poisoned:
            self.poisoned_steps.append((self.telemetry.incarnation, number))
        self._pass("record.written")

    def _draw(self) -> int:
        item = self.cursor
        while item in self.passed_over:
            item += 1
        self.seen = max(self.seen, item + 1)
        return item

    def _poisons(self, item: int, step: int) -> bool:
        plan = self.plan
        if plan.poison_from_step and step >= plan.poison_from_step:
            return not (plan.harmless_after_turn and self.lr_scale < 0.8)
        return item in plan.poison_items or (item in plan.poison_once and item not in self._served)

    def _save(self) -> None:
        self.owes_checkpoint = False
        self._pass("checkpoint.files")
        self.store.saved.append(
            Saved(
                self.store.path(self.step), self.step, self.control.segment, self.control.last_directive, self.finite,
                self.cursor, self.passed_over, self.lr_scale, self._now(),
            )
        )  # fmt: skip
        self._pass("checkpoint.complete")

    # -- start ----------------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Tell the world of each directive that is begun."""
        carry_out = self.control._carry_out

        def noted(directive: Directive, step: int) -> Ack:
            self._note(directive, self.telemetry.incarnation)
            return carry_out(directive, step)

        self.control._carry_out = noted  # type: ignore[method-assign, assignment]

    def _obey(self, resume: Resume) -> None:
        self._note(resume, self.telemetry.incarnation)
        target = self.store.find(resume.checkpoint)
        if target is None or target.digest != resume.digest:
            self.control.resumed(resume, self.step, "the checkpoint is gone")
            return
        self._go_back(target, frozenset(resume.pass_over))
        self._pass("trainer.resumed")
        self.control.segment += 1
        self.control.resumed(resume, self.step)

    # -- procedures -----------------------------------------------------------------------------------

    def rollback(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        self._raise("rollback")
        target = self.store.find(arguments["checkpoint"])
        if target is None or target.digest != arguments["digest"]:
            raise ValueError("the checkpoint is gone")
        self._go_back(target, frozenset(arguments["pass_over"]))
        self._pass("procedure.done")
        return {"step": self.step}

    def skip_data(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        self._raise("skip_data")
        items = arguments.get("items") or list(range(*arguments["cursor"]))
        self.passed_over |= frozenset(items)
        self.cursor = max(self.cursor, self.seen)
        self._pass("procedure.done")
        return {"passed_over": sorted(self.passed_over)}

    def stop(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        self._raise("stop")
        self.stopping = True
        self._pass("procedure.done")
        return {"step": self.step}

    def _go_back(self, target: Saved, items: frozenset[int]) -> None:
        seen = max([self.seen, *(s.cursor for s in self.store.saved)])
        self._restore(target)
        self.passed_over = target.passed_over | items
        self.cursor = self.seen = seen
        self.owes_checkpoint = True

    def _restore(self, saved: Saved) -> None:
        self.step, self.finite, self.lr_scale = saved.step, saved.finite, saved.lr_scale
        self.passed_over = saved.passed_over

    def _set_lr(self, value: float) -> None:
        self.lr_scale = value

    def _raise(self, procedure: str) -> None:
        if procedure in self.plan.raises:
            raise ValueError(f"{procedure} is not possible just now")

    # -- death ----------------------------------------------------------------------------------------

    def _pass(self, point: str) -> None:
        if self._passes(point):
            raise Death(point)

    def _wrap(self) -> None:
        """Put points where the SDK answers, and where it writes: half a frame may be all that gets out."""
        say, write = self.telemetry.say, self.telemetry._file.write

        def saying(message: Any = None, step: int = -1) -> None:
            if isinstance(message, Ack):
                self._pass("ack.before")
                if self.plan.stopped_in_ack:
                    self._sleep(self.plan.stopped_rounds)
            say(message, step)
            if isinstance(message, Ack):
                self._pass("ack.after")

        def writing(frames: bytes) -> bool:
            if self._passes("record.torn"):
                os.write(self.telemetry._file._fd, frames[: len(frames) // 2])
                raise Death("record.torn")
            return write(frames)

        self.telemetry.say = saying  # type: ignore[method-assign]
        self.telemetry._file.write = writing  # type: ignore[method-assign]
