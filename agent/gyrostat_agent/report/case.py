"""Case: one incident as its entries tell it, from the alert to the bill."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gyrostat_rules.entries import Entry, EntryKind

MOST = 120  # entries kept at either end of an incident's story: one that is held for weeks has no end of them
_JOINED = re.compile(r"^(.*?) (?:joins|leads): ", re.DOTALL)
_LOOKED = re.compile(r"^step -?\d+ (?:chosen|not): ")
_TRIED = ("planned", "passed by")
_WORDS = {
    (EntryKind.INCIDENT, "open"): "incident", (EntryKind.ACTION, "planned"): "planned",
    (EntryKind.ACTION, "hold"): "held", (EntryKind.ACTION, "deny"): "denied", (EntryKind.COMMAND, "said"): "person",
}  # fmt: skip


class Line(NamedTuple):
    """One line of the timeline. ``at`` is Unix seconds, ``word`` what happened, in one word or two."""

    at: float
    step: int
    word: str
    text: str


class Alternative(NamedTuple):
    """A rung that was looked at; ``fate``: sent, planned, held or passed by, with its reason."""

    remedy: str
    fate: str
    reason: str


@dataclass(slots=True)
class Case:
    """An incident; ``closed_at`` is None while it is open. ``turn``: the journal's, in which it opened."""

    id: str
    kind: str
    turn: int
    opened_at: float
    onset: int
    fired_step: int
    state: str = ""
    why: str = ""
    closed_at: float | None = None
    closed_turn: int = 0
    runbook: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    circumstances: str = ""
    alerts: dict[str, Entry | None] = field(default_factory=dict)
    bill: Mapping[str, Any] | None = None
    billed: str = ""
    acts: list[Entry] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    cut: int = 0

    @property
    def open(self) -> bool:
        """True until it is resolved or stopped."""
        return self.state not in ("resolved", "stopped")

    def add(self, entry: Entry) -> None:
        """One more of its entries; of very many the first and the last are kept."""
        self.entries.append(entry)
        if len(self.entries) > 2 * MOST:
            del self.entries[MOST]
            self.cut += 1


def opened(entry: Entry) -> Case:
    """The case that an incident's first entry begins."""
    onset = int(entry.data.get("onset", entry.step))
    kind = str(entry.data.get("incident_kind", ""))
    return Case(entry.subject, kind, turn_of(entry), entry.at, onset, int(entry.data.get("fired_step", entry.step)))


def turn_of(entry: Entry) -> int:
    """The number of the turn that an entry was written in."""
    digits = entry.id.partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def note(case: Case, entry: Entry) -> None:
    """Take in an entry of the incident itself, of one of its actions, or its bill."""
    case.add(entry)
    if entry.kind == EntryKind.ACTION:
        case.acts = [*case.acts[:MOST], entry]
    elif entry.kind == EntryKind.BILL:
        case.bill, case.billed = entry.data, entry.text
    elif entry.kind == EntryKind.INCIDENT:
        _note_incident(case, entry)


def timeline(case: Case) -> Iterator[Line]:
    """What happened, in order."""
    for entry in sorted(case.entries, key=_order):
        if entry.kind == EntryKind.ALERT:
            yield _alert_line(entry)
            continue
        word = "bill" if entry.kind == EntryKind.BILL else _WORDS.get((entry.kind, entry.state), entry.state)
        who = f"{entry.subject} " if entry.kind == EntryKind.ACTION else ""
        yield Line(entry.at, entry.step, word, f"{who}{entry.text}")


def alternatives(case: Case) -> list[Alternative]:
    """Every rung that was looked at, in order, and what became of it."""
    found: dict[str, Alternative] = {}
    for entry in case.acts:
        remedy = str(entry.data.get("remedy", ""))
        text = entry.text.partition(": ")[2] or entry.text
        if entry.state in (*_TRIED, "hold", "deny", "sent", "paged"):
            fate = {"hold": "held", "deny": "denied"}.get(entry.state, entry.state)
            found[entry.subject] = Alternative(remedy, fate, "" if fate in ("sent", "planned") else text)
        elif "by" not in entry.data and (known := found.get(entry.subject)):
            found[entry.subject] = known._replace(fate=f"{known.fate}, {entry.state}", reason=text)
    return list(found.values())


def checkpoints(case: Case) -> list[str]:
    """A sentence for each checkpoint that was looked at: the one chosen first, then why each newer one was not."""
    pieces: list[str] = []
    for entry in case.acts:
        if entry.state in _TRIED and entry.data.get("remedy") in ("rollback", "restart"):
            found = _sentences(entry.text)
            pieces = found or pieces
    return pieces


def _alert_line(entry: Entry) -> Line:
    muted = entry.data.get("muted_by")
    said = entry.text.partition(": ")[2]
    text = f"{entry.subject}: {said}" + (f" (muted by {muted})" if muted else "")
    return Line(entry.at, entry.step, f"alert {entry.state}", text)


def _order(entry: Entry) -> tuple[int, int]:
    """By turn, and by the place in it."""
    place = entry.id.rpartition(".")[2]
    return turn_of(entry), int(place) if place.isdecimal() else 0


def _note_incident(case: Case, entry: Entry) -> None:
    data = entry.data
    case.kind = str(data.get("incident_kind", case.kind))
    case.onset = int(data.get("onset", case.onset))
    if data.get("circumstances"):
        case.circumstances = entry.text
        return
    for key in data.get("alerts", ()):
        case.alerts.setdefault(str(key), None)
    case.runbook = str(data.get("runbook", case.runbook))
    case.evidence = data.get("evidence", case.evidence)
    if found := _JOINED.match(entry.text):
        case.alerts.setdefault(found[1], None)
        return
    case.state, case.why = entry.state, entry.text.removeprefix(f"{case.kind}: ")
    if not case.open:
        case.closed_at, case.closed_turn = entry.at, turn_of(entry)


def _sentences(text: str) -> list[str]:
    """The parts of a plan that are about checkpoints; a reason may have a semicolon of its own."""
    found: list[str] = []
    for piece in re.split(r"; |: (?=step -?\d)", text):
        if _LOOKED.match(piece):
            found.append(piece)
        elif found:
            found[-1] += f"; {piece}"
    return found
