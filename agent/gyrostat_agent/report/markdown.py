"""Markdown: the report as text, for a terminal, a ticket or a wiki; curves as one line of characters each."""

import time
from collections.abc import Iterable, Iterator, Sequence

from gyrostat_agent.demo.strokes import Strokes, span_of, sparkline
from gyrostat_agent.report import tally
from gyrostat_agent.report.case import Case, alternatives, checkpoints, timeline
from gyrostat_agent.report.onset import Curve
from gyrostat_agent.report.plain import markdown as safe
from gyrostat_agent.report.plain import plain
from gyrostat_agent.report.postmortem import PostMortem, Told
from gyrostat_rules.snapshot import to_plain

_WIDTH = 64  # characters of a curve


def document(found: PostMortem, strokes: Strokes) -> str:
    """The whole of it."""
    return "\n".join([*_head(found), *(line for one in found.told for line in _case(found, one, strokes))]) + "\n"


def _head(found: PostMortem) -> Iterator[str]:
    history = found.history
    what = f"Incident {found.told[0].case.id} of run" if found.alone else "Run"
    yield f"# {what} {safe(history.run)}"
    yield ""
    if found.alone:
        yield from (f"- {safe(said)}" for said in found.cut)
        return
    yield from (f"- **{label}**: {safe(said)}" for label, said in tally.facts(history))
    yield from (f"- left out: {safe(said)}" for said in found.cut)
    yield from ("", "## Incidents", "")
    rows = tally.rows(history)
    yield from table(tally.HEAD, rows) if rows else ("None.",)
    if history.rules:
        yield from ("", "## Alerts by rule", "")
        yield from table(
            ("rule", "severity", "fired", "of that muted", "first step", "last step"), tally.rules(history)
        )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of plain cells."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(safe, row))} |" for row in rows)


def title(case: Case) -> str:
    """``i0001 nonfinite, resolved: onset at step 21``."""
    state = case.state if not case.open else f"{case.state}, not over"
    return f"{case.id} {case.kind}, {state}: onset at step {case.onset}, fired at step {case.fired_step}"


def clock(at: float) -> str:
    """The time of day, of this machine's zone; the seconds themselves where no calendar has them."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    except (OverflowError, OSError, ValueError):
        return f"{at:.0f}"


def _case(found: PostMortem, one: Told, strokes: Strokes) -> Iterator[str]:
    case, level = one.case, "##" if found.alone else "###"
    yield from ("", f"## {safe(title(case))}", "", safe(case.why))
    if case.circumstances:
        yield from ("", safe(case.circumstances))
    yield from ("", f"{level} Bill", "")
    if case.bill is None:
        yield "Not over yet." if case.open else "None: an older version closed it."
    else:
        yield from (f"- **{label}**: {safe(said)}" for label, said in tally.bill_lines(case.bill))
    yield from _decision(case, level)
    yield from _evidence(case, level)
    if one.curves:
        yield from ("", f"{level} Around the onset", "", "```")
        yield from (_drawn(curve, strokes) for curve in one.curves)
        yield "```"
    yield from ("", f"{level} Timeline", "")
    lines = ((clock(line.at), str(line.step), line.word, line.text) for line in timeline(case))
    yield from table(("time", "step", "what", ""), lines)


def _decision(case: Case, level: str) -> Iterator[str]:
    tried = alternatives(case)
    if not tried:
        return
    yield from ("", f"{level} Decision", "")
    yield from (f"1. {safe(a.remedy)}: {safe(a.fate)}{': ' + safe(a.reason) if a.reason else ''}" for a in tried)
    looked = checkpoints(case)
    if looked:
        yield from ("", "Checkpoints:", "")
        yield from (f"- {safe(said)}" for said in looked)


def _evidence(case: Case, level: str) -> Iterator[str]:
    if case.evidence:
        yield from ("", f"{level} Evidence", "")
        yield from (f"- {safe(name)}: {safe(said)}" for name, said in evidence(case))
    if case.runbook:
        yield from ("", f"Runbook: {safe(case.runbook)}")


def evidence(case: Case) -> list[tuple[str, str]]:
    """What the incident opened on, by name."""
    return [(str(name), _said(value)) for name, value in case.evidence.items()]


def _said(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_said(v)}" for k, v in value.items())
    return str(to_plain(value)) if isinstance(value, (list, tuple)) else str(value)


def _drawn(curve: Curve, strokes: Strokes) -> str:
    """Its last stretches in one line; a bar where the run went back."""
    low, high = span_of([v for s in curve.stretches for v in s.values])
    parts, left = [], _WIDTH
    for stretch in reversed(curve.stretches):
        many = min(left, len(stretch.values))
        if many > 0:
            parts.append(sparkline(strokes, stretch.values, many, (low, high)))
        left -= many
    steps = [step for stretch in curve.stretches for step in stretch.steps]
    line = "|".join(reversed(parts))
    name = plain(curve.name).replace("`", "'")
    return f"{line}  {name}: {low:.4g} to {high:.4g}, steps {min(steps)} to {max(steps)}" if steps else name
