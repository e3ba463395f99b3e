"""Onset: the series that an incident was about, as they ran around its onset, read from the journal's inputs.

Bounded in turns, in points and in series, so that a report of many incidents stays small; what is not finite is never
thinned away. Inputs that the journal keeps no longer give no curves.
"""

import contextlib
import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gyrostat.wire import Record
from gyrostat_agent.diagnose.thinning import thinned
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.report.case import Case
from gyrostat_rules.experts import series_of
from gyrostat_rules.inputs import Batch
from gyrostat_rules.series import measured

_BEFORE, _AFTER = 100, 60  # steps shown before the onset and after the end
_TURNS_BEFORE, _TURNS = 250, 900  # turns read
_USUAL = ("reward", "loss", "grad_norm", "entropy")  # shown beside what the alerts name


class Size(NamedTuple):
    """How much of an incident is drawn."""

    series: int
    points: int


ALONE, OF_MANY = Size(8, 600), Size(3, 160)


class Stretch(NamedTuple):
    """Values of one segment in a row; ``undone``: the run went back over them."""

    segment: int
    undone: bool
    steps: tuple[int, ...]
    values: tuple[float, ...]


class Curve(NamedTuple):
    """One series of one process; ``merged``: that many records in a row are drawn as their mean."""

    name: str
    stretches: tuple[Stretch, ...]
    merged: int


def curves(journal: Journal, case: Case, size: Size) -> list[Curve]:
    """What is drawn for a case; nothing where its inputs are not there any more."""
    role, rank = _whose(case)
    records = list(_records(journal, case, role, rank))
    if not records:
        return []
    told = {name for record in records for name in record.values}
    each = math.ceil(len(records) / size.points)
    kept = list(thinned(records, each))
    shown = _chosen(case, told)[: size.series]
    return [Curve(f"{name} of {role} {rank}", _stretches(kept, name), each) for name in shown]


def _whose(case: Case) -> tuple[str, int]:
    """The process that the first alert names, where one is named by a number."""
    for alert in case.alerts.values():
        labels = (alert.data.get("labels") or {}) if alert else {}
        rank = str(labels.get("rank", ""))
        if labels.get("role") == "trainer" and rank.isascii() and rank.isdigit() and len(rank) < 8:
            return "trainer", int(rank)
    return "trainer", 0


def _records(journal: Journal, case: Case, role: str, rank: int) -> Iterator[Record]:
    """Its records around the incident, with what its expert counts come to."""
    last = case.closed_turn or case.turn + _TURNS
    with contextlib.suppress(JournalError):
        for turn in journal.turns(max(0, case.turn - _TURNS_BEFORE)):
            if turn.seq > min(last + _AFTER, case.turn + _TURNS):
                return
            for item in turn.given.items if isinstance(turn.given, Batch) else ():
                mine = isinstance(item, Record) and (item.role, item.rank) == (role, rank)
                if isinstance(item, Record) and mine and item.step >= case.onset - _BEFORE:
                    yield item._replace(values={**item.values, **series_of(item.load)}, load=None)


def _chosen(case: Case, told: set[str]) -> list[str]:
    """The series that the alerts name, then the usual ones, then what else there is."""
    named = [name for name in _named(case) if name in told]
    usual = [name for word in _USUAL for name in sorted(told) if measured(name) == word]
    return list(dict.fromkeys([*named, *usual]))


def _named(case: Case) -> Iterator[str]:
    for alert in case.alerts.values():
        if alert is not None:
            yield from _of_evidence(alert.data.get("evidence") or {})
            yield str((alert.data.get("labels") or {}).get("series", ""))
    yield from _of_evidence(case.evidence)


def _of_evidence(evidence: Mapping[str, object]) -> Iterator[str]:
    values = evidence.get("values")
    yield from (str(name) for name in (evidence.get("series"), evidence.get("knob")) if name)
    yield from map(str, values if isinstance(values, Mapping) else ())
    yield from (name for name in evidence if isinstance(name, str))


def _stretches(records: Iterable[Record], name: str) -> tuple[Stretch, ...]:
    """The parts of one series: of each segment what stands, and what a later one went back over."""
    parts: list[tuple[int, list[int], list[float]]] = []
    for record in records:
        if name not in record.values:
            continue
        again = bool(parts) and record.step <= parts[-1][1][-1]
        if not parts or parts[-1][0] != record.segment or again:
            parts.append((record.segment, [], []))
        parts[-1][1].append(record.step)
        parts[-1][2].append(record.values[name])
    found: list[Stretch] = []
    for place, (segment, steps, values) in enumerate(parts):
        back = min((later[0] for _, later, _ in parts[place + 1 :]), default=steps[-1] + 1)
        stands = bisect_left(steps, back)
        if stands:
            found.append(Stretch(segment, False, tuple(steps[:stands]), tuple(values[:stands])))
        if stands < len(steps):  # from the last that stands, so that the line is whole
            rest = max(0, stands - 1)
            found.append(Stretch(segment, True, tuple(steps[rest:]), tuple(values[rest:])))
    return tuple(found)
