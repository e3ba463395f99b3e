"""The summary: findings as a person reads them in a terminal, and as a machine does."""

import math
from collections.abc import Iterator
from typing import Any

from gyrostat_agent.diagnose.findings import CRITICAL, Finding, Findings, Source

_EMPTY = {"tensorboard": "no numbers of TensorBoard's are in it"}


def headline(found: Findings) -> str:
    """The whole of it in a sentence."""
    if not found.read and not found.found:
        return "Nothing could be read: no line told a step"
    grave = [one for one in found.found if one.severity == CRITICAL]
    if not grave:
        more = f", {len(found.found)} to look at" if found.found else ""
        return f"Healthy{more}: {_steps(found)}"
    first = grave[0]
    at = f", from step {first.onset_step} on" if first.onset_step >= 0 else ""
    return f"Ill: {', '.join(dict.fromkeys(one.kind for one in grave))}{at}; {_steps(found)}"


def coverage(source: Source) -> str:
    """How much of a file was understood: silence must never read as clean."""
    if source.error:
        return source.error
    if not source.lines:
        return f"{source.path}: {_EMPTY.get(source.form, 'it is empty')}"
    cut = f", {source.cut} lines too long to be read whole" if source.cut else ""
    return f"{source.path}: {source.form}, read {source.understood} of {source.lines} lines{cut}"


def wasted(found: Findings) -> list[str]:
    """What the faults cost, where it is known."""
    if not found.wasted_steps:
        return []
    hours = "" if found.wasted_seconds is None else f", {found.wasted_seconds / 3600:.1f} hours of every GPU"
    return [f"wasted: {found.wasted_steps} steps{hours}"]


def lines(found: Findings) -> Iterator[str]:
    """For a terminal."""
    yield headline(found)
    yield from (f"  {line}" for source in found.sources for line in (coverage(source), *_unknown(source)))
    if found.merged > 1:
        yield f"  very long: {found.merged} steps in a row were looked at as one; what is not finite was not merged"
    for one in found.found:
        yield ""
        yield from _told(one)
    if cost := wasted(found):
        yield ""
        yield from cost
    if found.off and found.read:
        yield ""
        yield "Switched off, for want of data: " + "; ".join(f"{r.alert} ({r.wants})" for r in found.off)


def as_json(found: Findings) -> dict[str, Any]:
    """For machines."""
    forms = list(dict.fromkeys(source.form for source in found.sources if source.form))
    return {
        "format": forms[0] if len(forms) == 1 else forms or None,
        "steps": found.steps,
        "first_step": found.first_step if found.read else None,
        "last_step": found.last_step if found.read else None,
        "segments": found.segments,
        "healthy": not found.ill if found.read or found.ill else None,  # of nothing, nobody knows
        "faults": [_plain(one) for one in found.found],
        "wasted": {"steps": found.wasted_steps, "seconds": found.wasted_seconds},
        "unread": [
            {"file": s.path, "lines": s.lines, "understood": s.understood, "cut": s.cut, "error": s.error or None,
             "names": sorted(name for name, to in s.names.items() if not to)}
            for s in found.sources
        ],
        "switched_off": [rest._asdict() for rest in found.off],
        "notes": found.notes,
    }  # fmt: skip


def _plain(one: Finding) -> dict[str, Any]:
    return {
        "kind": one.kind, "severity": one.severity, "action": one.action, "why": one.why, "times": one.times,
        "onset_step": one.onset_step if one.onset_step >= 0 else None,
        "fired_step": one.fired_step if one.fired_step >= 0 else None,
        "checks": list(one.checks), "runbook": one.runbook,
    }  # fmt: skip


def _told(one: Finding) -> Iterator[str]:
    at = f"began at step {one.onset_step}, seen at step {one.fired_step}" if one.onset_step >= 0 else "step unknown"
    often = f", {one.times} times" if one.times > 1 else ""
    yield f"{one.severity}: {one.kind}, {at}{often}"
    yield f"  {one.why}"
    if one.action:
        yield f"  would have been done: {one.action}"
    for number, check in enumerate(one.checks, 1):
        yield f"  look at {number}: {check}"


def _unknown(source: Source) -> list[str]:
    names = sorted(name for name, to in source.names.items() if not to)
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return [f"  under their own names: {shown}"] if names else []


def _steps(found: Findings) -> str:
    span = f"{found.first_step} to {found.last_step}" if found.read and math.isfinite(found.last_step) else "none"
    return f"{found.steps} steps ({span})"
