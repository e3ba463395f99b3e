"""The page: a diagnosis as one HTML file that opens offline, with its curves.

Everything that comes out of a log is escaped, as text and as JSON. The page loads nothing, and its own policy lets no
script run but the two that are in it, by their digests.
"""

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from gyrostat_agent.diagnose.findings import CRITICAL, Finding, Findings
from gyrostat_agent.diagnose.summary import coverage, headline, wasted

_FIRST = ("reward", "loss", "grad_norm", "entropy", "kl", "learning_rate", "mismatch_kl", "response_length")


def page(found: Findings) -> str:
    """The page's HTML."""
    here = files(__package__)
    code = (here / "uplot" / "uPlot.iife.min.js").read_text(encoding="utf-8")
    draw = (here / "draw.js").read_text(encoding="utf-8")
    template = Template((here / "page.html").read_text(encoding="utf-8"))
    text = template.substitute(
        title=escape(f"Diagnosis of {', '.join(source.path for source in found.sources)}"),
        facts=escape("; ".join([*(coverage(source) for source in found.sources), *wasted(found)])),
        verdict=escape(headline(found)), grave=CRITICAL if found.ill or not found.read else "",
        found="\n".join(map(_card, found.found)) or "<p>Nothing.</p>",
        sources=_table(["file", "format", "lines", "understood", "cut"],
                       [[s.path, s.error or s.form, s.lines, s.understood, s.cut] for s in found.sources]),
        names=_names(found), off=_off(found), data=_data(found), hashes=f"{_hash(code)} {_hash(draw)}",
        chart_style=(here / "uplot" / "uPlot.min.css").read_text(encoding="utf-8"), chart_code=code, draw_code=draw,
    )  # fmt: skip
    return text.encode("utf-8", "replace").decode()  # a path need not be text


def _card(one: Finding) -> str:
    at = f"began at step {one.onset_step}, seen at step {one.fired_step}" if one.onset_step >= 0 else "step unknown"
    often = f", {one.times} times" if one.times > 1 else ""
    done = f"<p>What would have been done: {escape(one.action)}.</p>" if one.action else ""
    checks = "".join(f"<li>{escape(check)}</li>" for check in one.checks)
    return (
        f'<div class="finding {escape(one.severity)}"><h3>{escape(one.kind)}</h3>'
        f'<p class="soft">{escape(one.severity)}; {at}{often}</p><p>{escape(one.why)}</p>{done}'
        + (f"<p>Look at next:</p><ol>{checks}</ol>" if checks else "")
        + "</div>"
    )


def _names(found: Findings) -> str:
    rows = [(name, to or "(its own name)") for s in found.sources for name, to in s.names.items()]
    if not rows:
        return ""
    return f"<details><summary>Names, and what they were read as</summary>{_table(['name', 'read as'], rows)}</details>"


def _off(found: Findings) -> str:
    if not found.off:
        return "<p>Every rule had its series.</p>"
    return _table(["rule", "wants, and was not told"], [[rest.alert, rest.wants] for rest in found.off])


def _data(found: Findings) -> str:
    """Curves and marks; a ``<`` in a name must not end the script, and JSON has no NaN."""
    order = [n for n in _FIRST if n in found.curves] + sorted(n for n in found.curves if n not in _FIRST)
    curves = [
        {"name": n, "steps": found.curves[n][0], "values": [_plain(v) for v in found.curves[n][1]]} for n in order
    ]
    marks: list[dict[str, Any]] = []
    for one in found.found:
        if one.severity == CRITICAL and one.onset_step >= 0:
            marks += [{"step": one.onset_step, "onset": True, "severity": one.severity},
                      {"step": one.fired_step, "onset": False, "severity": one.severity}]  # fmt: skip
    text = json.dumps({"curves": curves, "marks": marks}, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _hash(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(c))}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
