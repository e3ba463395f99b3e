"""Evidence: what a run left behind that a judge may believe: its journal, its newest checkpoint, its directives."""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from gyrostat.wire import Ack
from gyrostat_agent.demo.cases import Case, Deed, note
from gyrostat_agent.journal import Journal, JournalError, Turn
from gyrostat_agent.recovery import same
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import Answer, Batch


class Evidence(NamedTuple):
    """What the journal says. ``faults``: what in it does not add up. ``pages``: who was asked, and for what.

    ``cases`` by incident; ``distrust``: why the agent only observed, ''; ``answers``: of trainers, in order.
    """

    cases: Mapping[str, Case]
    pages: tuple[str, ...]
    distrust: str
    faults: tuple[str, ...]
    answers: tuple[Ack, ...]


def gathered(journal: Path, *, replay: bool) -> Evidence:
    """Read a journal; ``replay`` false where two versions of the rules wrote it."""
    try:
        reader = Journal(str(journal), readonly=True)
    except JournalError as error:
        return Evidence({}, (), "", (f"there is no journal: {error}",), ())
    with contextlib.closing(reader):
        verdict = reader.verify()
        faults = [] if verdict.ok else [f"the journal's chain is broken at turn {verdict.broken_at}: {verdict.why}"]
        try:
            turns = list(reader.turns())
        except JournalError as error:
            return Evidence({}, (), "", (*faults, str(error)), ())
    entries = [entry for turn in turns for entry in turn.entries]
    faults += _replayed(turns) if replay else []
    faults += _twice(turns, entries)
    cases: dict[str, Case] = {}
    for entry in entries:
        note(cases, entry)
    distrust = next((e.text for e in entries if e.kind == EntryKind.COMMAND and e.subject == "distrust"), "")
    return Evidence(cases, tuple(_pages(entries)), distrust, tuple(faults), tuple(_answers(turns)))


def done_to_the_run(case: Case) -> list[Deed]:
    """What was sent for an incident; a page does nothing to the run."""
    return [d for d in case.deeds.values() if d.verdict == "allow" and d.remedy != "page"]


def knobs(checkpoints: Path) -> Mapping[str, float]:
    """How knobs stand in the newest checkpoint that can be read; empty where there is none."""
    for folder in sorted(checkpoints.glob("step-*"), key=_when, reverse=True):
        with contextlib.suppress(OSError, ValueError, KeyError):
            return dict(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["knobs"])
    return {}


def _when(folder: Path) -> float:
    try:
        return (folder / "manifest.json").stat().st_mtime
    except OSError:
        return 0.0


def _replayed(turns: Iterable[Turn]) -> list[str]:
    engine = Engine()
    for turn in turns:
        if not same(engine.feed(turn.given), turn.entries):
            return [f"turn {turn.seq}, fed again, decides otherwise"]
    return []


def _answers(turns: Iterable[Turn]) -> list[Ack]:
    batches = [turn.given for turn in turns if isinstance(turn.given, Batch)]
    return [item.ack for batch in batches for item in batch.items if isinstance(item, Answer)]


def _twice(turns: Iterable[Turn], entries: Iterable[Entry]) -> list[str]:
    """What was done twice: a directive by one process, an action by the agent."""
    batches = [turn.given for turn in turns if isinstance(turn.given, Batch)]
    told = [item for batch in batches for item in batch.items if isinstance(item, Answer)]
    applied = Counter((i.role, i.rank, i.ack.number) for i in told if i.ack.result == Ack.APPLIED)
    begun = Counter(e.subject for e in entries if e.kind == EntryKind.ACTION and e.state == "sent")
    said = [
        f"{role} {rank} applied directive {n} {count} times" for (role, rank, n), count in applied.items() if count > 1
    ]
    return said + [f"action {name} was sent {count} times" for name, count in begun.items() if count > 1]


def _pages(entries: Iterable[Entry]) -> list[str]:
    """Each sentence that asks a person: an incident that waits, an action that is a page, distrust."""
    found = []
    for entry in entries:
        waits = entry.kind == EntryKind.INCIDENT and entry.state in ("held", "stopped")
        paged = entry.kind == EntryKind.ACTION and entry.state == "paged"
        distrusted = entry.kind == EntryKind.COMMAND and entry.subject == "distrust"
        if waits or paged or distrusted:
            found.append(f"step {entry.step}: {entry.subject} {entry.state}: {entry.text}")
    return found
