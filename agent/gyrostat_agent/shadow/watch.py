"""Watch: a run's entries read in order; where the agent would have acted an occasion opens; what comes judges it.

The first of these decides: the run died; a person intervened; the quantity was bad when the steps to come back were
over; it had come back by then. What none of them has decided when the journal ends is undecided.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from gyrostat_agent.shadow.course import Course, Led
from gyrostat_agent.shadow.occasion import Occasion, Verdict
from gyrostat_agent.shadow.steps import Steps
from gyrostat_rules.arming import OBSERVE, SHADOW
from gyrostat_rules.causes import REQUEST
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.incidents import QUIET_STEPS
from gyrostat_rules.inputs import Input, Verb

WITHIN = 50  # steps in which what is bad may come back by itself
_BY_MODE = tuple(f"hold: mode is {mode}" for mode in (OBSERVE, SHADOW))
_BY_APPROVAL = re.compile(r" hold: .*needs approval: gyrostat approve ")
_ENDS_A_LIFE = ("restart", "stop")
_NOT_SENT = ("failed", "timed out", "unknown")


@dataclass(slots=True)
class _Open:
    """An occasion that is not judged yet: ``told`` steps were told at it."""

    occasion: Occasion
    told: int
    led: Led


@dataclass(slots=True)
class _Life:
    """The trainer's rank 0: whether it has begun, how it ended ('' while it lives), whether we ordered its end."""

    begun: bool = False
    ended: str = ""
    ordered: bool = False


@dataclass(slots=True)
class Watch:
    """Reads one run; ``within`` steps are given to come back. ``names``: a short name of each rule's declaration."""

    within: int = WITHIN
    names: dict[str, str] = field(default_factory=dict)
    course: Course = field(default_factory=Course)
    steps: Steps = field(default_factory=Steps)
    judged: list[Occasion] = field(default_factory=list)
    _pending: dict[str, _Open] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _life: _Life = field(default_factory=_Life)
    _reached: int = 0
    _first_at: float = 0.0
    _moved_at: float = 0.0

    def turn(self, given: Input, entries: Iterable[Entry]) -> None:
        """Read one turn."""
        self._first_at = self._first_at or given.at
        places = self.steps.places(given)
        for entry in entries:
            # An entry's own step is counted behind it, by what it made of the run. Others may name a step that is past.
            if entry.kind in (EntryKind.ALERT, EntryKind.INCIDENT) or entry.state == "ended":
                self._reached = self.steps.reached(entry.step, places)
                self._go(self._reached - 1, given.at)
            self.course.take(entry)
            self._take(entry)
        self._go(max(places.values(), default=self.steps.told), given.at)
        self._wait(given.at)

    def close(self) -> list[Occasion]:
        """The journal ends; all occasions, in the order of their steps."""
        for one in list(self._pending.values()):
            since = self.steps.told - one.told
            ended = "the run ended" if self._life.ended else "the journal ends"
            self._judge(one, Verdict.UNDECIDED, f"{ended} {since} steps later: too early to say")
        return sorted(self.judged, key=lambda occasion: occasion.at)

    # -- what comes -----------------------------------------------------------------------------------

    def _take(self, entry: Entry) -> None:
        if entry.kind == EntryKind.ACTION:
            self._action(entry)
        elif entry.kind == EntryKind.INCIDENT:
            self._incident(entry)
        elif entry.kind == EntryKind.RUN:
            self._run(entry)
        elif entry.kind == EntryKind.ALERT and entry.state == "firing" and (knob := _turned(entry)):
            others = [one for one in self._pending.values() if entry.subject not in one.led.alerts]
            self._hand(f"{knob} was turned by hand", others)
        elif entry.kind == EntryKind.COMMAND and entry.subject == Verb.APPROVE:
            self._approved(entry)

    def _action(self, entry: Entry) -> None:
        incident, remedy = str(entry.data.get("incident", "")), str(entry.data.get("remedy", ""))
        led = self.course.incidents.get(incident)
        if led is None or led.kind == REQUEST:
            self._order(entry, remedy)
            return
        if entry.state == "hold" and (entry.text.endswith(_BY_MODE) or _BY_APPROVAL.search(entry.text)):
            self._open(incident, led, remedy, entry)
        elif entry.state == "sent" and remedy != "undo":
            self._open(incident, led, remedy, entry)
            if incident in self._pending:
                self._judge(self._pending[incident], Verdict.ACTED, f"{remedy} was done")
        self._order(entry, remedy)

    def _order(self, entry: Entry, remedy: str) -> None:
        """A trainer whose end we ordered was not stopped by a person."""
        if remedy in _ENDS_A_LIFE and entry.state == "sent":
            self._life.ordered = True
        elif remedy in _ENDS_A_LIFE and entry.state in _NOT_SENT:
            self._life.ordered = False

    def _open(self, incident: str, led: Led, remedy: str, entry: Entry) -> None:
        if incident in self._seen:
            return
        self._seen.add(incident)
        name = self.names.get(led.rule, "")
        occasion = Occasion(
            led.rule,
            incident,
            led.kind,
            remedy,
            entry.step,
            entry.at,
            name,
            "",
            "",
            self.course.cost(led, remedy, entry.step),
        )
        one = self._pending[incident] = _Open(occasion, max(self._reached, self.steps.told), led)
        if self._life.ended.startswith("died") and entry.state == "hold":
            self._judge(one, Verdict.HIT, f"the run {self._life.ended}", to_death=0)

    def _incident(self, entry: Entry) -> None:
        if entry.data.get("incident_kind") == REQUEST and entry.state == "open":
            self._hand(f"a person went back: {entry.text.partition(': ')[2]}")
        one = self._pending.get(entry.subject)
        if one is not None and entry.state == "resolved":
            since = max(self._reached, self.steps.told) - one.told
            self._judge(one, Verdict.MISS, f"over by itself {since} steps later, the last {QUIET_STEPS} of them clean")

    def _run(self, entry: Entry) -> None:
        if not entry.subject.startswith("trainer/"):
            return
        if entry.state == "ended":
            self._ended(entry)
        elif entry.state == "began" and entry.subject == "trainer/0":
            self._began(str(entry.data.get("incarnation", "")))
        elif entry.state == "turned":
            self._hand(f"{entry.data.get('knob', 'a knob')} was turned by hand")

    def _ended(self, entry: Entry) -> None:
        status = entry.data.get("status")
        ordered, self._life.ended = self._life.ordered, "ended"
        if entry.data.get("asked"):
            if not ordered:
                self._hand(f"a person stopped the run: {entry.text}")
        elif status:
            self._life.ended = f"died: {entry.text}"
            for one in list(self._pending.values()):
                since = max(self._reached, self.steps.told) - one.told
                self._judge(one, Verdict.HIT, f"the run died: {entry.text}", to_death=since)

    def _began(self, life: str) -> None:
        if self._life.begun and not self._life.ordered:
            self._hand("the run was begun again by hand")
        self._life = _Life(begun=True)
        self.steps.begin(life)

    def _approved(self, entry: Entry) -> None:
        asked = str(entry.data.get("arguments", {}).get("action"))
        one = self._pending.get(asked.partition(".")[0])
        if one is not None and f" approved {asked}" in entry.text:  # else it was refused
            self._judge(one, Verdict.HIT, f"a person approved it: {entry.text}")

    def _hand(self, what: str, of: Iterable[_Open] | None = None) -> None:
        """A person intervened: whatever waits to be judged was called for."""
        for one in list(self._pending.values() if of is None else of):
            self._judge(one, Verdict.HIT, f"a person intervened: {what}")

    # -- how far it has come --------------------------------------------------------------------------

    def _go(self, told: int, at: float) -> None:
        if told <= self.steps.told:
            return
        self.steps.go(told, healthy=self.course.healthy)
        self._moved_at = at
        for one in list(self._pending.values()):
            since = told - one.told
            if since >= self.within and self._is_bad(one):
                self._judge(one, Verdict.HIT, f"still bad {self.within} steps later")
            elif since >= self.within + QUIET_STEPS:
                self._judge(one, Verdict.MISS, f"not bad any more {self.within} steps later, and nobody intervened")

    def _wait(self, at: float) -> None:
        """A run that stands still tells no steps: so many seconds as they would have taken count for them."""
        if self.steps.told < 2:
            return
        pace = (self._moved_at - self._first_at) / self.steps.told
        for one in [o for o in self._pending.values() if o.told == self.steps.told]:
            if pace > 0.0 and at - one.occasion.at >= self.within * pace and self._is_bad(one):
                self._judge(one, Verdict.HIT, f"it stood still for as long as {self.within} steps take")

    def _is_bad(self, one: _Open) -> bool:
        return not self.course.firing.isdisjoint(one.led.own)

    def _judge(self, one: _Open, verdict: str, why: str, to_death: int | None = None) -> None:
        self._pending.pop(one.occasion.incident, None)
        self.judged.append(one.occasion._replace(verdict=verdict, why=why, to_death=to_death))


def _turned(entry: Entry) -> str:
    """The knob or learning rate that changed and nobody told it to, as the knob_drift detector has it; else ''."""
    seen = entry.data.get("evidence", {})
    return str(seen.get("knob") or seen.get("series", "")) if {"expected", "found"} <= seen.keys() else ""
