"""Everything the engine remembers, as plain data. A snapshot is this, written down; nothing hides elsewhere."""

from bisect import bisect_left
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

from gyrostat.wire import KnobChange, KnobState, Record
from gyrostat_rules.inputs import CheckpointSeen
from gyrostat_rules.pack import Effect, Harm
from gyrostat_rules.remembered import Broken, Deed, FaultSeen, Jump, Meter, Trial
from gyrostat_rules.standing import Standing
from gyrostat_rules.theirs import Hand, Silence

WINDOW = 256
_SOON = 60.0  # seconds; no start waits longer
FIRST = 32  # values of a run's start that stay: what is usual is measured against them


@dataclass(slots=True)
class Process:
    """One process of the run, by its newest Hello. ``ended`` says how it ended, '' while it lives.

    ``told``: records of this life, a step in two records counted once. ``sources``: the newest step that each of
    those who tell of it has told. ``announced``: the step of its newest Hello; ``moved``: how often one has shown a
    knob, by its name, that nobody here had turned. ``pid`` is as its own machine numbers it.
    ``node``: whose agent forwards what it tells, '' for this one's own; ``unseen``: that agent is not heard.
    """

    role: str
    rank: int
    incarnation: str = ""
    world: int = 1
    segment: int = 0
    root: str = ""
    last_directive: int = 0
    knobs: dict[str, KnobState] = field(default_factory=dict)
    procedures: list[str] = field(default_factory=list)
    ended: str = ""
    asked: bool = False
    last_step: int = -1
    last_at: float = 0.0
    spoken: bool = False
    step_seconds: list[float] = field(default_factory=list)
    told: int = 0
    sources: dict[str, int] = field(default_factory=dict)
    announced: int = -1
    moved: dict[str, int] = field(default_factory=dict)
    pid: int = 0
    node: str = ""
    unseen: bool = False

    @property
    def died(self) -> bool:
        """True where it ended unasked and with a failure."""
        return bool(self.ended) and not self.asked and self.ended not in ("bye", "exit 0")


@dataclass(slots=True)
class Window:
    """The recent values of one series of one process, oldest first."""

    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, step: int, value: float) -> None:
        """Append, and let go of what is old, but for the run's first values."""
        self.steps.append(step)
        self.values.append(value)
        if len(self.steps) > 2 * WINDOW:
            del self.steps[FIRST:-WINDOW], self.values[FIRST:-WINDOW]

    def put(self, step: int, value: float) -> None:
        """Add what comes late; of a step that is known, only that it is not finite."""
        place = bisect_left(self.steps, step)
        if place == len(self.steps):
            self.add(step, value)
        elif self.steps[place] != step:
            self.steps.insert(place, step)
            self.values.insert(place, value)
        elif not isfinite(value):
            self.values[place] = value

    def rewind(self, step: int) -> None:
        """Forget ``step`` and everything after it: the run jumped back."""
        while self.steps and self.steps[-1] >= step:
            self.steps.pop()
            self.values.pop()


@dataclass(slots=True)
class Alert:
    """One breached label set of one rule. ``looks``: step, and 1 where breached, of those that its rule counts."""

    rule: str
    labels: dict[str, str]
    state: str
    since_step: int
    since_at: float
    onset: int
    last_step: int
    value: float
    why: str
    evidence: dict[str, Any] = field(default_factory=dict)
    muted_by: str = ""
    incident: str = ""
    last_at: float = 0.0
    looks: list[list[int]] = field(default_factory=list)
    silenced_by: str = ""
    node: str = ""  # whose agent told it, '' where this one's own detectors did


@dataclass(slots=True)
class Action:
    """One remedy aimed at a target. ``number`` is its directive's, 0 before it is sent.

    ``settle``, ``effects`` and ``harm`` are the rung's. ``restores`` would take its knobs back, but for those that it
    is to keep (``kept``) where it has held, or to leave elsewhere (``later``). ``read``: what each rank reads back;
    ``orders`` are the texts its actuator carries out; ``then`` is the incident's state after an undo was answered.
    """

    id: str
    incident: str
    rung: int
    remedy: str
    horizon: int
    verdict: str = ""
    reason: str = ""
    outcome: str = ""
    explanation: str = ""
    role: str = ""
    procedure: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    knobs: list[KnobChange] = field(default_factory=list)
    restores: list[KnobChange] = field(default_factory=list)
    approved: bool = False
    number: int = 0
    sent_step: int = -1
    expires_at: float = 0.0
    answers: dict[str, str] = field(default_factory=dict)
    applied_step: int = -1
    until_step: int = -1
    then: str = ""
    orders: dict[str, str] = field(default_factory=dict)
    settle: int = 0
    keep: bool = False  # of every knob: snapshots of packs that said so
    kept: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    read: dict[str, dict[str, float]] = field(default_factory=dict)
    harm: Harm | None = None
    later: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Incident:
    """Critical alerts folded by cause: open, acting, probation, resolved, held or stopped.

    ``first_kind`` is what it opened as; ``kind`` is what leads it. Alerts of other kinds are its consequences.
    ``segment`` and ``life`` (the trainer's incarnation) are those in which the trouble was last seen.
    """

    id: str
    kind: str
    state: str
    onset: int
    fired_step: int
    fired_at: float
    alerts: list[str]
    last_bad_step: int
    evidence: dict[str, Any] = field(default_factory=dict)
    update_applied: bool = False
    rung: int = 0
    actions: list[Action] = field(default_factory=list)
    tried_targets: list[str] = field(default_factory=list)
    resolved_step: int = -1
    held_until: float = 0.0
    why: str = ""
    segment: int = 0
    life: str = ""
    first_kind: str = ""
    wanted: str = ""  # the checkpoint that a person asked for
    meter: Meter = field(default_factory=Meter)
    leader: str = ""  # the rule whose alert leads it, '' where an older agent wrote it
    opened_step: int = -1  # where it was first seen open: what a hand turns later is turned mid-incident
    opened_segment: int = 0
    hands: dict[str, Hand] = field(default_factory=dict)  # by the knob's name
    ousted: str = ""  # by which other cause, while its remedy was being watched

    @property
    def open(self) -> bool:
        """True until it is resolved or stopped."""
        return self.state not in ("resolved", "stopped")


@dataclass(slots=True)
class Settings:
    """What people have said: mode, approvals, pause; and why only observing is allowed, '' where it is not.

    ``armed``: the rules that act in mode shadow too, each with the evidence or the reason for it, in words;
    ``armed_as``: a mark of what each of them was then, for a pod that begins with another pack.
    """

    mode: str = "shadow"
    approvals: bool = True
    paused: bool = False
    distrust: str = ""
    trusted: str = ""
    hold_seconds: float = 3600.0
    said: bool = False
    armed: dict[str, str] = field(default_factory=dict)
    armed_as: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class State:
    """The whole of it."""

    turn: int = 0
    run: str = ""
    pack_text: str = ""
    settings: Settings = field(default_factory=Settings)
    processes: dict[str, Process] = field(default_factory=dict)
    windows: dict[str, dict[str, Window]] = field(default_factory=dict)
    buckets: dict[int, dict[str, Record]] = field(default_factory=dict)
    recent: dict[str, list[Record]] = field(default_factory=dict)
    jumps: list[Jump] = field(default_factory=list)
    step: int = -1
    segment: int = 0
    alerts: dict[str, Alert] = field(default_factory=dict)
    incidents: list[Incident] = field(default_factory=list)
    incident_count: int = 0
    checkpoints: dict[str, CheckpointSeen] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=dict)
    faults: dict[str, FaultSeen] = field(default_factory=dict)
    deeds: list[Deed] = field(default_factory=list)
    closed: list[Deed] = field(default_factory=list)
    next_directive: int = 1
    plan_from: float = 0.0  # seconds; before, nothing is planned or proved: checkpoints are still being looked at
    look_until: float = 0.0  # seconds; before, a missing checkpoint may only not have been looked at yet
    released: str = ""
    release_orders: dict[str, str] = field(default_factory=dict)
    broken: dict[str, Broken] = field(default_factory=dict)
    tags: dict[str, list[str]] = field(default_factory=dict)  # by a checkpoint's name: people's words for it
    trials: list[Trial] = field(default_factory=list)
    taken_up: str = ""  # the journal's head in the ledger that was taken up: until the next one is written it stays so
    proposed: str = ""  # what a person is told that they could go back to
    silences: dict[str, Silence] = field(default_factory=dict)
    silence_count: int = 0
    standing: Standing = field(default_factory=Standing)
    unseen: int = 0  # trainer ranks whose node's agent is not heard: no step waits for them

    def may_look(self, at: float) -> bool:
        """True while it cannot be known yet what there is to go back to: the newest, verified first, may be ill."""
        return _is_ahead(self.look_until, at)

    def may_plan(self, at: float) -> bool:
        """False after a start, until what is planned by has been seen again."""
        return self.plan_from != inf and not _is_ahead(self.plan_from, at)

    def trainer(self) -> Process | None:
        """The trainer's rank 0, whom directives name."""
        return self.processes.get("trainer/0")

    def supervisor(self) -> Process | None:
        """The supervisor, if the run has one."""
        return self.processes.get("supervisor/0")

    def examined(self) -> int:
        """The newest step up to which all has been looked at: what a slow rank may yet say is still to come."""
        return min(self.step, min(self.buckets, default=self.step + 1) - 1)

    def world(self) -> int:
        """How many trainer ranks answer."""
        if self.standing.follows:  # of the whole run a follower hears nothing: its own ranks are its world
            return max(1, sum(p.role == "trainer" and not p.ended and not p.node for p in self.processes.values()))
        trainer = self.trainer()
        return trainer.world if trainer else 1


def _is_ahead(moment: float, at: float) -> bool:
    """True for a moment that is still to come; one far ahead is of a clock that was set back since, and is over."""
    return at < moment <= at + _SOON


def key_of(role: str, rank: int) -> str:
    """A process's name in the state's tables."""
    return f"{role}/{rank}"
