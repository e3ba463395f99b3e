"""What must hold between the parts of a pack: names that exist, names given once, what goes together.

Each check reads the plain values, whatever else is wrong with them, so that one look at a file finds all of
its mistakes. Called by ``packfile``; the shape of each part is ``packdraft``'s matter.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, NamedTuple

from pydantic import ConfigDict, TypeAdapter, ValidationError

from gyrostat_rules.causes import KINDS
from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.pack import Severity
from gyrostat_rules.packerrors import explain, show, subject, suggest
from gyrostat_rules.packtree import REFUSED, Path
from gyrostat_rules.remedies import REMEDIES

_STRICT = ConfigDict(strict=True, extra="forbid")


class Finding(NamedTuple):
    """A mistake at a path; ``at_key`` where the key is wrong rather than its value."""

    path: Path
    what: str
    fix: str
    at_key: bool = False


def mappings(value: Any, *names: str, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every mapping in the lists under ``names``, one list in another, with its path."""
    if not names:
        if isinstance(value, dict):
            yield path, value
        return
    items = value.get(names[0]) if isinstance(value, dict) else None
    for i, item in enumerate(items if isinstance(items, tuple) else ()):
        yield from mappings(item, *names[1:], path=(*path, names[0], i))


def _rungs(pack: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every rung, of a playbook or of a rule's own ladder."""
    yield from mappings(pack, "playbooks", "rungs")
    yield from mappings(pack, "groups", "rules", "remedies")


def _in_rungs(pack: Any, name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path, rung in _rungs(pack):
        yield from mappings(rung, name, path=path)


def findings(error: ValidationError, under: Path, keys: Callable[[Path], list[str]]) -> Iterator[Finding]:
    """What pydantic found, below ``under``; what was refused when it was read is not told twice."""
    for one in error.errors(include_url=False):
        if one["input"] is REFUSED or (one["type"] == "too_short" and one["input"]):
            continue  # pydantic counts the valid items alone: a list whose items are all wrong is not empty
        of_key = one["loc"][-1:] == ("[key]",)
        path = (*under, *(p for p in one["loc"] if p != "[key]"))
        what, fix = explain({**one, "loc": path}, keys(path[:-1]))
        yield Finding(path, what, fix, of_key or one["type"] == "extra_forbidden")


def _alerts_once(pack: Any) -> Iterator[Finding]:
    yield from _once(((p, "alert", r) for p, r in mappings(pack, "groups", "rules")), "rename one of them")


def _groups_once(pack: Any) -> Iterator[Finding]:
    yield from _once(((p, "name", g) for p, g in mappings(pack, "groups")), "rename one of them, or merge them")


def _playbooks_once(pack: Any) -> Iterator[Finding]:
    yield from _once(
        ((p, "incident", b) for p, b in mappings(pack, "playbooks")), "merge their rungs into one playbook"
    )


def _knobs_once(pack: Any) -> Iterator[Finding]:
    for path, rung in _rungs(pack):
        yield from _once(((p, "name", k) for p, k in mappings(rung, "knobs", path=path)), "turn a knob once in a rung")


def _once(parts: Iterable[tuple[Path, str, dict[str, Any]]], fix: str) -> Iterator[Finding]:
    seen = set()
    for path, key, part in parts:
        name = part.get(key)
        if isinstance(name, str) and name in seen:
            yield Finding((*path, key), f"{key} {show(name)} is used twice", fix)
        elif isinstance(name, str):
            seen.add(name)


def _inhibited_exist(pack: Any) -> Iterator[Finding]:
    alerts = {r["alert"]: None for _, r in mappings(pack, "groups", "rules") if isinstance(r.get("alert"), str)}
    for _, name, path in _mutes(pack):
        if name not in alerts:
            yield Finding(
                path, f"{show(name)}, which is to be inhibited, is no alert of this pack", suggest(name, alerts)
            )


def _nothing_inhibits_itself(pack: Any) -> Iterator[Finding]:
    """Alerts that mute each other in a ring would all be silent, and silence reads as healthy."""
    mutes = {(alert, name): path for alert, name, path in _mutes(pack)}
    while ring := _ring(mutes):
        alert, name = max(ring, key=mutes.__getitem__)
        what = f"{show(alert)} inhibits {show(name)}, and so in the end itself"
        yield Finding(mutes.pop((alert, name)), what, "remove one of the inhibits in this ring")


def _mutes(pack: Any) -> Iterator[tuple[str, str, Path]]:
    """Each alert ('' where it has no name yet), a consequence of it, and where the latter stands."""
    for path, rule in mappings(pack, "groups", "rules"):
        alert, names = rule.get("alert"), rule.get("inhibits")
        for i, name in enumerate(names if isinstance(names, tuple) else ()):
            if isinstance(name, str):
                yield alert if isinstance(alert, str) else "", name, (*path, "inhibits", i)


def _ring(mutes: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs of one ring of alerts that mute each other, or none."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for alert, name in mutes:
        sorter.add(alert, name)
    try:
        sorter.prepare()
    except CycleError as error:
        ring = error.args[1]  # each is muted by the next, and the last is the first
        return [(alert, name) for name, alert in pairwise(ring)]
    return []


def _only_critical_opens(pack: Any) -> Iterator[Finding]:
    for path, rule in mappings(pack, "groups", "rules"):
        if "incident" in rule and rule.get("severity") in (Severity.INFO, Severity.WARNING):
            what = f"severity {show(rule['severity'])} opens no incident, but 'incident' is given"
            yield Finding((*path, "severity"), what, f"write severity: {Severity.CRITICAL}, or remove 'incident'")


def _incidents_have_playbooks(pack: Any) -> Iterator[Finding]:
    rules = mappings(pack, "groups", "rules")
    kinds = [b.get("incident") for _, b in mappings(pack, "playbooks")] + [
        r.get("incident") for _, r in rules if r.get("remedies")
    ]
    for path, rule in mappings(pack, "groups", "rules"):
        for key in ("incident", "joins"):
            kind = rule.get(key)
            if isinstance(kind, str) and kind in KINDS and kind not in kinds:
                fix = f"add {{incident: {kind}, rungs: [{{remedy: page}}]}} to 'playbooks'"
                yield Finding((*path, key), f"no playbook is for incident {show(kind)}", fix)


def _ladders_lead_somewhere(pack: Any) -> Iterator[Finding]:
    """A rule's own ladder is the playbook of the incident that it opens: of one, and the only one."""
    kinds = [b.get("incident") for _, b in mappings(pack, "playbooks")]
    for path, rule in mappings(pack, "groups", "rules"):
        kind = rule.get("incident")
        if not rule.get("remedies"):
            continue
        if not kind:
            what = "'remedies' mend an incident, and this rule opens none"
            yield Finding((*path, "remedies"), what, "add incident: KIND, or remove 'remedies'", True)
        elif kind in kinds:
            what = f"incident {show(kind)} has its remedies in two places"
            yield Finding((*path, "remedies"), what, "keep one playbook, or the remedies of one rule", True)
        kinds.append(kind)


def _knobs_have_one_aim(pack: Any) -> Iterator[Finding]:
    for path, knob in _in_rungs(pack, "knobs"):
        aims = [key for key in ("times", "to", "at_least", "at_most") if knob.get(key) is not None]
        if len(aims) != 1:
            ways = "a knob is turned by one of 'times', 'to', 'at_least' and 'at_most', and here it is by "
            what = ways + (" and ".join(f"'{aim}'" for aim in aims) or "none")
            yield Finding(path, what, "keep one of them" if aims else "add times: FACTOR or to: VALUE")


def _effects_have_one_limit(pack: Any) -> Iterator[Finding]:
    for path, effect in _in_rungs(pack, "effects"):
        limits = [key for key in ("above", "below") if effect.get(key) is not None]
        if len(limits) != 1:
            what = "an effect is either 'above' or 'below' a limit, and here it is " + ("both" if limits else "neither")
            yield Finding(path, what, "remove one of them" if limits else "add above: VALUE or below: VALUE")
        when = effect.get("when", ())
        if isinstance(when, tuple) and len(when) == 1:
            yield Finding((*path, "when"), "'when' compares two series, and here is one", "write when: [LOWER, HIGHER]")


def _turns_have_knobs(pack: Any) -> Iterator[Finding]:
    for path, rung in _rungs(pack):
        if rung.get("remedy") == "turn" and not rung.get("knobs"):
            yield Finding(
                (*path, "remedy"), "'turn' turns knobs, and here are none", "add knobs: [{name: KNOB, to: VALUE}]"
            )


def _irreversible_is_said(pack: Any) -> Iterator[Finding]:
    for path, rung in _rungs(pack):
        remedy = rung.get("remedy")
        known = REMEDIES.get(remedy) if isinstance(remedy, str) else None
        if known is not None and not known.reversible and rung.get("irreversible") is not True:
            yield Finding((*path, "remedy"), f"{show(remedy)} cannot be undone", "add irreversible: true")


def _labels_can_match(pack: Any) -> Iterator[Finding]:
    for path, rule in mappings(pack, "groups", "rules"):
        match, detector = rule.get("match"), rule.get("detector")
        if isinstance(match, dict) and isinstance(detector, str) and detector in DETECTORS:
            known = DETECTORS[detector].labels
            for name in (n for n in match if isinstance(n, str) and n not in known):
                what = f"detector {show(detector)} gives no label {show(name)}, so that nothing can match"
                yield Finding((*path, "match", name), what, suggest(name, known), at_key=True)


def _parameters_fit(pack: Any) -> Iterator[Finding]:
    for path, rule in mappings(pack, "groups", "rules"):
        given, name = rule.get("with"), rule.get("detector")
        if isinstance(given, dict) and isinstance(name, str) and name in DETECTORS:
            yield from _numbers_fit(given, (*path, "with"))
            try:
                parameters(name, given)
            except ValidationError as error:
                names = list(getattr(DETECTORS[name].params, "_fields", ()))
                yield from findings(error, (*path, "with"), partial(_names_at, (*path, "with"), names))


def _names_at(top: Path, names: list[str], path: Path) -> list[str]:
    return names if path == top else []  # below the top lie lists and mappings of the user's own


def _numbers_fit(value: Any, path: Path) -> Iterator[Finding]:
    """A threshold, a time or a count: never negative, always finite, in every detector."""
    if isinstance(value, (dict, tuple)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _numbers_fit(item, (*path, key))
    elif isinstance(value, (int, float)) and not (math.isfinite(value) and value >= 0):
        yield Finding(path, f"{subject(path)} is {show(value)}", "write a finite number, 0 or more")


def parameters(detector: str, given: dict[str, Any]) -> Any:
    """The detector's parameters from what a pack gives under ``with``; raises pydantic's ValidationError."""
    return TypeAdapter(DETECTORS[detector].params, config=_STRICT).validate_python(given)


CHECKS: tuple[Callable[[Any], Iterator[Finding]], ...] = (
    _alerts_once,
    _groups_once,
    _playbooks_once,
    _knobs_once,
    _inhibited_exist,
    _nothing_inhibits_itself,
    _only_critical_opens,
    _incidents_have_playbooks,
    _ladders_lead_somewhere,
    _knobs_have_one_aim,
    _effects_have_one_limit,
    _turns_have_knobs,
    _irreversible_is_said,
    _labels_can_match,
    _parameters_fit,
)
