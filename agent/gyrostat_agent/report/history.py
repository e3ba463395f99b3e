"""History: what a run's journal holds for its report, read in one pass, while an agent may be writing it.

Not promised: a story of every incident. Of very many, the newest are told in full and all are counted.
"""

import contextlib
import os
from dataclasses import dataclass, field

from gyrostat.wire import Hello, Record, RunDirectory
from gyrostat_agent.errors import DistrustError
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.report.case import Case, note, opened
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import Batch, Command

TOLD = 200  # incidents, the newest, whose story is told; of the others a row
_EDGE = 300  # turns at either end that are read for the run's name and its steps
_KINDS = (
    EntryKind.ALERT, EntryKind.INCIDENT, EntryKind.ACTION, EntryKind.BILL, EntryKind.COMMAND, EntryKind.RUN,
)  # fmt: skip
_OWN = (EntryKind.INCIDENT, EntryKind.ACTION, EntryKind.BILL)
_SETTINGS = ("configure", "ledger", "distrust")  # said by the agent itself, at its start


@dataclass(slots=True)
class Spoken:
    """How often a rule fired, of that muted, and on which steps first and last."""

    severity: str
    fired: int = 0
    muted: int = 0
    first: int = -1
    last: int = -1


@dataclass(slots=True)
class History:
    """A run. ``deeds``: directives that were sent, without those that took one back; ``words``: people's commands.

    ``lost_stories``: incidents that are counted and no longer told. ``fired`` and ``standing``: the alerts that fire
    and the incidents that are open, as far as it has been read.
    """

    path: str
    run: str = ""
    first_at: float = 0.0
    last_at: float = 0.0
    first_step: int = -1
    last_step: int = -1
    cases: dict[str, Case] = field(default_factory=dict)
    rules: dict[str, Spoken] = field(default_factory=dict)
    deeds: int = 0
    words: int = 0
    lost_stories: int = 0
    fired: dict[str, Entry] = field(default_factory=dict)
    standing: dict[str, Case] = field(default_factory=dict)


def gather(run: RunDirectory, journal: Journal) -> History:
    """Read it; raises DistrustError where the journal cannot be read."""
    found = History(run.path, os.path.basename(run.path))
    try:
        for entry in journal.entries(kinds=_KINDS):
            _take(found, entry)
        _edges(found, journal)
    except JournalError as error:
        raise DistrustError(str(error)) from None
    return found


def steps_told(found: History) -> int:
    """Steps that the trainer told: those that stand, and those that bills say it went back over."""
    stand = found.last_step - found.first_step + 1 if found.last_step >= 0 else 0
    undone = sum(int((c.bill or {}).get("lost", {}).get("undone", 0)) for c in found.cases.values())
    return stand + undone


def _take(found: History, entry: Entry) -> None:
    found.first_at, found.last_at = found.first_at or entry.at, max(found.last_at, entry.at)
    if entry.kind == EntryKind.ALERT:
        _take_alert(found, entry)
    elif entry.kind in _OWN:
        _take_own(found, entry)
    elif entry.kind == EntryKind.COMMAND:
        _take_word(found, entry)
    else:
        for case in found.standing.values():
            case.add(entry)


def _take_alert(found: History, entry: Entry) -> None:
    key, muted = entry.subject, entry.data.get("muted_by", "")
    if entry.state == "firing":
        name = key.partition("{")[0]
        spoken = found.rules.setdefault(name, Spoken(str(entry.data.get("severity", "")), first=entry.step))
        spoken.fired, spoken.muted = spoken.fired + 1, spoken.muted + bool(muted)
        spoken.last = entry.step
        found.fired[key] = entry
    for case in found.standing.values():
        consequence = entry.state == "firing" and muted and (muted == case.id or muted in case.alerts)
        if key in case.alerts or consequence:
            case.add(entry)
        if key in case.alerts:
            case.alerts[key] = case.alerts[key] or entry
    if entry.state == "resolved":
        found.fired.pop(key, None)


def _take_own(found: History, entry: Entry) -> None:
    name = entry.subject.partition(".")[0]
    case = found.cases.get(name)
    if case is None:
        case = found.cases[name] = found.standing[name] = opened(entry)
        _let_go(found)
    before = set(case.alerts)
    note(case, entry)
    if not case.open:
        found.standing.pop(name, None)
    for key in case.alerts.keys() - before:
        if (alert := found.fired.get(key)) is not None:
            case.alerts[key] = alert
            case.add(alert)
        for muted in found.fired.values():
            if muted.data.get("muted_by") == key:
                case.add(muted)
    if entry.kind == EntryKind.ACTION and entry.state == "sent" and entry.data.get("remedy") != "undo":
        found.deeds += 1


def _take_word(found: History, entry: Entry) -> None:
    if entry.subject in _SETTINGS:
        return
    found.words += 1
    action = str((entry.data.get("arguments") or {}).get("action", ""))
    named = found.cases.get(action.partition(".")[0])
    for case in [named] if named else found.standing.values():
        case.add(entry)


def _let_go(found: History) -> None:
    """Forget the story of the oldest that is over, where more are held than are told."""
    if len(found.cases) - found.lost_stories > TOLD:
        old = next((c for c in found.cases.values() if not c.open and c.entries), None)
        if old is not None:
            old.entries, old.acts, old.alerts = [], [], {}
            found.lost_stories += 1


def _edges(found: History, journal: Journal) -> None:
    """The run's name, and its first and last step; inputs that are kept no longer are done without."""
    newest = int(journal.head().partition(":")[0])
    with contextlib.suppress(JournalError):
        for turn in journal.turns():
            found.first_at = min(found.first_at or turn.at, turn.at)
            if turn.seq > _EDGE or (_name(found, turn.given) and found.first_step >= 0):
                break
            if found.first_step < 0:
                found.first_step = min(_steps(turn.given), default=-1)
    with contextlib.suppress(JournalError):
        for turn in journal.turns(max(0, newest - _EDGE)):
            found.last_at = max(found.last_at, turn.at)
            found.last_step = max([found.last_step, *_steps(turn.given)])


def _name(found: History, given: object) -> bool:
    """Take the run's name where it is said; true once a trainer has said it."""
    if isinstance(given, Command) and given.arguments.get("run"):
        found.run = str(given.arguments["run"])
    hello = [i for i in given.items if isinstance(i, Hello)] if isinstance(given, Batch) else []
    found.run = (hello[0].run if hello else "") or found.run
    return bool(hello)


def _steps(given: object) -> list[int]:
    items = given.items if isinstance(given, Batch) else ()
    return [i.step for i in items if isinstance(i, Record) and i.role == "trainer"]
