"""Play: a test's rows fed to a fresh engine, in virtual time, and what came of them.

Through ``Engine.feed`` alone, as a run is; mode is act and nothing waits for an approval. The trainer obeys what turns
knobs and answers at its next step; what else it is ordered to do is written down, and stays unanswered.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gyrostat.wire import Ack, Exit, Hello, KnobState, Record
from gyrostat_agent.ruletest.draft import CaseDraft, EventDraft
from gyrostat_agent.ruletest.loads import Loads
from gyrostat_agent.ruletest.notation import spelled
from gyrostat_agent.ruletest.rows import Row, rows
from gyrostat_agent.ruletest.testfile import RuleTests
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import (
    Answer,
    Batch,
    CheckpointSeen,
    Command,
    Died,
    Ended,
    FaultLine,
    Fit,
    Input,
    Item,
    Pack,
    SourceState,
    Tick,
    Verb,
)

_BEGAN = 1000.0  # of no meaning, but that no time is negative
_TICKS, _LEAST = 200, 5.0  # of a silence: so many at most, and so many seconds apart at least
_SUPERVISOR = "supervisor"


class Raised(NamedTuple):
    """An alert, and the row at which it was seen to be in ``state``: firing or pending."""

    row: Row
    rule: str
    labels: Mapping[str, str]
    state: str
    onset: int
    muted: bool
    why: str


class Opened(NamedTuple):
    """An incident of a kind: as it opened, or as what came to lead it."""

    row: Row
    kind: str
    onset: int
    why: str


class Done(NamedTuple):
    """An action that was sent, or a person paged, with the knobs that it sets."""

    row: Row
    remedy: str
    knobs: Mapping[str, float]
    why: str


@dataclass(slots=True)
class Course:
    """All that came of a test. ``looks``: by row, the alerts that were firing or pending once it was over."""

    rows: list[Row]
    looks: dict[int, list[Raised]] = field(default_factory=dict)
    fired: list[Raised] = field(default_factory=list)
    opened: list[Opened] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)


def play(tests: RuleTests, case: CaseDraft) -> Course:
    """Feed one test to a fresh engine."""
    run = _Run(case, tests.step_seconds)
    run.begin(tests.pack)
    for row in run.course.rows:
        run.tell(row)
    return run.course


class _Run:
    """A run under way: its engine, its clock, and what the trainer has still to answer."""

    def __init__(self, case: CaseDraft, step_seconds: float) -> None:
        self.case, self.engine, self.at, self.step_seconds = case, Engine(), _BEGAN, step_seconds
        self.course, self.loads = Course(rows(case)), Loads(case.experts)
        self.told = [(s, spelled(s.values, f"{s.name}/{s.role}/{s.rank}").values) for s in case.series]
        self.ranks = sorted({s.rank for s in case.series if s.role == "trainer"} | {0})
        self.row, self.answers = Row(-1, 0, -1, 0, ()), list[Answer]()

    def begin(self, pack: str) -> None:
        """What comes before the first step."""
        self._feed(Pack(self.at, "tested", pack))
        self._feed(Command(self.at, Verb.CONFIGURE, {"mode": "act", "approvals": False}))
        if self.case.hello and self.case.hello.supervisor:
            self._give(Hello("run", _SUPERVISOR, 0, 1, "super", procedures=("restart", "release")))
        self._give(*self._hellos(0, 0))

    def tell(self, row: Row) -> None:
        """One step: what is told at it, what happens after it, and what is seen once that is over."""
        self.row, self.at = row, self.at + self.step_seconds
        answers, self.answers = self.answers, []
        records = list(self._records(row))
        self._feed(Batch(self.at, (*answers, *records)) if answers or records else Tick(self.at))
        hello = self.case.hello
        if hello and row.step in hello.checkpoints and not row.segment:
            self._give(self._checkpoint(row.step))
        for event in row.events:
            self._happen(event)
        self.course.looks[row.number] = [
            Raised(row, a.rule, a.labels, a.state, a.onset, bool(a.muted_by), a.why)
            for a in self.engine.state.alerts.values()
        ]

    def _records(self, row: Row) -> Iterator[Record]:
        values = dict[tuple[str, int], dict[str, float]]()
        for series, told in self.told:
            value = told[row.number] if row.number < len(told) else None
            if value is not None:
                values.setdefault((series.role, series.rank), {})[series.name] = value
        load = self.loads.at(row.number)
        if load is not None:
            values.setdefault(("trainer", 0), {})
        for (role, rank), found in sorted(values.items()):
            counts = load if (role, rank) == ("trainer", 0) else None
            yield Record(role, rank, _life(row.life), row.segment, row.number, row.step, self.at, found, counts)

    def _happen(self, event: EventDraft) -> None:
        who = event.role, event.rank
        if event.silence is not None:
            self._wait(event.silence.seconds or event.silence.steps * self.step_seconds)
        elif event.died is not None:
            self._give(Died("super", Exit(*who, 1, event.died, event.asked)))
        elif event.bye:
            self._give(Ended(*who, _life(self.row.life)))
        elif event.log is not None:
            self._give(FaultLine(*who, event.log, event.says or event.log))
        elif event.checkpoint is not None:
            self._give(self._checkpoint(event.checkpoint, event.fit, event.says))
        elif event.source is not None:
            self._give(SourceState("records", event.source, event.says or f"it is {event.source}"))
        elif event.new_life:
            self._give(*self._hellos(self.row.life + 1, self.row.segment + (event.back_to is not None)))

    def _checkpoint(self, step: int, fit: str = Fit.VERIFIED, why: str = "") -> CheckpointSeen:
        segment = self.row.segment
        path = f"/checkpoints/step-{step}" + (f"-s{segment}" if segment else "")
        return CheckpointSeen(path, step, segment, f"xxh3:{step}", fit, why, self.at)

    def _wait(self, seconds: float) -> None:
        apart = max(_LEAST, seconds / _TICKS)
        until = self.at + seconds
        while self.at < until:
            self.at = min(until, self.at + apart)
            self._feed(Tick(self.at))

    def _hellos(self, life: int, segment: int) -> Iterator[Hello]:
        """Of every trainer rank, where there is something to say: several ranks wait for each other."""
        said = self.case.hello
        if said is None and len(self.ranks) == 1:
            return
        knobs = tuple(KnobState(name, **k.model_dump()) for name, k in (said.knobs if said else {}).items())
        root = "/checkpoints" if said and said.checkpoints else ""
        for rank in self.ranks:
            yield Hello("run", "trainer", rank, len(self.ranks), _life(life), segment, 7, knobs,
                        said.procedures if said else (), root)  # fmt: skip

    def _give(self, *items: Item) -> None:
        if items:
            self._feed(Batch(self.at, items))

    def _feed(self, given: Input) -> None:
        for entry in self.engine.feed(given):
            self._note(entry)

    def _note(self, entry: Entry) -> None:
        course, data = self.course, entry.data
        if entry.kind == EntryKind.ALERT and entry.state == "firing":
            rule, onset = entry.subject.partition("{")[0], int(data.get("onset", entry.step))
            why = entry.text.partition(": ")[2]
            course.fired.append(
                Raised(self.row, rule, data.get("labels", {}), "firing", onset, "muted_by" in data, why)
            )
        elif entry.kind == EntryKind.INCIDENT and "incident_kind" in data and not data.get("circumstances"):
            incident = next(i for i in self.engine.state.incidents if i.id == entry.subject)
            opened = Opened(self.row, str(data["incident_kind"]), int(data["onset"]), incident.why)
            if "alerts" in data or opened.kind not in [o.kind for o in course.opened]:
                course.opened.append(opened)
        elif entry.kind == EntryKind.ACTION and entry.state in ("sent", "paged"):
            self._sent(entry)

    def _sent(self, entry: Entry) -> None:
        actions = (a for i in self.engine.state.incidents for a in i.actions)
        action = next(a for a in actions if a.id == entry.subject)
        knobs = {change.name: change.value for change in action.knobs}
        self.course.done.append(Done(self.row, action.remedy, knobs, entry.text))
        if action.number and action.role == "trainer" and not action.procedure:
            ack = Ack(action.number, action.id, Ack.APPLIED, self.row.step + 1, "", knobs)
            self.answers += [Answer("trainer", rank, _life(self.row.life), ack) for rank in self.ranks]


def _life(number: int) -> str:
    return f"life-{number}"
