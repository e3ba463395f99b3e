"""Page: a rule, and what it saw of a run, as lines for people and as one document for machines."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_agent.explain import declared as declaration
from gyrostat_agent.explain.account import Account
from gyrostat_agent.explain.declared import Declared
from gyrostat_agent.explain.numbers import away, name_of, number, plain
from gyrostat_agent.explain.why import Why
from gyrostat_agent.explain.witness import Extreme, Turn, Witness, way

_GAUGES, _TURNS, _SERIES = 8, 30, 40  # lines of each kind; --json has them all


class Line(NamedTuple):
    """``label`` is '' where the line goes on with what the one before it began."""

    label: str
    text: str


def rule_lines(found: Declared) -> Iterator[Line]:
    """What the rule is."""
    rule = found.rule
    kind = f", tells of {rule.fault}" if rule.fault else ""
    yield Line(rule.alert, f"{rule.severity}{kind}; group {rule.group}")
    yield Line("says", rule.annotations.get("summary", "") or "nothing of its own")
    yield Line("looks at", found.wants)
    yield Line("detector", f"{rule.detector}. {found.finds}")
    yield Line("", found.means)
    told = "; ".join(f"{p.name} {_value(p.value)}{'' if p.given else ' (default)'}" for p in found.parameters)
    yield Line("with", told or "no parameters")
    yield Line("fires", _lasting(found))
    yield from _speaks(found)
    yield Line("opens", _opens(found))
    yield from _list("mutes", rule.inhibits)
    yield from _list("muted by", found.muted_by)
    for place, rung in enumerate(found.ladder, 1):
        yield Line("ladder" if place == 1 else "", f"{place}. {rung}")
    yield Line("runbook", rule.runbook_url or "none")


def run_lines(found: Account) -> Iterator[Line]:
    """What it saw of a run."""
    seen = found.witness
    asked = f"steps {seen.first} to {seen.last}" if seen.last >= 0 else "no step"
    yield Line("run", f"{found.run or 'nameless'}: {asked}, {found.turns} turns replayed, asked {seen.looks} times")
    if found.differs:
        said = f"other rules code watched this run: from turn {found.differs} on, what follows is what today's decides"
        yield Line("note", said)
    yield from _looked(found)
    if seen.broken:
        yield Line("broken", f"its detector throws: {seen.broken}")
    yield from _measured(found)
    yield from _history(seen)


def why_lines(answer: Why) -> Iterator[Line]:
    """Why it did what it did at a step."""
    yield Line(f"step {answer.step}", f"{answer.verdict}: {answer.because[0] if answer.because else ''}")
    yield from (Line("", said) for said in answer.because[1:])
    for course in answer.courses:
        yield Line("around it", course.name)
        for point in course.points:
            mark = ">" if point.step == answer.looked else " "
            limit = f"{point.gauge.side} {number(point.gauge.limit)}" if point.gauge.limit == point.gauge.limit else "-"
            beyond = "  beyond" if point.gauge.beyond else ""
            yield Line("", f"{mark} step {point.step}: {number(point.gauge.value)}, limit {limit}{beyond}")


def document(what: Declared, found: Account | None, answer: Why | None) -> dict[str, Any]:
    """The same for machines."""
    out: dict[str, Any] = {"rule": declaration.plain(what)}
    if found is not None:
        seen = found.witness
        out["run"] = {
            "name": found.run, "first_step": seen.first, "last_step": seen.last, "turns": found.turns,
            "differs_from_turn": found.differs or None, "asked": seen.looks, "silent": found.silent,
            "not_told": list(found.unmet), "looked_at": {k: list(v) for k, v in found.looked.items()},
            "told": {k: list(v) for k, v in found.told.items()}, "broken": seen.broken,
            "gauges": [_extreme(seen.newest[key]) for key in seen.shown()],
            "nearest": [_extreme(seen.nearest[key]) for key in seen.shown()],
            "history": [turn._asdict() for turn in seen.turns], "earlier_turns": seen.more_turns,
        }  # fmt: skip
    if answer is not None:
        out["step"] = {
            "step": answer.step, "looked_at": answer.looked, "verdict": answer.verdict,
            "because": list(answer.because),
            "around": [[{"step": p.step, "segment": p.segment, **plain(p.gauge)} for p in course.points]
                       for course in answer.courses],
        }  # fmt: skip
    return out


def _extreme(found: Extreme) -> dict[str, Any]:
    return {"step": found.step, **plain(found.gauge)}


def safe(line: Line) -> Line:
    """Without what could command a terminal: names come from whoever told them."""
    return Line(clean(line.label), clean(line.text))


# -- what the rule is ---------------------------------------------------------------------------------


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)


def _lasting(found: Declared) -> str:
    rule = found.rule
    begins = f"when it has been breached for {rule.lasts.words()}" if rule.lasts.words() else "at once"
    return f"{begins}, and for {rule.keeps.words()} after" if rule.keeps.words() else begins


def _speaks(found: Declared) -> Iterator[Line]:
    rule = found.rule
    of = [f"{name} {' or '.join(values)}" for name, values in rule.match.items()]
    if of or rule.when:
        yield Line("speaks", "; ".join([*(["of " + ", ".join(of)] if of else []), *rule.when]))


def _opens(found: Declared) -> str:
    rule = found.rule
    if rule.incident:
        return f"incident {rule.incident}"
    return f"nothing; joins an incident as {rule.joins}" if rule.joins else "nothing: it is told, and nothing is done"


def _list(label: str, names: tuple[str, ...]) -> Iterator[Line]:
    if names:
        yield Line(label, ", ".join(names))


# -- what it saw --------------------------------------------------------------------------------------


def _looked(found: Account) -> Iterator[Line]:
    if found.silent:
        told = sorted({name for names in found.told.values() for name in names})
        more = f" and {len(told) - _SERIES} more" if len(told) > _SERIES else ""
        yield Line("silent", f"nobody tells {' or '.join(found.unmet)}; told were: {', '.join(told[:_SERIES])}{more}")
    for place, (key, names) in enumerate(found.looked.items()):
        if place == _GAUGES:
            yield Line("", f"and {len(found.looked) - place} more processes")
            return
        yield Line("looked at" if not place else "", f"{key}: {', '.join(names[:_SERIES])}")


def _measured(found: Account) -> Iterator[Line]:
    seen = found.witness
    if not seen.newest:
        yield Line("numbers", _why_none(found))
        return
    keys = seen.shown()
    for place, key in enumerate(keys[:_GAUGES]):
        step, gauge = seen.newest[key]
        said = f"{name_of(gauge)} is {number(gauge.value)} at step {step}; {away(gauge)}; {gauge.sentence}"
        near = seen.nearest[key]
        if near.step != step and way(near.gauge) < way(gauge):
            said += f". Nearest, at step {near.step}: {number(near.gauge.value)}, {away(near.gauge)}"
        yield Line("numbers" if not place else "", said)
    if len(keys) > _GAUGES:
        yield Line("", f"and {len(keys) - _GAUGES} more that are farther from their limits")


def _why_none(found: Account) -> str:
    if found.witness.looks and not found.witness.broken:
        return f"no numbers for detector {found.rule.detector}" if not found.silent else "none"
    return "none: it was never asked"


def _history(seen: Witness) -> Iterator[Line]:
    if not seen.turns:
        yield Line("history", "it never spoke")
        return
    left = seen.more_turns + max(0, len(seen.turns) - _TURNS)
    if left:
        yield Line("history", f"{left} earlier turns are left out")
    for place, turn in enumerate(seen.turns[-_TURNS:]):
        yield Line("history" if not place and not left else "", _turn(turn))


def _turn(turn: Turn) -> str:
    by = f" {'by ' if turn.word == 'muted' else ''}{turn.by}" if turn.by else ""
    where = f" of segment {turn.segment}" if turn.segment else ""
    return f"step {turn.step}{where}: {turn.alert} {turn.word}{by}" + (f": {turn.why}" if turn.why else "")
