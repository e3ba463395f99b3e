"""Silences: what people want nothing done about for a while, as in Alertmanager; one of everything is a window.

A silenced alert fires and is written down as ever, and says by which silence. An incident all of whose own alerts are
silenced opens, and what would be done about it waits, a page too; what is under way is finished, and taken back where
it does not hold. With the silence the wait ends by itself. Times are Unix seconds, and come with what is fed.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from gyrostat.wire.fields import clean
from gyrostat_rules.causes import KINDS
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.inputs import Verb
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Rule, RulePack, Severity
from gyrostat_rules.requests import NOT_DONE
from gyrostat_rules.state import Incident, State
from gyrostat_rules.theirs import Silence

LONGEST = 30 * 86400.0  # a silence without an end is one that somebody forgets
ALERT, KIND, SEVERITY = "alert", "kind", "severity"  # matchers by name; all others are labels of the alert
_AHEAD = 365 * 86400.0  # of its begin: later than that is a slip of the pen
_LAST = 2e11  # seconds: the year 8300, which a calendar still has
_MOST, _MATCHERS, _SAID = 100, 20, 300  # silences, matchers of one, characters of a reason: they stand in every ledger
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def silence(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    """Take a silence up; says why not where it cannot be."""
    try:
        made = _made(state, moment, arguments)
    except ValueError as error:
        return f"{NOT_DONE}{error}"
    state.silence_count += 1
    state.silences = {**state.silences, made.id: made}
    mark(state, moment)
    begins = "" if made.begun else f"from {when(made.begins)} "
    span = f"{begins}until {when(made.ends)}"
    return f"{made.by} silenced {words(made)} {span} as {made.id}: {made.reason}{_now(state, made)}"


def unsilence(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    """End a silence before its time."""
    name, by = str(arguments.get("silence", "")), _one_line(arguments.get("by", "somebody"))
    if (lifted := state.silences.get(name)) is None:
        number = name[1:] if name[:1] == "s" and name[1:].isdecimal() and len(name) < 10 else "0"
        was = "has ended already" if 0 < int(number) <= state.silence_count else "is not known"
        return f"{NOT_DONE}silence {name[:40]!r} {was}; standing now: {', '.join(state.silences) or 'none'}"
    state.silences = {key: one for key, one in state.silences.items() if key != name}
    mark(state, moment)
    return f"{by} ended {name} before its time: {words(lifted)} is heard again"


def hush(state: State, moment: Moment) -> None:
    """A stage: let silences begin and end by the moment's time, and mark the alerts that they fit."""
    if not state.silences:
        return
    for one in state.silences.values():
        if one.ends <= moment.at:
            state.silences = {key: other for key, other in state.silences.items() if key != one.id}
            _tell(moment, Verb.UNSILENCE, one, f"{one.id} has ended: {words(one)} is heard again")
        elif one.begins <= moment.at and not one.begun:
            state.silences = {**state.silences, one.id: replace(one, begun=True)}
            _tell(moment, Verb.SILENCE, one, f"{one.id} begins: {words(one)} is silenced until {when(one.ends)}")
    mark(state, moment)


def mark(state: State, moment: Moment) -> None:
    """Note at each alert by which silence it is silenced; of several by the one that ends last."""
    rules = {rule.alert: rule for rule in moment.pack.rules} if state.silences else {}
    for key, alert in state.alerts.items():
        found = _of(state, moment.at, _named(key, alert.labels, rules)) if state.silences else None
        by = found.id if found else ""
        moment.changed = moment.changed or by != alert.silenced_by
        alert.silenced_by = by


def silenced(state: State, moment: Moment, incident: Incident) -> Silence | None:
    """The silence for which an incident waits, the first to end of those of its own alerts; None where one is heard."""
    if not state.silences:
        return None
    rules = {rule.alert: rule for rule in moment.pack.rules}
    own = [key for key in incident.alerts if _is_own(incident, rules.get(_rule_of(key)))]
    keys = [key for key in own if key in state.alerts] or own  # all are over: what they were still says whose it is
    found = [_of(state, moment.at, _named(k, _labels(state, k), rules)) for k in keys]
    silences = [one for one in found if one is not None]
    return min(silences, key=lambda one: (one.ends, one.id)) if silences and len(silences) == len(found) else None


def words(one: Silence) -> str:
    """What it silences, for people."""
    return ", ".join(one.matchers) or "everything"


def when(at: float) -> str:
    """A time for people, the same wherever they are: 2026-12-01 14:00 UTC."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def doubtful(silences: Iterable[Silence]) -> str:
    """Why these, each of its type, were never made here, in words; '' where they may have been."""
    for one in silences:
        if not (0.0 <= one.begins < one.ends <= min(one.begins + LONGEST, _LAST)):
            return f"silence {one.id[:40]!r} stands from {one.begins:g} until {one.ends:g}"
    return ""


# -- which alerts -------------------------------------------------------------------------------------


def _of(state: State, at: float, named: Mapping[str, str]) -> Silence | None:
    fits = [s for s in state.silences.values() if s.begins <= at < s.ends and _fits(s, named)]
    return max(fits, key=lambda one: (one.ends, one.id), default=None)


def _fits(one: Silence, named: Mapping[str, str]) -> bool:
    return all(named.get(name) == value for name, _, value in (m.partition("=") for m in one.matchers))


def _named(key: str, labels: Mapping[str, str], rules: Mapping[str, Rule]) -> dict[str, str]:
    """All that a matcher may name of an alert."""
    rule = rules.get(_rule_of(key))
    if rule is None:
        return {**labels, ALERT: _rule_of(key)}
    kind = rule.incident or rule.joins
    return {**rule.labels, **labels, ALERT: rule.alert, KIND: kind, SEVERITY: rule.severity}


def _rule_of(key: str) -> str:
    return key.partition("{")[0]


def _labels(state: State, key: str) -> dict[str, str]:
    """An alert's labels; of one that is over, those in its name."""
    if (alert := state.alerts.get(key)) is not None:
        return alert.labels
    pairs = (pair.partition("=") for pair in key.partition("{")[2].removesuffix("}").split(","))
    return {name: value for name, _, value in pairs}


def _is_own(incident: Incident, rule: Rule | None) -> bool:
    """As ``incidents`` has it: of the kind that it opened as, or of the one that leads it."""
    return rule is None or (rule.incident or rule.joins) in (incident.first_kind, incident.kind)


# -- a person's word ----------------------------------------------------------------------------------


def _made(state: State, moment: Moment, given: Mapping[str, Any]) -> Silence:
    """The silence that is asked for; raises ValueError, in words for whoever asked."""
    if len(state.silences) >= _MOST:
        raise ValueError(f"{_MOST} silences stand already: end one of them first, with gyrostat unsilence ID")
    matchers = tuple(str(given.get("matchers", "")).splitlines())
    if bool(matchers) == bool(given.get("all")):
        raise ValueError("name what is to be silenced, e.g. alert=NAME, or all of it with --all: one of the two")
    _check(moment.pack, matchers)
    if not (reason := _one_line(given.get("reason", ""))):
        raise ValueError("a silence wants a reason: whoever is woken next reads it")
    begins, ends = _span(given, moment.at)
    by, name = _one_line(given.get("by", "somebody")), f"s{state.silence_count + 1:04d}"
    return Silence(name, matchers, begins, ends, by, reason, begins <= moment.at)


def _check(pack: RulePack, matchers: tuple[str, ...]) -> None:
    """Raise ValueError where a matcher is none, or fits nothing that there is."""
    known = {ALERT: [r.alert for r in pack.rules], KIND: list(KINDS),
             SEVERITY: [Severity.INFO, Severity.WARNING, Severity.CRITICAL]}  # fmt: skip
    if len(matchers) > _MATCHERS:
        raise ValueError(f"{len(matchers)} matchers are more than the {_MATCHERS} that one silence may have")
    names = [matcher.partition("=")[0] for matcher in matchers]
    for matcher in matchers:
        name, _, value = matcher.partition("=")
        if not _NAME.fullmatch(name) or not 0 < len(value) <= _SAID or not value.isprintable():
            raise ValueError(
                f"{clean(matcher)[:_SAID]!r} is no matcher: write NAME=VALUE, e.g. alert=EntropyLow or rank=3"
            )
        if names.count(name) > 1:
            raise ValueError(f"{name} is matched twice: all matchers must fit, so make two silences of it")
        if name in known and value not in known[name]:
            shown = ", ".join(known[name]) if name != ALERT else "those that gyrostat rules list shows"
            raise ValueError(f"no {name} is called {value!r}: there are {shown}")


def _span(given: Mapping[str, Any], at: float) -> tuple[float, float]:
    """From when until when; raises ValueError."""
    begins = max(at, _number(given, "begins", at))
    ends = _number(given, "ends", begins + _number(given, "seconds", math.nan))
    if math.isnan(ends):
        raise ValueError("say until when: a silence has an end, at most 30 days after its begin")
    if not ends > begins:
        raise ValueError(
            f"it would be over before it begins, at {when(begins)}" if begins > at else "that is over already"
        )
    if begins > at + _AHEAD:
        raise ValueError("it would begin in more than a year")
    if not ends <= begins + LONGEST:
        raise ValueError(f"a silence stands for at most {LONGEST / 86400:.0f} days; make it anew when it has ended")
    return begins, ends


def _number(given: Mapping[str, Any], key: str, default: float) -> float:
    try:
        value = float(given[key]) if key in given else default
    except (TypeError, ValueError, OverflowError):
        value = math.inf
    if math.isinf(value) or value > _LAST:
        raise ValueError(f"{key} {str(given.get(key, value))[:40]!r} is no time")
    return value


def _one_line(said: Any) -> str:
    return " ".join(clean(str(said)).split())[:_SAID]


def _now(state: State, made: Silence) -> str:
    """What it does at once, so that a slip in a matcher shows."""
    if not made.begun:
        return ""
    count = sum(alert.silenced_by == made.id for alert in state.alerts.values())
    return f"; alerts that it fits now: {count}"


def _tell(moment: Moment, verb: str, one: Silence, text: str) -> None:
    moment.write(EntryKind.COMMAND, verb, "said", text, arguments={"silence": one.id, "by": "the agent"})
