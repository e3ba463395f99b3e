"""Trail: the journal's entries, one after the other, as the spans of each incident's trace. Pure; others send them.

    incident KIND                     since it fired (or its first alert), until it is resolved or given up
      alert RULE                      pending or firing, until it is resolved or the incident is over
      decision REMEDY                 planned, until it is sent, passed by, denied or given to a person
      directive REMEDY                sent, until it is answered by all, or given up
        ack ROLE/RANK                 sent, until this rank answered
      probation REMEDY                applied, until it has held or not

A span comes out when it ends. What was not heard from its beginning begins at the first word on it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gyrostat.wire.fields import clean
from gyrostat_exporters.spans import Event, Said, Span, number, short, span_id, trace_id
from gyrostat_rules.alerts import FIRING, PENDING, RESOLVED
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.incidents import PROBATION, STOPPED

_EVENTS, _OVER, _ALERTS = 100, 64, 2048  # events of a span; incidents that are over, and alerts, that are remembered
_ENDS = ("passed by", "deny", "paged")
_JOINS = (" joins: ", " leads: ")


class _Since(NamedTuple):
    """When an alert began, by which entry, and whether it has fired."""

    at: float
    entry: str
    fired: bool


@dataclass(slots=True)
class _Deed:
    remedy: str = ""
    planned: float | None = None
    sent: float | None = None
    answered: bool = False  # its directive's span is out


@dataclass(slots=True)
class _Case:
    """An incident so far. ``began`` is the first entry that its spans need."""

    id: str
    trace: int
    fired_at: float
    since: float
    began: str
    kind: str = ""
    onset: int = -1
    alerts: set[str] = field(default_factory=set)
    deeds: dict[str, _Deed] = field(default_factory=dict)
    sent: str = ""  # the newest action that was sent
    watched: float | None = None
    events: list[Event] = field(default_factory=list)
    over: bool = False


class Trail:
    """The incidents of ``run``. Hears each entry once, in order."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._cases: dict[str, _Case] = {}
        self._alerts: dict[str, _Since] = {}

    def hear(self, entry: Entry, births: Mapping[str, float]) -> list[Span]:
        """The spans that end with this entry. ``births``: when incidents fired (Unix seconds), as the engine has it."""
        if entry.kind == EntryKind.ALERT:
            return list(self._alert(entry))
        case = self._case(entry, births)
        if case is None:
            return []
        found = self._incident(case, entry) if entry.kind == EntryKind.INCIDENT else _action(case, entry)
        return list(found)

    def place(self, entry: Entry) -> tuple[int, int]:
        """Trace and span that a heard entry belongs to; (0, 0) for none."""
        name = entry.subject.partition(".")[0] if entry.kind == EntryKind.ACTION else entry.subject
        case = self._cases.get(name)
        if case is None and entry.kind == EntryKind.ALERT:
            case = next((one for one in self._cases.values() if not one.over and entry.subject in one.alerts), None)
        return (case.trace, span_id(case.trace, "incident")) if case is not None else (0, 0)

    @property
    def needed(self) -> str:
        """The id of the oldest entry that an incident or an alert which goes on needs; '' where none does."""
        open_ones = [case.began for case in self._cases.values() if not case.over]
        return min((*open_ones, *(alert.entry for alert in self._alerts.values())), key=_order, default="")

    # -- one entry ------------------------------------------------------------------------------------

    def _case(self, entry: Entry, births: Mapping[str, float]) -> _Case | None:
        if entry.kind not in (EntryKind.INCIDENT, EntryKind.ACTION):
            return None
        name = entry.subject.partition(".")[0]
        case = self._cases.get(name)
        if case is None:
            fired = births.get(name, entry.at)
            case = _Case(name, trace_id(self._run, name, fired), fired, fired, entry.id)
            self._cases[name] = case
            for old in [key for key, one in self._cases.items() if one.over][:-_OVER]:
                del self._cases[old]
        return case

    def _alert(self, entry: Entry) -> Iterator[Span]:
        key = entry.subject
        if entry.state == PENDING:
            self._alerts[key] = _Since(entry.at, entry.id, False)
        elif entry.state == FIRING:
            known = self._alerts.get(key)
            self._alerts[key] = _Since(entry.at, entry.id, True) if known is None else known._replace(fired=True)
        elif entry.state == RESOLVED:
            for case in self._cases.values():
                if not case.over and key in case.alerts:
                    yield from self._alert_span(case, key, entry.at)
            self._alerts.pop(key, None)
        for old in list(self._alerts)[:-_ALERTS]:
            del self._alerts[old]

    def _alert_span(self, case: _Case, key: str, until: float) -> Iterator[Span]:
        known = self._alerts.get(key)
        if known is not None and known.fired:
            said = (("gyrostat.alert", short(clean(key))),)
            yield _span(case, f"alert {key.partition('{')[0]}", ("alert", key, repr(known.at)), known.at, until, said)

    def _incident(self, case: _Case, entry: Entry) -> Iterator[Span]:
        case.kind = str(entry.data.get("incident_kind", case.kind))
        onset = entry.data.get("onset")
        case.onset = onset if isinstance(onset, int) else case.onset
        self._join(case, entry)
        if len(case.events) < _EVENTS:
            said = (("gyrostat.text", short(clean(entry.text))), ("gyrostat.step", number(entry.step)))
            case.events.append(Event(entry.state, entry.at, said))
        if entry.state == PROBATION and case.watched is None:
            yield from _answered(case, case.sent, entry.at, "")
            case.watched = entry.at
        elif entry.state != PROBATION:
            yield from _watched(case, case.sent, entry.at, None)
        if entry.state in (RESOLVED, STOPPED) and not case.over:
            yield from self._end(case, entry)

    def _join(self, case: _Case, entry: Entry) -> None:
        keys = [key for key in entry.data.get("alerts") or () if isinstance(key, str)]
        keys += [entry.text.partition(word)[0] for word in _JOINS if word in entry.text]
        for known, key in [(self._alerts[key], key) for key in keys if key in self._alerts]:
            case.alerts.add(key)
            case.since = min(case.since, known.at)
            case.began = min(case.began, known.entry, key=_order)

    def _end(self, case: _Case, entry: Entry) -> Iterator[Span]:
        """All that has not ended by itself, and the incident."""
        for key in sorted(case.alerts):
            yield from self._alert_span(case, key, entry.at)
        for name, deed in case.deeds.items():
            if deed.planned is not None and deed.sent is None:
                yield from _decided(case, name, entry.at, entry.state, entry.text)
            yield from _answered(case, name, entry.at, "no answer before the incident was over")
        case.over = True
        fault = "" if entry.state == RESOLVED else short(clean(entry.text))
        said = (
            ("gyrostat.incident", case.id), ("gyrostat.incident.kind", case.kind),
            ("gyrostat.onset", number(case.onset)), ("gyrostat.state", entry.state),
            ("gyrostat.text", short(clean(entry.text))),
        )  # fmt: skip
        name = clean(f"incident {case.kind}".rstrip())
        yield Span(
            case.trace, span_id(case.trace, "incident"), 0, name, case.since, max(case.since, entry.at), said,
            tuple(case.events), fault,
        )  # fmt: skip
        case.events = []


def _action(case: _Case, entry: Entry) -> Iterator[Span]:
    name, by = entry.subject, entry.data.get("by")
    deed = case.deeds.setdefault(name, _Deed())
    deed.remedy = str(entry.data.get("remedy") or deed.remedy)
    if isinstance(by, str):
        yield _ack(case, name, by, entry)
    elif entry.state == "sent":
        yield from _decided(case, name, entry.at, "sent", entry.text)
        deed.sent, case.sent = entry.at, name
    elif entry.state in _ENDS:
        yield from _decided(case, name, entry.at, entry.state, entry.text)
        del case.deeds[name]  # a knob on the move makes many
    elif deed.sent is None:
        deed.planned = entry.at if deed.planned is None else deed.planned
    else:
        fault = "" if entry.state == "done" else short(clean(entry.text))
        yield from _answered(case, name, entry.at, fault)
        yield from _watched(case, name, entry.at, fault)


def _decided(case: _Case, name: str, at: float, state: str, text: str) -> Iterator[Span]:
    deed = case.deeds[name]
    if deed.planned is None and state == "sent":  # taken back, or begun before anything was heard of it
        return
    said = (*_of(name, deed), ("gyrostat.state", state), ("gyrostat.text", short(clean(text))))
    since = at if deed.planned is None else deed.planned
    deed.planned = None
    yield _span(case, f"decision {deed.remedy}".rstrip(), ("decision", name), since, at, said)


def _answered(case: _Case, name: str, at: float, fault: str) -> Iterator[Span]:
    """The directive's span, once."""
    deed = case.deeds.get(name)
    if deed is None or deed.sent is None or deed.answered:
        return
    deed.answered = True
    what = ("directive", name)
    yield _span(case, f"directive {deed.remedy}".rstrip(), what, deed.sent, at, _of(name, deed), fault=fault)


def _watched(case: _Case, name: str, at: float, fault: str | None) -> Iterator[Span]:
    """The probation's span, where one goes on and it is this action's."""
    if case.watched is None or name != case.sent:
        return
    deed = case.deeds.get(name, _Deed())
    since, case.watched = case.watched, None
    what = ("probation", name, repr(since))
    yield _span(case, f"probation {deed.remedy}".rstrip(), what, since, at, _of(name, deed), fault=fault)


def _ack(case: _Case, name: str, by: str, entry: Entry) -> Span:
    deed = case.deeds[name]
    since = entry.at if deed.sent is None else deed.sent
    said = (*_of(name, deed), ("gyrostat.by", short(clean(by))), ("gyrostat.state", entry.state),
            ("gyrostat.step", number(entry.step)))  # fmt: skip
    fault = "" if entry.state == "applied" else short(clean(entry.text))
    parent = span_id(case.trace, "directive", name)
    return _span(case, f"ack {by}", ("ack", name, by), since, entry.at, said, fault=fault, parent=parent)


def _of(name: str, deed: _Deed) -> Said:
    return ("gyrostat.action", name), ("gyrostat.remedy", deed.remedy)


def _span(
    case: _Case, title: str, what: tuple[str, ...], since: float, until: float, said: Said, *,
    fault: str | None = None, parent: int = 0,
) -> Span:  # fmt: skip
    """A part of the incident; a clock that was set back makes it short, never negative."""
    until = max(since, until)
    parent = parent or span_id(case.trace, "incident")
    whose = ("gyrostat.incident", case.id)
    return Span(case.trace, span_id(case.trace, *what), parent, clean(title), since, until, (whose, *said), (), fault)


def _order(entry_id: str) -> tuple[int, int]:
    """Entries are numbered by turn and place."""
    turn, _, place = entry_id.partition(".")
    return (int(turn), int(place)) if turn.isdecimal() and place.isdecimal() else (0, 0)
