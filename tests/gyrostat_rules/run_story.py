"""A run as a story: who spoke, what was said, how time passed, and what the engine made of it.

Each word of it is one input, so that a test reads like the night it is about. The clock stands unless the story
moves it: a step takes a second.
"""

import math
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from gyrostat.wire import Ack, Exit, ExpertLoad, Hello, KnobState, Record
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import (
    Answer,
    Batch,
    CheckpointSeen,
    Command,
    Delivery,
    Died,
    Ended,
    Fit,
    Input,
    Item,
    Pack,
    SourceState,
    Tick,
)
from gyrostat_rules.packmerge import join
from gyrostat_rules.packs import NAMES
from gyrostat_rules.state import Action, Alert, Incident

CORE = join([(files("gyrostat_rules") / "packs" / f"{name}.yaml").read_text("utf-8") for name in NAMES])
KNOBS = (KnobState("lr_scale", 1.0, 0.01, 1.0, 2.0), KnobState("max_grad_norm", 2.0, 0.1, 4.0, 2.0))
PROCEDURES = ("rollback", "skip_data", "stop", "checkpoint")
NAN = math.nan


class Story:
    """One run and its engine. ``act=False`` leaves mode and approvals as an agent finds them: shadow."""

    def __init__(self, *, act: bool = True, approvals: bool = False, world: int = 1, pack: str = CORE) -> None:
        self.engine, self.inputs, self.entries = Engine(), list[Input](), list[Entry]()
        self.at, self.world, self.segment, self.life = 1000.0, world, 0, "life-a"
        self.feed(Pack(self.at, "digest", pack))
        if act:
            self.command("configure", mode="act", approvals=approvals)

    # -- what is fed ----------------------------------------------------------------------------------

    def feed(self, given: Input) -> list[Entry]:
        """Any input; returns its entries."""
        self.inputs.append(given)
        entries = self.engine.feed(given)
        self.entries += entries
        return entries

    def batch(self, *items: Item) -> list[Entry]:
        """Items read in one pass."""
        return self.feed(Batch(self.at, items))

    def tick(self, seconds: float = 1.0) -> list[Entry]:
        """Time passes."""
        self.at += seconds
        return self.feed(Tick(self.at))

    def command(self, verb: str, **arguments: Any) -> list[Entry]:
        """Somebody's word."""
        return self.feed(Command(self.at, verb, arguments))

    # -- who speaks -----------------------------------------------------------------------------------

    def begin(self, *, life: str = "", last: int = 0, knobs: Iterable[KnobState] = KNOBS, **more: Any) -> "Story":
        """All trainer ranks say Hello."""
        self.life = life or self.life
        self.batch(*(self.hello(rank, last=last, knobs=knobs, **more) for rank in range(self.world)))
        return self

    def hello(self, rank: int = 0, *, last: int = 0, knobs: Iterable[KnobState] = KNOBS, **more: Any) -> Hello:
        """One trainer rank's Hello."""
        said: dict[str, Any] = {"procedures": PROCEDURES, "checkpoint_root": "/ck", **more}
        return Hello("run", "trainer", rank, self.world, self.life, self.segment, 7, tuple(knobs),
                     last_directive=last, **said)  # fmt: skip

    def supervisor(self, *flags: KnobState) -> "Story":
        """A supervisor that can restart the trainer, with these flags turned, and release it."""
        self.batch(Hello("run", "supervisor", 0, 1, "super-a", knobs=flags, procedures=("restart", "release")))
        return self

    def record(self, step: int, rank: int = 0, *, load: ExpertLoad | None = None, **values: float) -> Record:
        """One rank's step: healthy but for what is said."""
        healthy = {"loss": 1.0, "grad_norm": 0.5, "step_applied": 1.0, "params_finite": 1.0}
        healthy |= {"data_cursor": 16.0 * step, "data_items": 16.0}
        return Record("trainer", rank, self.life, self.segment, step, step, self.at, {**healthy, **values}, load)

    def step(self, step: int, *, ranks: Iterable[int] | None = None, **values: float) -> list[Entry]:
        """All ranks tell a step, or those named; ``values`` are rank 0's."""
        self.at += 1.0
        who = range(self.world) if ranks is None else ranks
        return self.batch(*(self.record(step, r, **(values if r == 0 else {})) for r in who))

    def steps(self, first: int, last: int) -> "Story":
        """Healthy steps, both ends counted."""
        for step in range(first, last + 1):
            self.step(step)
        return self

    def skipped(self, step: int, **more: float) -> list[Entry]:
        """A step whose loss is NaN, and which the trainer's own guard did not apply."""
        return self.step(step, **{"loss": NAN, "step_applied": 0.0, **more})

    def applied(self, step: int, **more: float) -> list[Entry]:
        """A step whose loss is NaN, and which was applied."""
        return self.step(step, **{"loss": NAN, "step_applied": 1.0, **more})

    def ack(self, result: str = Ack.APPLIED, *, step: int | None = None, ranks: Iterable[int] | None = None,
            reason: str = "", role: str = "trainer", values: Mapping[str, float] | None = None,
            **detail: Any) -> list[Entry]:  # fmt: skip
        """The answer to the newest directive, ``values`` read back. A rollback applied begins the next segment."""
        action = self.action
        at_step = self.engine.state.step + 1 if step is None else step
        if action.procedure == "rollback" and result == Ack.APPLIED:
            detail.setdefault("step", action.arguments["step"])
        ack = Ack(action.number, action.id, result, at_step, reason, values or {}, detail)
        who = range(self.world) if ranks is None else ranks
        entries = self.batch(*(Answer(role, rank, self.life, ack) for rank in who))
        self.segment += action.procedure == "rollback" and result == Ack.APPLIED
        return entries

    def restarted(self, life: str) -> list[Entry]:
        """The trainer begins anew by the newest directive, as its SDK does: Hello, then the answer without a name."""
        action, self.life = self.action, life
        self.segment += 1
        step = action.arguments["step"]
        answer = Answer("trainer", 0, life, Ack(action.number, "", Ack.APPLIED, step))
        return self.batch(self.hello(last=action.number), answer)

    def died(self, status: int = 1, *, asked: bool = False, rank: int = 0) -> list[Entry]:
        """The supervisor saw the trainer end."""
        return self.batch(Died("super-a", Exit("trainer", rank, 7, status, asked)))

    def bye(self, rank: int = 0) -> list[Entry]:
        """The trainer says goodbye."""
        return self.batch(Ended("trainer", rank, self.life))

    def checkpoint(self, step: int, *, fit: str = Fit.VERIFIED, why: str = "", segment: int = 0) -> "Story":
        """The sidecar found a checkpoint."""
        path = path_of(step, segment)
        self.batch(CheckpointSeen(path, step, segment, f"xxh3:{step}", fit, why, 100.0 + step))
        return self

    def source(self, word: str, name: str = "records") -> list[Entry]:
        """How a source fares."""
        return self.batch(SourceState(name, word, f"it is {word}"))

    def delivery(self, outcome: str, reason: str = "disk full") -> list[Entry]:
        """The actuator's word on the newest action."""
        return self.batch(Delivery(self.action.id, outcome, reason))

    # -- what came of it ------------------------------------------------------------------------------

    @property
    def incident(self) -> Incident:
        """The newest incident."""
        return self.engine.state.incidents[-1]

    @property
    def incidents(self) -> list[Incident]:
        """All of them."""
        return self.engine.state.incidents

    @property
    def action(self) -> Action:
        """The newest action of the newest incident that has one."""
        return next(i.actions[-1] for i in reversed(self.incidents) if i.actions)

    @property
    def alerts(self) -> dict[str, Alert]:
        """What fires or is pending, by the rule's name and rank."""
        return {f"{a.rule}/{a.labels['rank']}": a for a in self.engine.state.alerts.values()}

    def sent(self) -> list[str]:
        """The remedies that were sent, in order."""
        return [e.data["remedy"] for e in self.entries if e.kind == EntryKind.ACTION and e.state == "sent"]

    def told(self, kind: str, state: str = "") -> list[Entry]:
        """Entries of a kind, and of a state where one is named."""
        return [e for e in self.entries if e.kind == kind and state in ("", e.state)]


def healthy_run(last: int = 20, **how: Any) -> Story:
    """A run with two verified checkpoints, at steps 10 and 15, healthy up to ``last``."""
    return Story(**how).begin().checkpoint(10).checkpoint(15).steps(1, last)


def path_of(step: int, segment: int = 0) -> str:
    """Where a story's checkpoint lies."""
    return f"/ck/step-{step}-s{segment}"


def states_of(entries: Iterable[Entry], subject: str = "") -> list[str]:
    """The states told, in order."""
    return [e.state for e in entries if not subject or e.subject == subject]


def replay(inputs: Iterable[Input]) -> tuple[Engine, list[Entry]]:
    """A second engine, fed the same."""
    engine = Engine()
    return engine, [entry for given in inputs for entry in engine.feed(given)]


def words(data: Mapping[str, Any]) -> str:
    """A mapping as text, to look for a word in."""
    return " ".join(f"{k}={v}" for k, v in data.items())
