"""Page: the report as one HTML file that opens offline, each incident folded, its curves drawn when it is unfolded.

Everything that comes out of a run is escaped, as text and as JSON, and kept from turning the text around it. The page
loads nothing, and its own policy lets no script run but the two that are in it, by their digests.
"""

import base64
import hashlib
import json
import math
from collections.abc import Collection, Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from gyrostat_agent.report import tally
from gyrostat_agent.report.case import Case, alternatives, checkpoints, timeline
from gyrostat_agent.report.markdown import clock, evidence, title
from gyrostat_agent.report.onset import Curve
from gyrostat_agent.report.plain import plain
from gyrostat_agent.report.postmortem import PostMortem, Told

_RULES = ("rule", "severity", "fired", "of that muted", "first step", "last step")


def page(found: PostMortem) -> str:
    """The page's HTML."""
    here, chart = files(__package__), files("gyrostat_agent.diagnose") / "uplot"
    code = (chart / "uPlot.iife.min.js").read_text(encoding="utf-8")
    draw = (here / "draw.js").read_text(encoding="utf-8")
    run = plain(found.history.run)
    text = Template((here / "page.html").read_text(encoding="utf-8")).substitute(
        title=escape(f"Incident {found.told[0].case.id} of run {run}" if found.alone else f"Incidents of run {run}"),
        cut="".join(f"<p class=\"soft\">Left out: {_shown(said)}.</p>" for said in found.cut),
        run="" if found.alone else _run(found), cases="\n".join(_case(found, one) for one in found.told),
        data=_data(found), hashes=f"{_hash(code)} {_hash(draw)}", chart_code=code, draw_code=draw,
        chart_style=(chart / "uPlot.min.css").read_text(encoding="utf-8"),
    )  # fmt: skip
    return text.encode("utf-8", "replace").decode()  # a path need not be text


def _run(found: PostMortem) -> str:
    rows = tally.rows(found.history)
    spoken = tally.rules(found.history)
    return (
        _facts(tally.facts(found.history))
        + "<h2>Incidents</h2>"
        + (_table(tally.HEAD, rows, links={one.case.id for one in found.told}) if rows else "<p>None.</p>")
        + (f"<details><summary>Alerts by rule</summary>{_table(_RULES, spoken)}</details>" if spoken else "")
    )


def _case(found: PostMortem, one: Told) -> str:
    case = one.case
    parts = [
        f"<p>{_shown(case.why)}</p>",
        f"<p>{_shown(case.circumstances)}</p>" if case.circumstances else "",
        f'<h3>Bill</h3>{_bill(case)}',
        _curves(one),
        _decision(case),
        f"<h3>Evidence</h3>{_facts(evidence(case))}" if case.evidence else "",
        f'<p class="soft">Runbook: {_shown(case.runbook)}</p>' if case.runbook else "",
        f"<h3>Timeline</h3>{_timeline(case)}",
    ]  # fmt: skip
    opened = " open" if found.alone or len(found.told) == 1 else ""
    mark = escape("open" if case.open else case.state)
    summary = f"<summary>{_shown(title(case))}</summary>"
    return f'<details class="case {mark}" id="{escape(case.id)}"{opened}>{summary}{"".join(parts)}</details>'


def _bill(case: Case) -> str:
    if case.bill is None:
        return f"<p>{'Not over yet.' if case.open else 'None: an older version closed it.'}</p>"
    return _facts(tally.bill_lines(case.bill))


def _curves(one: Told) -> str:
    if not one.curves:
        return ""
    said = (
        "Vertical lines: onset (solid), firing (dashed), end (green). Grey: steps that the run went back over. A cross "
        "is a value that is not finite. Drag to zoom, double-click to go back."
    )
    place = f'<div class="curves" data-case="{escape(one.case.id)}"></div>'
    return f'<h3>Around the onset</h3><p class="soft">{said}</p>{place}'


def _decision(case: Case) -> str:
    tried = "".join(
        f"<li>{_shown(a.remedy)}: {_shown(a.fate)}{': ' + _shown(a.reason) if a.reason else ''}</li>"
        for a in alternatives(case)
    )
    looked = "".join(f"<li>{_shown(said)}</li>" for said in checkpoints(case))
    return (f"<h3>Decision</h3><ol>{tried}</ol>" if tried else "") + (
        f"<p>Checkpoints:</p><ul>{looked}</ul>" if looked else ""
    )


def _timeline(case: Case) -> str:
    lines = ((clock(line.at), str(line.step), line.word, line.text) for line in timeline(case))
    return f'<div class="times">{_table(("time", "step", "what", ""), lines)}</div>'


def _data(found: PostMortem) -> str:
    """Curves and marks; a ``<`` in a name must not end the script, and JSON has no NaN."""
    drawn = {one.case.id: {"marks": _marks(one.case), "curves": [_curve(c) for c in one.curves]}
             for one in found.told if one.curves}  # fmt: skip
    text = json.dumps(drawn, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _marks(case: Case) -> list[dict[str, Any]]:
    marks = [{"step": case.onset, "kind": "onset"}, {"step": case.fired_step, "kind": "fired"}]
    closed = (case.bill or {}).get("closed_step")
    return [*marks, {"step": closed, "kind": "closed"}] if closed is not None else marks


def _curve(curve: Curve) -> dict[str, Any]:
    parts = [{"segment": s.segment, "undone": s.undone, "steps": list(s.steps),
              "values": [float(f"{v:.5g}") if math.isfinite(v) else None for v in s.values],
              "odd": [step for step, v in zip(s.steps, s.values, strict=True) if not math.isfinite(v)]}
             for s in curve.stretches]  # fmt: skip
    return {"name": plain(curve.name), "parts": parts}


def _facts(found: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><th>{_shown(label)}</th><td>{_shown(said)}</td></tr>" for label, said in found)
    return f'<table class="facts">{rows}</table>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], links: Collection[str] = ()) -> str:
    """A table of plain cells; what is in ``links`` leads to the incident of that name."""

    def cell(said: str) -> str:
        return f'<a href="#{escape(said)}">{_shown(said)}</a>' if said in links else _shown(said)

    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell(said)}</td>" for said in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def _shown(said: object) -> str:
    """Escaped; what is written from right to left turns nothing but itself."""
    text = plain(said)
    return escape(text) if text.isascii() else f"<bdi>{escape(text)}</bdi>"


def _hash(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
