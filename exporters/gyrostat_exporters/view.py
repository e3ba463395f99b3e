"""View: what can be shown of a run at one moment, as plain values that any thread may read."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from gyrostat.wire import Record
from gyrostat.wire.messages import spell
from gyrostat_exporters.cases import Case
from gyrostat_exporters.experts import Loads, remember
from gyrostat_exporters.fellows import Fellows
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import SourceWord
from gyrostat_rules.needs import Heard
from gyrostat_rules.pack import Rule
from gyrostat_rules.packfile import PackError, parse
from gyrostat_rules.state import Incident, Process, State
from gyrostat_rules.theirs import Silence
from gyrostat_rules.wants import Off, heard, is_early, off

_SERIES, _RANKS, _ROLES = 96, 64, 16  # most series a rank, ranks a role and roles that are shown; cuts are counted
_ROW = re.compile(r"expert_(rho_eff|dead_share|share)/\d")  # shown as experts, of trainer rank 0
OUTCOMES = ("done", "failed", "timed out", "ineffective", "unknown")


class Rank(NamedTuple):
    """The newest values of one process. ``at`` is Unix seconds."""

    role: str
    rank: int
    step: int
    at: float
    values: dict[str, float]
    ended: str


class Standing(NamedTuple):
    """An incident that goes on, or was given up while its alerts still fire; ``why`` is what its last move said."""

    id: str
    kind: str
    state: str
    why: str
    onset: int


class Waiting(NamedTuple):
    """An action that waits: what it would do, what for, and until when (Unix seconds; infinite where none is asked)."""

    action: str
    remedy: str
    does: str
    reason: str
    until: float


class Pushed(NamedTuple):
    """How one Alertmanager (host and port) fares: alerts it took, did not take, will not get, and those that wait."""

    to: str
    sent: int = 0
    failed: int = 0
    dropped: int = 0
    waiting: int = 0
    fault: str = ""


class Exported(NamedTuple):
    """How one signal to an OTLP collector (host and port) fares: exports of metrics, log records or spans."""

    to: str
    signal: str
    sent: int = 0
    failed: int = 0
    dropped: int = 0
    waiting: int = 0
    fault: str = ""


class View(NamedTuple):
    """A run at one moment. ``blind`` names what cannot be seen now, and why; empty is what ready means.

    ``held`` are the actions that wait; ``off`` the rules that have nothing to look at,
    each with what it wants, None while it is too early to say; ``armed`` those that act in mode shadow too, each with
    its evidence or reason; ``proposed`` is the way back that waits for a person, '' where there is none; ``silences``
    those that stand or will.
    ``head`` is a turn of the journal and its hash, noted now and then, '' before the journal is open. ``cases`` are
    what Alertmanager is told and ``pushed`` how that fares, both empty where there is none; ``exported`` is
    how an OTLP collector is told. ``fellows``: how it fares
    among the agents of other nodes, None where it is alone.
    """

    run: str
    mode: str
    distrust: str
    step: int
    segment: int
    ranks: tuple[Rank, ...]
    alerts: tuple[tuple[str, str, str], ...]
    incidents: tuple[Standing, ...]
    incident_count: int
    blind: tuple[str, ...]
    cut: int
    tally: "Tally"
    held: tuple[Waiting, ...] = ()
    paused: bool = False
    off: tuple[Off, ...] | None = None
    armed: tuple[tuple[str, str], ...] = ()
    proposed: str = ""
    silences: tuple[Silence, ...] = ()
    head: str = ""
    journal_bytes: int = 0
    cases: tuple[Case, ...] = ()
    pushed: tuple[Pushed, ...] = ()
    fellows: Fellows | None = None
    exported: tuple[Exported, ...] = ()


@dataclass(slots=True)
class Tally:
    """What has been counted since this agent began."""

    records: int = 0
    turns: int = 0
    missing: int = 0
    damaged: int = 0
    steps: int = 0  # told by trainer rank 0
    began: float = 0.0  # when it first spoke, Unix seconds; 0 before
    steps_lost: float = 0.0  # by the bills of what is over
    seconds_lost: float = 0.0
    ended: Counter[tuple[str, str]] = field(default_factory=Counter)  # incidents, by kind and how they ended
    loads: Loads = ()  # the newest expert counts of trainer rank 0
    newest: tuple[int, int] = (-1, -1)  # segment and step of its newest record
    nonfinite: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    actions: Counter[tuple[str, str]] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)  # for people's words over HTTP, by what they got

    def count(self, items: Iterable[Any], entries: Iterable[Entry]) -> None:
        """Add what a pass brought."""
        for item in items:
            if isinstance(item, Record):
                self.records += 1
                if item.role == "trainer" and item.rank == 0:
                    self._trained(item)
                for name, value in item.values.items():
                    if value - value != 0.0:  # not finite
                        self.nonfinite[(item.role, str(item.rank), name, spell(value))] += 1
        for entry in entries:
            if entry.kind == EntryKind.ACTION and entry.state in ("sent", *OUTCOMES):
                self.actions[(str(entry.data.get("remedy", "")), entry.state)] += 1
            elif entry.kind == EntryKind.BILL:
                self._billed(entry)

    def _trained(self, record: Record) -> None:
        self.steps += (record.segment, record.step) != self.newest  # a step told in two records is one
        self.newest = (record.segment, record.step)
        if not self.began and math.isfinite(record.time):  # what a trainer calls time may be anything
            self.began = record.time
        if record.load is not None:
            self.loads = remember(self.loads, record.load)

    def _billed(self, entry: Entry) -> None:
        lost = entry.data.get("lost", {})
        self.ended[(str(entry.data.get("incident_kind", "")), entry.state)] += 1
        self.steps_lost += lost.get("steps") or 0
        self.seconds_lost += lost.get("seconds") or 0.0

    def copy(self) -> "Tally":
        """A copy that the loop will not change any more."""
        return replace(
            self, nonfinite=Counter(self.nonfinite), actions=Counter(self.actions),
            requests=Counter(self.requests), ended=Counter(self.ended),
        )  # fmt: skip


def view(state: State, tally: Tally, severities: dict[str, str], blind: Iterable[str]) -> View:
    """Look at the engine's state; ``severities`` maps a rule to its severity, ``blind`` is what the agent knows."""
    ranks = [Rank(p.role, p.rank, p.last_step, p.last_at, _newest(state, key), p.ended) for key, p in _shown(state)]
    cut = len(state.processes) - len(ranks) + sum(max(0, sum(not is_row(n) for n in r.values) - _SERIES) for r in ranks)
    sources = [f"{n}: {s[1]}" for n, s in state.sources.items() if s[0] not in (SourceWord.FRESH, SourceWord.DAMAGED)]
    broken = [f"rule {name} is broken: {b.why}" for name, b in state.broken.items()]
    return View(
        state.run, state.settings.mode, state.settings.distrust, state.step, state.segment,
        tuple(r._replace(values=dict(sorted(r.values.items(), key=_place)[:_SERIES])) for r in ranks),
        tuple((a.rule, severities.get(a.rule, ""), a.state) for a in state.alerts.values()),
        tuple(Standing(i.id, i.kind, i.state, i.why, i.onset) for i in state.incidents if _goes_on(state, i)),
        state.incident_count,
        (*blind, *sources, *broken), cut, tally.copy(), _held(state), state.settings.paused,
        _without_data(state), armed=tuple(sorted(state.settings.armed.items())[:_SERIES]),
        proposed=state.proposed, silences=tuple(state.silences.values()),
    )  # fmt: skip


def nothing(run: str, mode: str, blind: str) -> View:
    """What is shown before anything could be looked at, and why."""
    return View(run, mode, "", -1, 0, (), (), (), 0, (blind,), 0, Tally())


def is_row(series: str) -> bool:
    """One of the series that the engine makes for each layer, loop or expert."""
    return series.startswith("expert_") and _ROW.match(series) is not None


def _place(value: tuple[str, float]) -> tuple[bool, str]:
    """Rows of experts come last: there are many, and they must not push out the loss."""
    return is_row(value[0]), value[0]


def _without_data(state: State) -> tuple[Off, ...] | None:
    _rules(state.pack_text)  # takes 50 ms once: with the first view, when nothing is in a hurry yet
    return None if is_early(state) else _off(state.pack_text, heard(state))


@lru_cache(maxsize=4)  # a trainer tells the same names for days
def _off(pack_text: str, told: Heard) -> tuple[Off, ...]:
    return off(_rules(pack_text), told)


@lru_cache(maxsize=4)
def _rules(pack_text: str) -> tuple[Rule, ...]:
    try:
        return parse(pack_text).rules if pack_text else ()
    except PackError:  # another version took it: the engine has no rules either until it is handed its own
        return ()


def _shown(state: State) -> list[tuple[str, Process]]:
    """Trainers first, then the other roles; of each its first ranks: many GPUs must not hide the one that trains."""
    order = sorted(state.processes.items(), key=lambda each: (each[1].role != "trainer", each[1].role, each[1].rank))
    ranks: Counter[str] = Counter()
    shown = []
    for key, process in order:
        ranks[process.role] += 1
        if ranks[process.role] <= _RANKS and len(ranks) <= _ROLES:
            shown.append((key, process))
    return shown


def _held(state: State) -> tuple[Waiting, ...]:
    last = [(i, i.actions[-1]) for i in state.incidents if i.state == "held" and i.actions]
    return tuple(
        Waiting(a.id, a.remedy, a.explanation, a.reason, i.held_until)
        for i, a in last
        if a.verdict == "hold" and not a.number
    )


def _goes_on(state: State, incident: Incident) -> bool:
    """Open, or given up while its alerts still fire: what nobody mends any more must not look mended."""
    return incident.open or (incident.state == "stopped" and any(key in state.alerts for key in incident.alerts))


def _newest(state: State, key: str) -> dict[str, float]:
    return {n: w.values[-1] for n, w in state.windows.get(key, {}).items() if w.values}
