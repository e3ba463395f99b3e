"""The story: entries as short sentences for somebody who watches, each under a mark.

What repeats another entry is left out: an action that was sent says that its incident is acting, an incident
that is resolved says that its action is done.
"""

from typing import NamedTuple

from gyrostat_rules.entries import Entry, EntryKind

ALERT, INCIDENT, ACTION, OUTCOME, RUN = MARKS = ("alert", "incident", "action", "outcome", "run")
SIGNS = {ALERT: "!", INCIDENT: "#", ACTION: ">", OUTCOME: "=", RUN: "-"}

_STATES = {"open": "goes on", "probation": "on probation"}


class Line(NamedTuple):
    """A sentence of the story. ``at`` is Unix seconds, ``step`` the run's or -1 before its first."""

    at: float
    step: int
    mark: str
    text: str


def tell(entry: Entry) -> Line | None:
    """The sentence that an entry makes, or None where it adds nothing."""
    mark = _mark(entry)
    return Line(entry.at, entry.step, mark, _text(entry)) if mark else None


def _mark(entry: Entry) -> str:
    kind, state = entry.kind, entry.state
    if kind == EntryKind.ALERT:
        muted = entry.data.get("muted_by") or entry.data.get("severity") == "info"
        return ALERT if state == "firing" and not muted else ""
    if kind == EntryKind.INCIDENT:
        return {"acting": "", "probation": OUTCOME, "resolved": OUTCOME}.get(state, INCIDENT)
    if kind == EntryKind.ACTION:
        return _action_mark(state)
    if kind == EntryKind.BILL:
        return OUTCOME
    if kind == EntryKind.RULE:
        return ALERT if state == "broken" else ""
    if kind == EntryKind.SOURCE:
        return "" if state in ("fresh", "gone") else ALERT
    if kind == EntryKind.CHECKPOINT:
        rotated = entry.text.endswith("gone")  # the trainer keeps the newest few and deletes the others
        return ALERT if state == "unfit" and not rotated else ""
    return RUN


def _action_mark(state: str) -> str:
    if state in ("applied", "done"):
        return ""
    return ACTION if state in ("planned", "passed by", "hold", "deny", "sent", "paged") else OUTCOME


def _text(entry: Entry) -> str:
    if entry.kind == EntryKind.ALERT:
        return f"{entry.text} ({entry.data.get('severity', 'unknown')})"
    if entry.kind == EntryKind.INCIDENT:
        kind = str(entry.data.get("incident_kind", ""))
        what = entry.text.removeprefix(f"{kind}: ")
        if "evidence" in entry.data:  # told when it opens, and never again
            return f"{entry.subject} {kind}, onset at step {entry.data.get('onset')}: {what}"
        if "circumstances" in entry.data:
            return f"{entry.subject} at its start: {what}"
        return f"{entry.subject} {_STATES.get(entry.state, entry.state)}: {what}"
    return f"{entry.subject} {entry.text}" if entry.kind in (EntryKind.ACTION, EntryKind.BILL) else entry.text
