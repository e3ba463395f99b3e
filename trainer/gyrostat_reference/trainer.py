"""The trainer: a loop of boundary, rollouts, verification, credit, update, record, checkpoint.

Control is asked at the boundary, before the step's rollouts: what a directive changes holds from that step on,
and no rollout made before a rollback is ever learnt from. A step that StepGuard skips keeps the data cursor:
the batch is served again with new rollouts, so that a transient fault goes away and a poisoned item comes
back. After three skips in a hundred steps the guard steps aside and the poison is learnt: by itself, the guard
only buys time for someone who passes the item over.
"""

import functools
import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Generator

from gyrostat import Control, StepGuard, Telemetry
from gyrostat_reference import pivotrl
from gyrostat_reference.checkpoint import Checkpoint
from gyrostat_reference.credit import Credit, credited
from gyrostat_reference.data import Batch, PromptData
from gyrostat_reference.engine import SIZE, PoolError, RolloutEngine, engine_of
from gyrostat_reference.estimates import Estimates
from gyrostat_reference.experience import Experience, gathered, profiled
from gyrostat_reference.experts import Noise
from gyrostat_reference.faults import Fuse, strike
from gyrostat_reference.history import History, line_of
from gyrostat_reference.keeper import Keeper
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.loss import lesson, taken
from gyrostat_reference.manifest import CheckpointError, Manifest
from gyrostat_reference.measures import Step, are_finite, averaged, measure
from gyrostat_reference.misfortune import Misfortune
from gyrostat_reference.policy import Policy
from gyrostat_reference.ranks import Alone, Ranks, unsharded
from gyrostat_reference.reading import read
from gyrostat_reference.rollout import PolicyDestroyed
from gyrostat_reference.running import Running, of_rank
from gyrostat_reference.settings import Settings
from gyrostat_reference.state import outline
from gyrostat_reference.update import Update
from gyrostat_reference.writers import captured, writer_of

MINIBATCHES = 2  # optimizer steps of a step
_NOISY = 50  # steps after which router noise is turned off again


class Trainer:
    """One run, or one rank of it. Knobs and procedures change its public attributes, between steps only."""

    def __init__(
        self,
        settings: Settings,
        telemetry: Telemetry,
        fuse: Fuse | None = None,
        say: Callable[[str], None] = print,
        ranks: Ranks | None = None,
        engine: RolloutEngine | None = None,
    ) -> None:
        self.settings, self.telemetry, self.say = settings, telemetry, say
        self.fuse, self.ranks = fuse or Fuse(), ranks or Alone()
        strikes = [strike(text) for text in settings.faults]
        base = next((s.fault.base for s in strikes if s.fault.base), "")
        self.policy = Policy(settings.shape, settings.ref_model_path, base, settings.sharding, self.ranks)
        self.engine = engine or engine_of(settings)
        self.random = Generator().manual_seed(settings.seed + 1_000_003 * self.ranks.rank)
        self.data = PromptData(seed=settings.seed, rank=self.ranks.rank, world=self.ranks.world)
        self.knobs = settings.knobs._replace(**{k: v for s in strikes for k, v in s.fault.start.items()})
        self.deaf: dict[str, float] = {}  # a fault: these hold, whatever the knobs say
        self.guard = StepGuard(agree=self.ranks.largest if self.ranks.world > 1 else None) if settings.guard else None
        self.estimates = Estimates()
        self.step = self.segment = self.last_directive = self.version = 0
        self.stopping = False
        self.paused_until = 0.0
        self.history = History()
        self.keeper = Keeper(writer_of(settings, self.fuse, self.ranks, self.policy), self.ranks, say)
        self._misfortune = Misfortune(strikes, settings.checkpoints, self.ranks.rank)
        for struck in self._misfortune.over:
            say(f"fault {struck.name}: it has struck already")
        self._doubtful = self._destroyed = False
        self._to_announce = False

    @property
    def identity(self) -> dict[str, int]:
        """What makes a checkpoint this run's: the seed names the items, the shape the tensors' meaning."""
        shape = self.settings.shape
        return {"seed": self.settings.seed, "loops": shape.loops, "chosen": shape.chosen}

    def run(self, control: Control) -> None:
        """Train to the last step, or until told to stop; raises PolicyDestroyed.

        A last step that was not finite has a boundary behind it too: somebody may go back from it.
        """
        self._stand_in(control)
        while self.step < self.settings.steps or self._doubtful:
            self._cross_boundary(control)
            if self.stopping or self.step >= self.settings.steps:
                break
            self._take_step(self.step + 1)
            self.keeper.watch()
            if self.keeper.owed or self.step % self.settings.checkpoint_every == 0:
                self.begin_checkpoint()
        if self._destroyed and not self.stopping:
            raise PolicyDestroyed(f"step {self.step}, the last, left parameters that are not finite")

    def finish(self) -> None:
        """Keep the last step; call it once, where the run did not die."""
        self.keeper.finish(self.step, self._snapshot)

    def load(self, path: str | Path, digest: str = "") -> Checkpoint:
        """Read a checkpoint of this run and touch nothing; raises CheckpointError. A collective."""
        if self.keeper.writer is None:
            raise CheckpointError("this run keeps no checkpoints")
        found = read(self.keeper.writer.root, path, outline(self.policy.model), self.ranks, digest)
        theirs = found.manifest.identity
        if theirs and theirs != self.identity:
            raise CheckpointError(f"{path} is another run's: {dict(theirs)}, not {self.identity}")
        try:
            self.data.checked(found.manifest.place.passed_over)
        except ValueError as error:
            raise CheckpointError(f"{path}: {error}") from None
        return found

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on as if never stopped, bit for bit."""
        self.policy.put_back(checkpoint.training)
        self._restore_running(checkpoint)
        self.data.place = checkpoint.manifest.place

    def go_back(
        self, checkpoint: Checkpoint, items: frozenset[int], *, seen: int = 0, reset_moments: bool = False
    ) -> None:
        """Go back to a verified checkpoint, but forward in the data: ``items`` and all seen are passed over.

        The moments are the checkpoint's, which is older than the fault, so no spike is in them; without them the
        learning rate is warmed up again.
        """
        self.policy.put_back(checkpoint.training, moments=not reset_moments)
        self._restore_running(checkpoint)
        if reset_moments:
            self.estimates = self.estimates._replace(warm_from=self.step)
        place = checkpoint.manifest.place
        self.pass_over(items | place.passed_over, max(seen, place.seen))
        self.history.rollbacks += 1
        self._doubtful = self._destroyed = False
        self.keeper.owed = True

    def pass_over(self, items: frozenset[int], seen: int = 0) -> None:
        """Never serve ``items`` again, by their prompts or by a pivot, nor anything drawn so far in this epoch."""
        self.data.go_past(items, seen)
        pool = pivotrl.without(self.estimates.pool, self.data.place.passed_over)
        self.estimates = self.estimates._replace(pool=pool)

    def begin_checkpoint(self) -> Path | None:
        """Start writing a checkpoint of the last finished step; its folder, or None where none was begun."""
        return self.keeper.begin(self._snapshot)

    def finish_writing(self) -> None:
        """Return when no checkpoint is being written."""
        if self.keeper.writer is not None:
            self.keeper.writer.wait()

    # -- the parts of a step ---------------------------------------------------------------------------

    def _cross_boundary(self, control: Control) -> None:
        self.fuse.reached("apply.before")
        if self._doubtful:  # a step that builds on it may not survive; the sidecar answers within milliseconds
            control.apply_within(self.step + 1, self.settings.patience)
        else:
            control.apply(self.step + 1)
        while self._is_paused():
            control.apply_within(self.step + 1, 0.1)
        self.fuse.reached("apply.after")
        self._stand_in(control)

    def _is_paused(self) -> bool:
        """All ranks alike: the clocks of two may differ by the one look that leaves the other waiting."""
        if not self.paused_until or self.stopping:
            return False
        if self.ranks.largest(float(time.monotonic() >= self.paused_until)):
            self.paused_until = 0.0
        return bool(self.paused_until)

    def _stand_in(self, control: Control) -> None:
        """Take over the segment and directive that the next checkpoint is to name."""
        self.segment, self.last_directive = control.segment, control.last_directive
        if self.keeper.owed:
            self.begin_checkpoint()
        if self._to_announce:  # a knob has turned by itself: whoever plans with it must know
            control.announce()
            self._to_announce = False

    def _take_step(self, number: int) -> None:
        began = time.perf_counter()
        self._misfortune.befall(self, number)
        knobs = self.knobs._replace(**self.deaf)
        experience = self._experience(number, self.data.draw(), knobs)
        before = self.estimates
        credit, self.estimates = credited(experience.rollouts, experience.rewards, before, knobs, self.ranks)
        done = self._learn(number, experience, credit, knobs)
        if done.applied:
            self.data.accept(experience.batch)
            self.policy.balance(experience.rollouts.output.counts, knobs.router_bias_rate)
        self.step = number
        step = Step(experience.batch, experience.rollouts, credit, done)
        self._record(step, knobs, began)
        self._remember(step, experience, knobs)
        self.fuse.reached("step.recorded")

    def _experience(self, number: int, batch: Batch, knobs: KnobValues) -> Experience:
        pivots = pivotrl.drawn(self.estimates.pool, len(batch.items), self.random)
        self.version += 1
        failure: Exception | None = None
        try:
            self.engine.load(self.policy.model, self.version)
            experience = gathered(self.policy, self.engine, batch, pivots, knobs.temperature, self.random)
        except (PolicyDestroyed, PoolError, OSError) as error:  # OSError: no room to publish weights in
            failure = error
        if self.ranks.largest(float(failure is not None)):  # the others must not wait for this rank
            raise PolicyDestroyed(f"step {number}: {failure or 'another rank has no rollouts'}")
        return experience

    def _learn(self, number: int, experience: Experience, credit: Credit, knobs: KnobValues) -> Update:
        whole = lesson(
            experience.rollouts, credit.shaped.advantages, credit.advantages.left_out, credit.shaped.eps_hi,
            credit.weights, SIZE,
        )  # fmt: skip
        order = torch.randperm(len(whole.mask), generator=self.random)
        rate = self.settings.schedule.at(number, self.estimates.warm_from)
        noise = Noise(knobs.router_noise, self.random) if knobs.router_noise else None
        allows = functools.partial(self.guard.allows, number) if self.guard is not None else None
        return self.policy.learn(
            taken(whole, order.chunk(MINIBATCHES)), knobs, rate, self.estimates.flow.alpha, noise, allows
        )

    def _remember(self, step: Step, experience: Experience, knobs: KnobValues) -> None:
        """Move on what outlives the step beside the credit: the pool of pivots, the router noise's expiry."""
        if self.settings.mode == "PivotRL" and not self._doubtful:
            self._profile(step, experience, knobs)
        since = self.estimates.noise_since
        if not self.knobs.router_noise:
            since = -1
        elif since < 0:
            since = self.step
        elif self.step - since >= _NOISY - 1:
            self.knobs, since = self.knobs._replace(router_noise=0.0), -1
            self._to_announce = True
        self.estimates = self.estimates._replace(noise_since=since)

    def _profile(self, step: Step, experience: Experience, knobs: KnobValues) -> None:
        pool, groups = self.estimates.pool, len(step.batch.items)
        spread = step.credit.advantages.spread[groups:]
        due = pivotrl.is_due(pool, self.step, float(spread.mean()) if len(spread) else None)
        if self.ranks.largest(float(due)):
            model = self.policy.model if pool.profiled else self.policy.base
            count = -(-int(knobs.sample_steps) // self.ranks.world)
            with unsharded(self.policy.model):
                pool = profiled(pool, experience, model, self.step, knobs, count, self.random)
            self.estimates = self.estimates._replace(pool=pool)

    def _record(self, step: Step, knobs: KnobValues, began: float) -> None:
        values = measure(step, self.estimates, knobs)
        self.estimates = self.estimates._replace(averages=averaged(self.estimates.averages, values))
        values |= self.estimates.averages
        values |= self.guard.values() if self.guard is not None else {"step_applied": 1.0}
        values |= self.engine.measures()
        values |= self.knobs._asdict()  # as they stand: a hand that turned one shows
        values["learning_rate"] = self.policy.optimizer.param_groups[0]["lr"]
        values["params_finite"] = 1.0 - self.ranks.largest(1.0 - are_finite(self.policy.model))
        values["checkpoint_busy"], values["checkpoint_failed"] = float(self.keeper.busy), float(self.keeper.failed)
        values["step_time"] = time.perf_counter() - began
        self.telemetry.record(self.step, expert_load=step.rollouts.output.counts, **values)
        self.history.add(self.step, values)
        self._destroyed = not values["params_finite"]
        self._doubtful = self._destroyed or not math.isfinite(values["loss"])
        self.say(line_of(self.step, values))

    # -- what a checkpoint holds -------------------------------------------------------------------------

    def _snapshot(self) -> Checkpoint:
        manifest = Manifest(
            self.step, self.segment, self.last_directive, time.time(), self.data.place, self.knobs._asdict(), {},
            self.identity,
        )  # fmt: skip
        skips = self.guard.skips() if self.guard is not None else []
        own = json.dumps(Running.of(self.random, self.estimates, skips).encode()).encode()
        running = tuple(Running.decode(json.loads(each)) for each in self.ranks.gathered(own))
        return Checkpoint(manifest, captured(self.settings, self.policy), running)

    def _restore_running(self, checkpoint: Checkpoint) -> None:
        self.knobs = checkpoint.knobs
        self.step = checkpoint.manifest.step
        running = of_rank(checkpoint.running, self.ranks.rank, self.ranks.world)
        running.put_into(self.random)
        self.estimates = running.estimates
        if self.guard is not None:
            self.guard.restore(running.skips)
