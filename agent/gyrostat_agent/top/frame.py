"""Frame: one screenful of a run, from what its agent shows. What the run says of itself is text, never markup."""

import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gyrostat.wire.fields import clean, spell
from gyrostat_agent.top.past import Past
from gyrostat_agent.top.spark import spark

BAD, WARN, WELL, DIM = "bold red", "yellow", "green", "dim"
_MOST = 6  # lines of one kind: what is more is counted
_EXPERTS = re.compile(r"expert_rho_eff/(\d+)/(\d+|pool)")
_NAME, _VALUE, _RANGE = 22, 10, 22


def frame(said: Mapping[str, Any], trouble: str, past: Past, width: int, *, plain: bool = False) -> RenderableType:
    """``said`` as ``gyrostat status`` reads it; ``trouble``: why that is not how it is now, or ''."""
    parts: list[RenderableType] = [_head(said, trouble, past)]
    parts += [
        Text(clean(line), style=style, overflow="ellipsis", no_wrap=True) for style, line in _lines(said, trouble)
    ]
    curves = _curves(past, max(8, width - _NAME - _VALUE - _RANGE - 4), plain=plain)
    return Group(*parts, curves, _line(_ranks(said), DIM))


def _line(line: str, style: str) -> Text:
    return Text(clean(line), style=style, overflow="ellipsis", no_wrap=True)


def _head(said: Mapping[str, Any], trouble: str, past: Past) -> Text:
    pace = f"{past.pace:.3g} s a step" if math.isfinite(past.pace) else "pace not known yet"
    well = not trouble and said.get("ready") is True
    state, style = ("well", WELL) if well else ("not watched", BAD) if trouble else ("blind", BAD)
    line = Text(clean(f"{said.get('run', '?')}  step {said.get('step', '?')}  {pace}  mode {said.get('mode', '?')}  "))
    return line.append(state, style=style)


def _lines(said: Mapping[str, Any], trouble: str) -> Iterator[tuple[str, str]]:
    """What needs somebody, the gravest first, each with its style."""
    if trouble:
        yield BAD, f"agent     {trouble}"
    if said.get("observe_only"):
        yield BAD, f"agent     observes only: {said['observe_only']}"
    if said.get("paused"):
        yield WARN, "agent     paused: nothing is done until gyrostat resume"
    yield from _few(BAD, [f"blind     {line}" for line in said.get("blind", []) if line != trouble])
    opened = said.get("open", [])
    yield from _few(
        BAD, [f"incident  {o['id']} {o['kind']}: {o['state']}, since step {o['onset']}  {o['why']}" for o in opened]
    )
    yield from _few(WARN, [f"held      {_held(one)}" for one in said.get("held", [])])
    alerts = Counter((rule, severity) for rule, severity, state in said.get("alerts", []) if state == "firing")
    yield from _few(WARN, [f"alert     {_alert(*alert)}" for alert in alerts.items()])
    if (fellows := said.get("fellows")) is not None:
        yield DIM, f"cluster   {_cluster(fellows)}"
    if not opened and not trouble:
        yield DIM, f"incidents none open, {said.get('incidents', 0)} so far"


def _few(style: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines[:_MOST]:
        yield style, line
    if len(lines) > _MOST:
        yield style, f"          and {len(lines) - _MOST} more: gyrostat status"


def _incident(one: Mapping[str, Any]) -> str:
    return f"{one['id']} {one['kind']}: {one['state']}, since step {one['onset']}  {one['why']}"


def _alert(which: tuple[str, str], count: int) -> str:
    return f"{which[0]} ({which[1]})" + (f", {count} of them" if count > 1 else "")


def _held(one: Mapping[str, Any]) -> str:
    left = ""
    if (until := one.get("until")) is not None:
        left = f"  ({max(0.0, until - time.time()) / 60:.0f} min left)"
    return f"{one['action']} {one['remedy']}: {one['reason']}{left}"


def _cluster(fellows: Mapping[str, Any]) -> str:
    """Which agent decides, and which nodes it misses."""
    if fellows.get("fault"):
        return f"node {fellows.get('node')} is cut off: {fellows['fault']}"
    if fellows.get("leads"):
        return f"decides for {1 + fellows.get('heard', 0)} nodes, {fellows.get('missing', 0)} not heard"
    return f"{fellows.get('leader') or 'nobody'} decides"


def _curves(past: Past, width: int, *, plain: bool) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(width=_NAME, no_wrap=True, overflow="ellipsis")
    table.add_column(width=_VALUE, no_wrap=True, justify="right")
    table.add_column(width=width, no_wrap=True)
    table.add_column(width=_RANGE, no_wrap=True, style=DIM)
    for name, values in past.shown():
        table.add_row(*_row(clean(name), list(values), width, plain=plain))
    if (worst := _worst(past)) is not None:
        table.add_row(*_row(*worst, width, plain=plain))
    return table


def _row(name: str, values: list[float], width: int, *, plain: bool) -> tuple[Text, Text, Text, Text]:
    finite = [v for v in values if math.isfinite(v)]
    newest = values[-1]
    style = "" if math.isfinite(newest) else BAD
    between = f"{min(finite):.3g} .. {max(finite):.3g}" if finite else "never finite"
    return Text(name), Text(_short(newest), style=style), Text(spark(values, width, plain=plain)), Text(between)


def _worst(past: Past) -> tuple[str, list[float]] | None:
    """The layer and loop that use the smallest share of their experts."""
    rows = [(values[-1], match, values) for name, values in past.series.items() if (match := _EXPERTS.fullmatch(name))]
    if not rows:
        return None
    _, match, values = min(rows, key=lambda row: (row[0], row[1][1]))
    return f"experts, layer {match[1]}/{match[2]}", list(values)


def _ranks(said: Mapping[str, Any]) -> str:
    """How many processes there are, and the slowest trainer rank."""
    alive = [r for r in said.get("ranks", []) if not r["ended"]]
    roles = sorted({r["role"] for r in alive})
    counts = ", ".join(f"{sum(r['role'] == role for r in alive)} {role}" for role in roles)
    trainers = [r for r in alive if r["role"] == "trainer" and r["step"] >= 0]
    last = min(trainers, key=lambda r: (r["step"], r["rank"]), default=None)
    slow = f"; rank {last['rank']} is at step {last['step']}" if last is not None and len(trainers) > 1 else ""
    return f"{counts or 'no process has spoken'}{slow}"


def speaker(said: Mapping[str, Any]) -> dict[str, Any] | None:
    """The trainer's rank 0, else the first of its ranks that this agent sees; None where none has told a step."""
    ranks = [r for r in said.get("ranks", []) if r["role"] == "trainer" and r["step"] >= 0]
    return min(ranks, key=lambda r: r["rank"], default=None)


def _short(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else spell(value)
