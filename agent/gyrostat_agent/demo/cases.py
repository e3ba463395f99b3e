"""Cases: the incidents of a run and what was done about each, as its entries tell them."""

from dataclasses import dataclass, field
from typing import Any

from gyrostat.wire import Directive, MessageError
from gyrostat_rules.entries import Entry, EntryKind

_OUTCOMES = ("done", "failed", "timed out", "ineffective", "unknown")


@dataclass(slots=True)
class Deed:
    """One action, or a rung that was passed by. ``rung`` counts from 1; steps are -1 where there was none.

    ``back_to``: the step that the run went back to. ``knobs``: names of those that were turned.
    """

    rung: int
    remedy: str
    verdict: str = ""
    outcome: str = ""
    applied_step: int = -1
    ended_step: int = -1
    back_to: int = -1
    knobs: tuple[str, ...] = ()

    @property
    def landed(self) -> int:
        """The step from which what it did can be seen."""
        return self.applied_step if self.back_to < 0 else min(self.applied_step, self.back_to)


@dataclass(slots=True)
class Case:
    """One incident; steps are -1 where there was none (yet)."""

    kind: str
    state: str
    onset_step: int
    fired_step: int
    resolved_step: int = -1
    opened_at: float = 0.0
    resolved_at: float = 0.0
    deeds: dict[str, Deed] = field(default_factory=dict)


def note(cases: dict[str, Case], entry: Entry) -> None:
    """Take an entry into the cases."""
    if entry.kind == EntryKind.INCIDENT:
        _note_incident(cases, entry)
    elif entry.kind == EntryKind.ACTION:
        case = cases.get(entry.subject.rpartition(".")[0]) or _early(cases, entry)
        _note_action(case, entry)


def facts(case: Case) -> dict[str, Any]:
    """The case as ``--json`` shows it; a step that there was not is null."""
    return {
        "kind": case.kind,
        "onset_step": case.onset_step,
        "fired_step": case.fired_step,
        "resolved_step": case.resolved_step if case.resolved_step >= 0 else None,
        "actions": [
            {
                "rung": d.rung,
                "remedy": d.remedy,
                "verdict": d.verdict,
                "outcome": d.outcome,
                "applied_step": d.applied_step if d.applied_step >= 0 else None,
            }
            for d in case.deeds.values()
        ],
    }


def _note_incident(cases: dict[str, Case], entry: Entry) -> None:
    kind, onset = str(entry.data.get("incident_kind", "")), int(entry.data.get("onset", entry.step))
    case = cases.setdefault(entry.subject, Case(kind, "", onset, int(entry.data.get("fired_step", entry.step))))
    case.kind, case.onset_step, case.state = kind, onset, entry.state
    case.opened_at = case.opened_at or entry.at
    case.resolved_step, case.resolved_at = (entry.step, entry.at) if entry.state == "resolved" else (-1, 0.0)


def _early(cases: dict[str, Case], entry: Entry) -> Case:
    """The case of an action whose incident has not been told of: the journal was read from its middle."""
    return cases.setdefault(entry.subject.rpartition(".")[0], Case("", "", entry.step, entry.step))


def _note_action(case: Case, entry: Entry) -> None:
    data = entry.data
    deed = case.deeds.setdefault(entry.subject, Deed(int(data.get("rung", 0)) + 1, str(data.get("remedy", ""))))
    deed.verdict = str(data.get("verdict") or deed.verdict)
    if "by" in data:  # a rank's answer, not what came of it
        if entry.state == "applied":
            _note_applied(deed, entry)
    elif entry.state == "sent":
        deed.knobs = _knobs(entry)
    elif entry.state in _OUTCOMES:
        deed.outcome, deed.ended_step = entry.state, entry.step
    elif entry.state == "paged":
        deed.outcome = "done"


def _knobs(entry: Entry) -> tuple[str, ...]:
    """The names of the knobs that a directive turns; none where it cannot be read, which is another's matter."""
    try:
        directive = Directive.decode(str((entry.data.get("orders") or {}).get("directive", "")).encode())
    except MessageError:
        return ()
    return tuple(change.name for change in directive.knobs)


def _note_applied(deed: Deed, entry: Entry) -> None:
    """A rollback's answer tells the step that it went back to; a restart's own step is that one."""
    deed.applied_step = entry.step
    back = (entry.data.get("detail") or {}).get("step")
    deed.back_to = back if isinstance(back, int) else entry.step if deed.remedy == "restart" else -1
