"""Values that are not finite, by class (docs/series.md).

*Poison* feeds or measures the update. *Undefined* is a mean over nothing. *Missing* is a key that used to be
there and vanished while a neighbour is non-finite: poison in disguise, since Megatron omits a NaN loss and
verl's JSON writes null.

A poison value is confirmed, and only then critical, when the step was applied, a parameter is non-finite, the
record before it was poisoned too, a hand turned a knob just before, or the process died on it: one bad row that
the trainer itself skipped is not an incident (the public case of a NaN that recovers by itself after one row trips
every loss-NaN rule).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from gyrostat.wire import Record
from gyrostat.wire.messages import spell
from gyrostat_rules import series
from gyrostat_rules.detectors.gauge import ABOVE, Gauge
from gyrostat_rules.detectors.knobdrift import KnobDrift, knob_drift
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State, Window, key_of

POISON, MISSING, UNDEFINED = CLASSES = ("poison", "missing", "undefined")
_JUST_BEFORE = 10  # steps from a turned knob to the value that it may explain
_SEEN_BEFORE = 3  # values a key must have shown before its absence means anything; their spacing says when it is due


class NonFinite(NamedTuple):
    """``classes``: poison, missing, undefined. ``confirmed``: only what has harmed the run or goes on."""

    classes: tuple[Literal["poison", "missing", "undefined"], ...] = ("poison", "missing")
    confirmed: bool = False


def nonfinite(params: NonFinite, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a process whose newest record holds a value of the wanted classes."""
    for record in _suspects(moment) if moment.records else _records(state, moment):
        found = _wanted(params, record, state)
        reason = _confirmation(record, state, moment) if found else ""
        if not found or (params.confirmed and not reason):
            continue
        yield _reading(record, found, reason if params.confirmed else "", state)


def nonfinite_gauges(params: NonFinite, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a process: how many values of the wanted classes its newest record holds."""
    for record in _records(state, moment):
        found = _wanted(params, record, state)
        said = ", ".join(f"{name} ({kind})" for name, kind in sorted(found.items())) or "all that it told is finite"
        count = len(found)
        if found and params.confirmed:
            reason = _confirmation(record, state, moment)
            said, count = (f"{said}; {reason}", count) if reason else (f"{said}; nothing shows that it did harm", 0)
        labels = {"role": record.role, "rank": str(record.rank)}
        yield Gauge(labels, "", float(count), 0.0, ABOVE, said, f"values that are {' or '.join(params.classes)}")


def _wanted(params: NonFinite, record: Record, state: State) -> dict[str, str]:
    """The series of a record that are of the wanted classes, and which."""
    found: dict[str, str] = {n: c for n, c in classify(record, state).items() if c in params.classes}
    if params.confirmed:
        windows = state.windows.get(key_of(record.role, record.rank), {})
        found = {n: c for n, c in found.items() if _speaks(n, windows)}
    return found


def _suspects(moment: Moment) -> Sequence[Record]:
    """The moment's records that are not finite throughout; picked once a moment, for there may be hundreds."""
    if "suspects" not in moment.looks:
        moment.looks["suspects"] = [r for r in moment.records if not _is_finite(r)]
    return moment.looks["suspects"]  # type: ignore[no-any-return]


def _is_finite(record: Record) -> bool:
    """Fast: a finite sum has only finite terms."""
    return math.isfinite(sum(record.values.values())) and record.values.get(series.PARAMS_FINITE) != 0.0


def _records(state: State, moment: Moment) -> Iterable[Record]:
    """The moment's records; where it has none, the last word of each process that died."""
    if moment.records:
        return moment.records
    last = [(p, state.recent[key][-1]) for key, p in state.processes.items() if p.died and state.recent.get(key)]
    return [record for process, record in last if record.incarnation == process.incarnation]


def classify(record: Record, state: State) -> dict[str, str]:
    """Each suspicious series of a record and its class."""
    if _is_finite(record):
        return {}
    found = {n: series.meaning(n) for n, v in record.values.items() if not math.isfinite(v)}
    if record.values.get(series.PARAMS_FINITE) == 0.0:  # an expert that nobody routes to shows in no loss
        found[series.PARAMS_FINITE] = POISON
    if found:
        windows = state.windows.get(key_of(record.role, record.rank), {})
        gone = (n for n, w in windows.items() if n not in record.values and _is_due(w, record.step))
        found.update({n: MISSING for n in gone if series.meaning(n) == series.POISON})
    return found


def _speaks(name: str, windows: dict[str, Window]) -> bool:
    """False for a measurement that never was finite: one that is NaN from the first step on says nothing of the run."""
    return series.feeds_update(name) or any(map(math.isfinite, windows[name].values if name in windows else ()))


def _is_due(window: Window, step: int) -> bool:
    """True where a series should have shown at ``step``: one told every tenth step is not missing in between."""
    last = window.steps[-_SEEN_BEFORE:]
    usual = max((b - a for a, b in pairwise(last)), default=0)
    return len(last) == _SEEN_BEFORE and step - last[-1] >= max(usual, 1)


def _is_suspect(record: Record, state: State) -> bool:
    windows = state.windows.get(key_of(record.role, record.rank), {})
    return any(c in (POISON, MISSING) and _speaks(n, windows) for n, c in classify(record, state).items())


def _confirmation(record: Record, state: State, moment: Moment) -> str:
    """Why a poisoned record is more than one bad row, or ''."""
    key = key_of(record.role, record.rank)
    if record.values.get(series.PARAMS_FINITE, 1.0) == 0.0:
        return "a parameter is not finite"
    if record.values.get(series.STEP_APPLIED, 0.0) == 1.0:
        return "the optimizer step was applied"
    earlier = [r for r in state.recent.get(key, []) if r.step < record.step and r.segment == record.segment]
    if earlier and _is_suspect(earlier[-1], state):
        return "the record before it was not finite either"
    bad = [_is_suspect(r, state) for r in earlier[-4:]]
    if sum(bad) >= 2 and not any(a and b for a, b in pairwise(bad)):  # two in a row were told before
        return "three of the last five records were not finite"
    if record.values.get(series.GUARD_EXHAUSTED, 0.0) == 1.0:
        return "the step guard is spent: the next one like it will be applied"
    if drifted := [r for r in knob_drift(KnobDrift(), state, moment) if record.step - r.onset <= _JUST_BEFORE]:
        return f"and {drifted[0].why}"
    if not moment.records:
        return f"the process died on it ({state.processes[key].ended})"
    return ""


def _reading(record: Record, found: dict[str, str], reason: str, state: State) -> Reading:
    name = min(found, key=lambda n: (CLASSES.index(found[n]), n))
    shown = {n: spell(record.values[n]) if n in record.values else "missing" for n in sorted(found)}
    why = ", ".join(f"{n} is {v}" for n, v in list(shown.items())[:4]) + (f"; {reason}" if reason else "")
    evidence = {
        "values": shown,
        "classes": dict(sorted(found.items())),
        "applied": bool(record.values.get(series.STEP_APPLIED, 0.0) == 1.0)
        or record.values.get(series.PARAMS_FINITE, 1.0) == 0.0,
        "data": _data(record),
    }
    value = record.values.get(name, math.nan)
    return Reading({"role": record.role, "rank": str(record.rank)}, value, _onset(record, state), why, evidence)


def _data(record: Record) -> dict[str, int]:
    """The data that the step saw, as far as the trainer says: the suspect item, and the cursor's range."""
    out = {}
    for key in (series.SUSPECT_ITEM, series.DATA_CURSOR, series.DATA_ITEMS):
        value = record.values.get(key, math.nan)
        if math.isfinite(value):
            out[key] = int(value)
    return out


def _onset(record: Record, state: State) -> int:
    """The first step of the unbroken row of poisoned records that this one ends."""
    windows = state.windows.get(key_of(record.role, record.rank), {})
    first = record.step
    for name, window in windows.items():
        if series.meaning(name) != POISON or not _speaks(name, windows):
            continue
        for step, value in zip(reversed(window.steps), reversed(window.values), strict=True):
            if step > record.step:
                continue
            if math.isfinite(value):
                break
            first = min(first, step)
    return first
