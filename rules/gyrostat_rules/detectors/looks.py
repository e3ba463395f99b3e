"""Look: what one process has told of one series.

The detectors of numbers (spike, drift, drop, level, knob_drift) begin with these. A series is named by what it
measures: ``grad_norm`` finds ``grad_norm`` and, where none is called just that, ``actor/grad_norm``. Values that are
not finite are left out: they are another detector's, nonfinite's.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from gyrostat.wire import Record
from gyrostat_rules.manyranks import first_ranks
from gyrostat_rules.moment import Moment
from gyrostat_rules.series import measured
from gyrostat_rules.state import WINDOW, State, Window, key_of

Direction = Literal["up", "down", "both"]
Names = Annotated[tuple[str, ...], Field(min_length=1)]

# What trainers call each in their own way: a validation, a part of the reward that can be checked.
PATTERNS: Mapping[str, Callable[[str], object]] = {
    "any validation score": re.compile(
        r"(?i)(?:.*/)?(?:eval|val|valid|validation|test)(?:uation)?[-_/.].*(?:acc|score|reward|pass|correct|success|mean@)"
    ).match,
    "any checked reward": re.compile(r"(?i).*rewards?[-_/.].*(?:acc|correct|exact|verif|solv|pass)").match,
}


class Look(NamedTuple):
    """Finite values of one series of one process, oldest first, the newest last; never empty."""

    role: str
    rank: int
    series: str
    steps: Sequence[int]
    values: Sequence[float]

    @property
    def labels(self) -> dict[str, str]:
        """Whose series it is, as an alert's labels."""
        return {"role": self.role, "rank": str(self.rank), "series": self.series}


def looks(
    names: Iterable[str], state: State, moment: Moment, most: int = WINDOW, *, every_rank: bool = False
) -> Iterator[Look]:
    """A Look at each of the series, for each process that spoke: its last ``most`` values up to the moment's step.

    None where the newest value is not finite, or is older than the series' own spacing: one told every tenth step
    is looked at between its values too, so that its alert neither flickers nor stays once it is told no more. Of many
    ranks the first ones, and with ``every_rank`` all.
    """
    for record in moment.records if every_rank else first_ranks(moment):
        key = key_of(record.role, record.rank)
        windows = state.windows.get(key, {})
        for name in _found(names, windows, _known(moment, key, windows).measures):
            look = _look(record, key, name, windows[name], moment, most)
            if look is not None:
                yield look


def told(state: State, moment: Moment) -> frozenset[str]:
    """Names of all series of the processes that spoke, and what they measure."""
    names = frozenset[str]()
    for record in first_ranks(moment):
        key = key_of(record.role, record.rank)
        theirs = _known(moment, key, state.windows.get(key, {})).told
        names = theirs if not names else names if names is theirs else names | theirs
    return names


class _Known(NamedTuple):
    """What is measured by series of some names, and by which; and all that a rule may call them by."""

    measures: Mapping[str, tuple[str, ...]]
    told: frozenset[str]


def _known(moment: Moment, key: str, windows: Mapping[str, Window]) -> _Known:
    """Of one process's series; looked up once an input, for its names are told anew with every record."""
    count, known = moment.memo.get(("known", key), (-1, None))
    if count != len(windows):
        known = _of_names(tuple(windows))
        moment.memo["known", key] = len(windows), known
    return known  # type: ignore[no-any-return]


@lru_cache(maxsize=1024)
def _of_names(names: tuple[str, ...]) -> _Known:
    by_measure: dict[str, tuple[str, ...]] = {}
    for name in names:
        by_measure[measured(name)] = (*by_measure.get(measured(name), ()), name)
    patterns = (name for name, meant in PATTERNS.items() if any(map(meant, names)))
    return _Known(by_measure, frozenset((*names, *by_measure, *patterns)))


def _look(record: Record, key: str, name: str, window: Window, moment: Moment, most: int) -> Look | None:
    """One series up to the record's step. Many rules look at one: what they share is cut out once a moment."""
    shared = moment.looks.get((key, name))
    if shared is None:
        steps, values = _until(window, record.step, WINDOW)
        fresh = bool(steps) and _is_fresh(steps, record.step) and math.isfinite(values[-1])
        shared = moment.looks[key, name] = (fresh, math.isfinite(sum(values)), steps, values)
    fresh, finite, steps, values = shared
    if not fresh:
        return None
    if most < len(values):
        steps, values = steps[-most:], values[-most:]
    if not finite:
        kept = [(s, v) for s, v in zip(steps, values, strict=True) if math.isfinite(v)]
        steps, values = [s for s, _ in kept], [v for _, v in kept]
    return Look(record.role, record.rank, name, steps, values)


def _found(names: Iterable[str], windows: Mapping[str, Window], known: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for name in names:
        if name in windows:
            yield name
        elif name in PATTERNS:
            yield from filter(PATTERNS[name], windows)
        else:
            yield from known.get(name, ())


def found(names: Iterable[str], told: Iterable[str]) -> Iterator[str]:
    """The told series that ``names`` mean: the one of that very name, else all that measure it (docs/series.md)."""
    for name in names:
        if name in told:
            yield name
        elif name in PATTERNS:
            yield from filter(PATTERNS[name], told)
        else:
            yield from (other for other in told if measured(other) == name)


def _until(window: Window, step: int, most: int) -> tuple[list[int], list[float]]:
    """A process may be ahead of the moment: what it told of later steps is not looked at yet."""
    end = len(window.steps)
    if end and window.steps[-1] > step:
        end = bisect_right(window.steps, step)
    return window.steps[max(0, end - most) : end], window.values[max(0, end - most) : end]


def _is_fresh(steps: Sequence[int], step: int) -> bool:
    spacing = steps[-1] - steps[-2] if len(steps) > 1 else 1
    return step - steps[-1] < max(spacing, 1)
