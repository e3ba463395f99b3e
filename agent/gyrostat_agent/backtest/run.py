"""Run: the lines of one run as Records, fed to a fresh engine step by step, and what it told.

One Batch a step, and a clock that the steps make: the same lines give the same alerts anywhere, at any speed.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from gyrostat.wire import Record
from gyrostat_agent.backtest.case import Case
from gyrostat_agent.backtest.faults import fault_of
from gyrostat_agent.backtest.names import HF_FAMILY, form_of, names
from gyrostat_agent.sources.logs.formats.hffilter import LossFilter
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.inputs import Batch, Pack
from gyrostat_rules.pack import RulePack
from gyrostat_rules.packfile import parse

SECONDS = 10.0  # a step: of no meaning to rules that count steps, and far from what any calls a stall
parsed = lru_cache(maxsize=4)(parse)  # thousands of runs are judged by one pack
Row = tuple[int, int, dict[str, float]]  # segment, step, values


@dataclass(slots=True)
class Told:
    """An alert that fired. ``fault``: what it tells; ``until``: the step at which it was over, None where it was not.

    ``incident``: the kind that it may open; ``muted``: told as a consequence of a graver one, which was told too.
    """

    alert: str
    severity: str
    fault: str
    incident: str
    step: int
    onset: int
    muted: bool
    until: int | None = None


class Opened(NamedTuple):
    """An incident, by the alert that opened it."""

    kind: str
    alert: str
    fault: str
    step: int


@dataclass(slots=True)
class Course:
    """What was fed and what came of it. ``names``: all series there were; ``first``: the first step, -1 for none."""

    told: list[Told]
    opened: list[Opened]
    names: frozenset[str] = frozenset()
    steps: int = 0
    first: int = -1


def play(cases: Sequence[Case], text: str, digest: str) -> Course:
    """Feed the numbers of one run to a fresh engine with the pack ``text``, and hand back what it told."""
    engine, course, at = Engine(), Course([], []), 0.0
    pack, firing = parsed(text), dict[str, Told]()
    engine.feed(Pack(0.0, digest, text))
    before, seen = 0, set[int]()
    for number, (segment, step, values) in enumerate(rows(cases), 1):
        at += SECONDS * (step - before if step > before else 1)  # in a jump back too, time goes on
        record = Record("trainer", 0, "life", segment, number, step, at, values)
        for entry in engine.feed(Batch(at, (record,))):
            _note(course, pack, firing, entry, step)
        before = step
        seen.add(step)
    course.steps, course.first = len(seen), min(seen, default=-1)
    course.names = frozenset().union(*engine.state.windows.values())
    return course


def rows(cases: Sequence[Case]) -> Iterator[Row]:
    """The numbers of one run, step by step, under canonical names.

    A step that comes after a later one of its own series begins a new segment, as in a log; a series that is told so
    seldom that it does not show it is taken along. What is told twice for one
    step is the first, or the one that is not finite. A loss of 0 in which Hugging Face's trainers hide a NaN is one.
    """
    called, made = names(cases), dict[tuple[int, int], dict[str, float]]()
    ends = _ends(cases)
    for case in cases:
        for segment, step, value in _placed(case, ends):
            row = made.setdefault((segment, step), {})
            if case.signal not in row or not math.isfinite(value):
                row[case.signal] = value
    hidden = LossFilter() if any(form_of(case.trainer) in HF_FAMILY for case in cases) else None
    for (segment, step), row in sorted(made.items()):
        if hidden is not None:
            hidden.undo(row)
        yield segment, step, {called[signal]: value for signal, value in row.items()}


def _ends(cases: Sequence[Case]) -> list[int]:
    """The last step of each segment, by the series that shows most of them."""
    ends: list[int] = []
    for case in cases:
        steps = [step for step, _ in case.series]
        own = [step for step, later in pairwise([*steps, -1]) if later < step]
        ends = own if len(own) > len(ends) else ends
    return ends


def _placed(case: Case, ends: Sequence[int]) -> Iterator[tuple[int, int, float]]:
    """Segment, step and value of a series: what lies behind the end of a segment is of a later one."""
    segment, before = 0, -1
    for step, value in case.series:
        segment += step < before
        before = step
        while segment < len(ends) - 1 and step > ends[segment]:
            segment += 1
        yield segment, step, value


def _note(course: Course, pack: RulePack, firing: dict[str, Told], entry: Entry, step: int) -> None:
    if entry.kind == EntryKind.INCIDENT and "alerts" in entry.data:
        alert = str(entry.data["alerts"][0]).partition("{")[0]
        course.opened.append(Opened(str(entry.data["incident_kind"]), alert, fault_of(pack, alert), step))
    elif entry.kind == EntryKind.ALERT and entry.state == "firing":
        rule = next(rule for rule in pack.rules if rule.alert == entry.subject.partition("{")[0])
        onset, muted = int(entry.data.get("onset", step)), bool(entry.data.get("muted_by"))
        told = Told(rule.alert, rule.severity, fault_of(pack, rule.alert), rule.incident, step, onset, muted)
        course.told.append(told)
        firing[entry.subject] = told
    elif entry.kind == EntryKind.ALERT and entry.state == "resolved" and entry.subject in firing:
        firing.pop(entry.subject).until = step
