"""Declared: what a rule is, as its pack declares it and as its detector's own docstrings say.

Values for ``page`` and for ``--json``; nothing of a run is in them.
"""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.pack import KnobPlan, Playbook, Rule, RulePack, Rung
from gyrostat_rules.remedies import NEEDS_APPROVAL, REMEDIES
from gyrostat_rules.wants import words


class Parameter(NamedTuple):
    """One parameter of a rule's detector; ``given``: by the pack, and not the detector's own default."""

    name: str
    value: Any
    given: bool


class Declared(NamedTuple):
    """A rule's declaration. ``means``: what its detector's parameters do; ``ladder``: its remedies, in words."""

    rule: Rule
    pack: str
    wants: str
    finds: str
    means: str
    parameters: tuple[Parameter, ...]
    muted_by: tuple[str, ...]
    ladder: tuple[str, ...]


def declared(rule: Rule, pack: RulePack) -> Declared:
    """What the pack declares of one of its rules."""
    detector = DETECTORS[rule.detector]
    playbook = pack.playbook(rule.incident) if rule.incident else None
    return Declared(
        rule, pack.name, words(rule), _said(detector.read), _said(detector.params), _parameters(rule),
        tuple(other.alert for other in pack.rules if rule.alert in other.inhibits), _ladder(playbook),
    )  # fmt: skip


def plain(found: Declared) -> dict[str, Any]:
    """The same for machines."""
    rule = found.rule
    return {
        "alert": rule.alert, "pack": found.pack, "group": rule.group, "severity": rule.severity, "fault": rule.fault,
        "summary": rule.annotations.get("summary", ""), "runbook_url": rule.runbook_url, "wants": found.wants,
        "detector": rule.detector, "finds": found.finds, "parameters_mean": found.means,
        "parameters": {p.name: _jsonable(p.value) for p in found.parameters},
        "given": [p.name for p in found.parameters if p.given], "for": rule.lasts.words(),
        "keep_firing_for": rule.keeps.words(), "when": list(rule.when),
        "match": {name: list(values) for name, values in rule.match.items()}, "incident": rule.incident,
        "joins": rule.joins, "inhibits": list(rule.inhibits), "inhibited_by": list(found.muted_by),
        "ladder": list(found.ladder),
    }  # fmt: skip


def _said(thing: Any) -> str:
    """A docstring as one paragraph."""
    return " ".join((inspect.getdoc(thing) or "").replace("``", "`").split())


def _parameters(rule: Rule) -> tuple[Parameter, ...]:
    defaults: Mapping[str, Any] = getattr(rule.params, "_field_defaults", {})
    told = rule.params._asdict()
    return tuple(Parameter(n, v, n not in defaults or defaults[n] != v) for n, v in told.items())


def _ladder(playbook: Playbook | None) -> tuple[str, ...]:
    return tuple(map(_rung, playbook.rungs)) if playbook else ()


def _rung(rung: Rung) -> str:
    remedy = REMEDIES[rung.remedy]
    said = f"{rung.remedy}: {remedy.summary}"
    if rung.knobs:
        said += f": {', '.join(map(_knob, rung.knobs))}"
    if not remedy.capability:
        return said
    said += f"; must hold for {rung.horizon} steps"
    said += f" after {rung.settle} to take effect" if rung.settle else ""
    said += f"; taken back where {rung.harm.series} falls by {rung.harm.falls:.0%}" if rung.harm else ""
    if remedy.reversible:
        return said
    return f"{said}; cannot be undone{', needs approval' if rung.remedy in NEEDS_APPROVAL else ''}"


def _knob(plan: KnobPlan) -> str:
    after = "" if plan.then is None else f", later {plan.then:g}"
    return plan.words() + (after or (", and it stays there" if plan.keep else ""))


def _jsonable(value: Any) -> Any:
    """JSON has no infinity: it is spelled."""
    if isinstance(value, tuple):
        return [_jsonable(v) for v in value]
    return value if not isinstance(value, float) or abs(value) < float("inf") else str(value)
