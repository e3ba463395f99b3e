"""Tally: a run's incidents in rows, and what they come to together."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat_agent.report.case import Case
from gyrostat_agent.report.history import History, steps_told
from gyrostat_agent.report.plain import duration
from gyrostat_rules.bill import span, steps

ROWS = 1000  # incidents in the table, the newest
HEAD = ("incident", "kind", "onset", "seen after", "repaired after", "lost", "actions", "outcome")


class Rate(NamedTuple):
    """``per_thousand`` steps told; None where fewer than one was."""

    deeds: int
    steps: int
    per_thousand: float | None


def rows(found: History) -> list[tuple[str, ...]]:
    """A row for each incident, oldest first."""
    return [_row(case) for case in list(found.cases.values())[-ROWS:]]


def facts(found: History) -> list[tuple[str, str]]:
    """What the run came to, as label and sentence."""
    cases = list(found.cases.values())
    rate = interventions(found)
    outcomes = Counter("open" if case.open else case.state for case in cases)
    kinds = Counter(case.kind for case in cases)
    gone, seconds, unknown = lost(found)
    return [
        ("run", found.run),
        ("steps", f"{rate.steps} told, {max(0, found.first_step)} to {found.last_step}" if rate.steps else "none told"),
        ("time", duration(max(0.0, found.last_at - found.first_at))),
        ("incidents", _counted(outcomes) or "none"),
        ("kinds", _counted(kinds) or "none"),
        ("lost", f"{steps(gone)}, {duration(seconds)}" + (f", of {unknown} incidents no time" if unknown else "")),
        ("interventions", _rate(rate) + f"; {found.words} words of people"),
        ("warnings", f"{sum(s.fired for s in found.rules.values())} alerts of {len(found.rules)} rules"),
    ]  # fmt: skip


def interventions(found: History) -> Rate:
    """Directives sent, for each thousand steps told."""
    told = steps_told(found)
    return Rate(found.deeds, told, 1000.0 * found.deeds / told if told else None)


def lost(found: History) -> tuple[int, float, int]:
    """Steps, seconds, and of how many bills the seconds are unknown."""
    bills = [case.bill["lost"] for case in found.cases.values() if case.bill and "lost" in case.bill]
    seconds = [bill.get("seconds") for bill in bills]
    return sum(int(b.get("steps", 0)) for b in bills), sum(s for s in seconds if s is not None), seconds.count(None)


def rules(found: History) -> list[tuple[str, ...]]:
    """Rule, severity, fired, muted, first and last step; the most frequent first."""
    told = sorted(found.rules.items(), key=lambda item: (-item[1].fired, item[0]))
    return [(name, s.severity, str(s.fired), str(s.muted), str(s.first), str(s.last)) for name, s in told[:ROWS]]


def bill_lines(bill: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A bill as label and sentence."""
    lines = [("seen", _took(bill.get("detection"), "after the onset"))]
    reaction, repair = bill.get("reaction"), bill.get("repair")
    held = f", of that held {duration(reaction['held_seconds'])}" if reaction and reaction["held_seconds"] else ""
    lines.append(("acted", _took(reaction, "after it fired") + held if reaction else "nothing was done to the run"))
    if would := bill.get("would"):
        undone = would.get("undone")
        back = f", back over {steps(undone)}" if undone is not None else ""
        lines.append(("would have", f"{would['remedy']}: {would['explanation']}{back}; not done: {would['held']}"))
    lines.append(("proved", _took(repair, "after the first directive") if repair else "no"))
    lines += [("lost", _lost(bill.get("lost") or {})), ("actions", _actions(bill))]
    untreated, saved = bill.get("untreated") or {}, bill.get("saved") or {}
    lines.append(("doing nothing", f"{span(untreated.get('low'), untreated.get('high'))} lost"))
    lines.append(("how sure", f"{untreated.get('sure', 'unknown')}: {untreated.get('why', '')}"))
    return [*lines, ("saved", span(saved.get("low"), saved.get("high")))] if bill.get("actions") else lines


def _row(case: Case) -> tuple[str, ...]:
    bill = case.bill or {}
    detection, gone = bill.get("detection") or {}, bill.get("lost") or {}
    repair = bill.get("repair") or {}
    acts = [a["remedy"] for a in bill.get("actions", ())] or [
        a.data.get("remedy") for a in case.acts if a.state == "sent"
    ]
    cost = f"{steps(gone['steps'])}, {duration(gone.get('seconds'))}" if gone else "-"
    return (
        case.id, case.kind, str(case.onset), f"{detection.get('steps', '-')} steps",
        duration(repair.get("seconds")), cost, ", ".join(map(str, acts)) or "none",
        case.state if not case.open else f"{case.state}, not over",
    )  # fmt: skip


def _took(found: Mapping[str, Any] | None, since: str) -> str:
    return f"{steps(found['steps'])}, {duration(found.get('seconds'))} {since}" if found else "not known"


def _lost(found: Mapping[str, Any]) -> str:
    many = found.get("items")
    items = f"; {many} item{'' if many == 1 else 's'} of data passed over" if many else ""
    how = f"{found.get('undone', 0)} gone back over, {found.get('not_applied', 0)} not applied"
    how += f", {found['spoilt']} on a bad update" if found.get("spoilt") else ""
    silent, whole = duration(found.get("dead_seconds", 0.0)), duration(found.get("seconds"))
    return f"{steps(found.get('steps', 0))} ({how}) and {silent} of silence: {whole} in all{items}"


def _actions(bill: Mapping[str, Any]) -> str:
    acts = [f"{a['remedy']} ({a.get('outcome') or 'no outcome'})" for a in bill.get("actions", ())]
    back = f"; {bill['taken_back']} taken back" if bill.get("taken_back") else ""
    return f"{', '.join(acts) or 'none'}{back}"


def _rate(rate: Rate) -> str:
    each = "" if rate.per_thousand is None else f", {rate.per_thousand:.2f} for each 1,000 steps"
    return f"{rate.deeds} directive{'' if rate.deeds == 1 else 's'}{each}"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common())
