"""Machine: the report as one JSON document."""

from typing import Any

from gyrostat_agent.report import tally
from gyrostat_agent.report.case import Case, alternatives, checkpoints, timeline
from gyrostat_agent.report.postmortem import PostMortem, Told
from gyrostat_rules.snapshot import to_plain


def document(found: PostMortem) -> dict[str, Any]:
    """Lists, dicts, strings and numbers alone; what is not finite is ``{"~": "nan"}``, as in the journal's views."""
    history = found.history
    rate = tally.interventions(history)
    steps, seconds, unknown = tally.lost(history)
    out: dict[str, Any] = {
        "run": history.run, "path": history.path, "first_at": history.first_at, "last_at": history.last_at,
        "first_step": history.first_step, "last_step": history.last_step, "steps_told": rate.steps,
        "incidents": len(history.cases), "interventions": rate.deeds, "interventions_per_1000_steps": rate.per_thousand,
        "words": history.words, "lost": {"steps": steps, "seconds": seconds, "bills_without_seconds": unknown},
        "rules": {name: {"severity": s.severity, "fired": s.fired, "muted": s.muted, "first_step": s.first,
                         "last_step": s.last} for name, s in history.rules.items()},
        "left_out": list(found.cut), "told": [_told(one) for one in found.told],
    }  # fmt: skip
    if not found.alone:
        out["table"] = [dict(zip(tally.HEAD, row, strict=True)) for row in tally.rows(history)]
    plain: dict[str, Any] = to_plain(out)
    return plain


def _told(one: Told) -> dict[str, Any]:
    case: Case = one.case
    return {
        "id": case.id, "kind": case.kind, "state": case.state, "why": case.why, "onset": case.onset,
        "fired_step": case.fired_step, "opened_at": case.opened_at, "closed_at": case.closed_at,
        "circumstances": case.circumstances, "evidence": dict(case.evidence), "runbook": case.runbook,
        "alerts": list(case.alerts), "bill": dict(case.bill) if case.bill else None,
        "decision": [a._asdict() for a in alternatives(case)], "checkpoints": checkpoints(case),
        "timeline": [line._asdict() for line in timeline(case)], "entries_left_out": case.cut,
        "curves": [{"name": c.name, "merged": c.merged, "stretches": [
            {"segment": s.segment, "undone": s.undone, "steps": list(s.steps), "values": list(s.values)}
            for s in c.stretches]} for c in one.curves],
    }  # fmt: skip
