"""Look: what one process has told of one series. Usual: where such values lie, and how far a new one is from there.

The detectors of numbers (spike, drift, drop, level, knob_drift) begin with these. A series is named by what it
measures: ``grad_norm`` finds ``grad_norm`` and, where none is called just that, ``actor/grad_norm``. Values that are
not finite are left out: they are another detector's, nonfinite's.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

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

_SIGMA = 1.4826  # standard deviations in a median absolute deviation, for normal values
_POSITIVE = 0.9  # share of values that must be above 0 for logarithms: a KL begins at 0 and is positive ever after


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


class Usual(NamedTuple):
    """Median and standard deviation as the median absolute deviation gives it; of logarithms where ``log``."""

    middle: float
    spread: float
    log: bool

    @property
    def value(self) -> float:
        """The median in the series' own unit."""
        return math.exp(self.middle) if self.log else self.middle

    def distances(self, values: Iterable[float]) -> list[float]:
        """How many spreads each value lies above the median; minus infinity where there is no logarithm of it."""
        middle, spread, log = self.middle, self.spread, math.log
        if not self.log:
            return [(v - middle) / spread for v in values]
        return [(log(v) - middle) / spread if v > 0 else -math.inf for v in values]


def looks(names: Iterable[str], state: State, moment: Moment, most: int = WINDOW) -> Iterator[Look]:
    """A Look at each of the series, for each process that spoke: its last ``most`` values up to the moment's step.

    None where the newest value is not finite, or is older than the series' own spacing: one told every tenth step
    is looked at between its values too, so that its alert neither flickers nor stays once it is told no more.
    """
    for record in moment.records:
        key = key_of(record.role, record.rank)
        windows = state.windows.get(key, {})
        for name in _found(names, windows, measures(moment, key, windows)):
            steps, values = _until(windows[name], record.step, most)
            if steps and _is_fresh(steps, record.step) and math.isfinite(values[-1]):
                if not math.isfinite(sum(values)):
                    kept = [(s, v) for s, v in zip(steps, values, strict=True) if math.isfinite(v)]
                    steps, values = [s for s, _ in kept], [v for _, v in kept]
                yield Look(record.role, record.rank, name, steps, values)


def measures(moment: Moment, key: str, windows: Mapping[str, Window]) -> Mapping[str, list[str]]:
    """What is measured by a process's series, and the names of those that do; worked out once an input."""
    count, known = moment.memo.get(("measures", key), (0, {}))
    if count != len(windows):
        known = {}
        for name in windows:
            known.setdefault(measured(name), []).append(name)
        moment.memo["measures", key] = len(windows), known
    return known  # type: ignore[no-any-return]


def told(state: State, moment: Moment) -> set[str]:
    """Names of all series of the processes that spoke, and what they measure."""
    names = set[str]()
    for record in moment.records:
        key = key_of(record.role, record.rank)
        windows = state.windows.get(key, {})
        if not names.issuperset(windows):
            names.update(windows, measures(moment, key, windows))
            names.update(name for name, meant in PATTERNS.items() if any(map(meant, windows)))
    return names


def _found(names: Iterable[str], windows: Mapping[str, Window], known: Mapping[str, list[str]]) -> Iterator[str]:
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


def usual(values: Sequence[float], *, log: bool, floor: float) -> Usual | None:
    """The Usual of ``values``; None where they do not vary at all and give no scale.

    The spread is at least ``floor`` of the median (5 %): a series that hardly moves must not
    alarm at its first breath. ``log`` holds where nine of ten values are above 0, and plain values are taken elsewhere.
    """
    positive = [v for v in values if v > 0] if log else []
    if positive and len(positive) >= _POSITIVE * len(values):
        middle, spread = _robust([math.log(v) for v in positive])
        return Usual(middle, max(spread, math.log1p(floor), 1e-12), True)
    middle, spread = _robust(values)
    spread = max(spread, floor * abs(middle))
    return Usual(middle, spread, False) if spread > 0 else None


def _robust(values: Sequence[float]) -> tuple[float, float]:
    middle = median(values)
    return middle, _SIGMA * median([abs(v - middle) for v in values])


def _until(window: Window, step: int, most: int) -> tuple[list[int], list[float]]:
    """A process may be ahead of the moment: what it told of later steps is not looked at yet."""
    end = len(window.steps)
    if end and window.steps[-1] > step:
        end = bisect_right(window.steps, step)
    return window.steps[max(0, end - most) : end], window.values[max(0, end - most) : end]


def _is_fresh(steps: Sequence[int], step: int) -> bool:
    spacing = steps[-1] - steps[-2] if len(steps) > 1 else 1
    return step - steps[-1] < max(spacing, 1)
