"""PageReader: one /metrics page after another as values.

Gauges are what they say, counters become rates and histograms quantiles, both of the interval between two pages, so
that the first page has none. A counter that became smaller was begun anew, with its process: what it says is then all
new. Each line is compared with itself, before engines of one page are added up: the restart of one is seen.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gyrostat_agent.sources.buckets import Buckets, added, described, since
from gyrostat_agent.sources.pagenames import (
    GPU,
    MEANT,
    MOST,
    ORDER,
    PREFIX_HITS,
    PREFIX_QUERIES,
    PREFIX_SHARE,
    QUANTILES,
    RATE,
    SUM,
    split,
)
from gyrostat_agent.sources.promtext import Sample, labels_of, samples

_LE = re.compile(r',?\s*\ble="([^"]*)"')
_LINES = 50_000  # of one page that are known by name
_BLANK = 1e18  # DCGM's word for no number is just below 2**63


class Whose(NamedTuple):
    """Whose values they are: role and rank within the page, and the UUID of a GPU."""

    role: str
    rank: int
    incarnation: str


class Page(NamedTuple):
    """What one page says. ``known`` of ``names`` names are ours."""

    values: Mapping[Whose, dict[str, float]]
    names: int
    known: frozenset[str]


class PageReader:
    """Reads the pages of one address, in order."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, str], float] = {}
        self._buckets: dict[tuple[str, str], Buckets] = {}
        self._at = math.nan

    def read(self, text: str, at: float) -> Page:
        """The values of a page that was fetched ``at``, in seconds of any clock."""
        split_: dict[str, tuple[str, str]] = {}
        rows: dict[str, list[tuple[str, Sample]]] = {}

        def wanted(name: str) -> bool:
            if name not in split_:
                split_[name] = split(name)
            return bool(split_[name][0])

        for count, sample in enumerate(samples(text, wanted)):
            if count >= _LINES:
                break
            family, part = split_[sample.name]
            rows.setdefault(family, []).append((part, sample))
        seconds, self._at = at - self._at, at
        values = self._values(_best(rows), seconds)
        return Page(values, len(split_), frozenset(rows))

    def _values(self, rows: Mapping[str, list[tuple[str, Sample]]], seconds: float) -> dict[Whose, dict[str, float]]:
        engine: dict[str, float] = {}
        gpus: dict[Whose, dict[str, float]] = {}
        counters: dict[tuple[str, str], float] = {}
        buckets: dict[tuple[str, str], Buckets] = {}
        for family, found in rows.items():
            meant = MEANT[family]
            numbers = [sample.value for _, sample in found]
            if meant.role == GPU:
                _add_gpus(gpus, meant.series, meant.scale, [sample for _, sample in found])
            elif meant.how in (SUM, MOST):
                engine[meant.series] = sum(numbers) if meant.how == SUM else _most(numbers)
            elif meant.how == RATE:
                counters.update({(family, sample.labels): sample.value for _, sample in found})
            elif meant.how == QUANTILES:
                buckets.update({(family, labels): row for labels, row in _histograms(found).items()})
        if seconds > 0:  # not at the first page, nor where the clock was set back
            engine.update(self._rates(counters, seconds))
            engine.update(self._quantiles(buckets))
        # What a page has left out once is not begun anew when it is there again.
        self._counters = {**self._counters, **counters} if len(self._counters) < _LINES else counters
        self._buckets = {**self._buckets, **buckets} if len(self._buckets) < _LINES else buckets
        _share_hits(engine)
        return {**({Whose("rollout", 0, ""): engine} if engine else {}), **gpus}

    def _rates(self, counters: Mapping[tuple[str, str], float], seconds: float) -> dict[str, float]:
        grown: dict[str, float] = {}
        for (family, labels), value in counters.items():
            before = self._counters.get((family, labels), 0.0)
            series = MEANT[family].series
            grown[series] = grown.get(series, 0.0) + (value - before if value >= before else value)
        return {series: total / seconds for series, total in grown.items()}

    def _quantiles(self, buckets: Mapping[tuple[str, str], Buckets]) -> dict[str, float]:
        rows: dict[str, list[Buckets]] = {}
        for key, now in buckets.items():
            rows.setdefault(MEANT[key[0]].series, []).append(since(now, self._buckets.get(key)))
        values: dict[str, float] = {}
        for series, found in rows.items():
            values.update(described(series, added(found)))
        return values


def _best(rows: Mapping[str, list[tuple[str, Sample]]]) -> dict[str, list[tuple[str, Sample]]]:
    """One name a series: the best of those that the page has."""
    best: dict[str, str] = {}
    for family in sorted(rows, key=lambda name: ORDER[name]):
        best.setdefault(MEANT[family].series, family)
    return {family: rows[family] for family in best.values()}


def _histograms(found: Iterable[tuple[str, Sample]]) -> dict[str, Buckets]:
    """The histograms of one name by their labels; counts on the page are of all values up to a bound."""
    below: dict[str, dict[float, float]] = {}
    totals: dict[str, float] = {}
    for part, sample in found:
        bound = _LE.search(sample.labels)
        if part == "_bucket" and bound and sample.value >= 0 and math.isfinite(sample.value):
            rest = _LE.sub("", sample.labels).lstrip(", ")
            below.setdefault(rest, {})[_bound(bound[1])] = sample.value
        elif part == "_sum":
            totals[sample.labels.strip(", ")] = sample.value
    rows: dict[str, Buckets] = {}
    for labels, counted in below.items():
        bounds = sorted(b for b in counted if not math.isnan(b))
        counts = [max(0.0, counted[b] - (counted[bounds[i - 1]] if i else 0.0)) for i, b in enumerate(bounds)]
        finite = tuple(b for b in bounds if b != math.inf)
        rows[labels] = Buckets(
            finite, (*counts, *[0.0] * (len(finite) + 1 - len(counts))), totals.get(labels, math.nan)
        )
    return rows


def _bound(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _add_gpus(gpus: dict[Whose, dict[str, float]], series: str, scale: float, found: Iterable[Sample]) -> None:
    """Each GPU's value by the number that it has on its machine; of the parts of a divided one the most."""
    for sample in found:
        labels = labels_of(sample.labels)
        number = labels.get("gpu", "")
        if number.isascii() and number.isdigit() and len(number) <= 4 and not abs(sample.value) >= _BLANK:
            values = gpus.setdefault(Whose(GPU, int(number), labels.get("UUID", "")), {})
            values[series] = _most([*([values[series]] if series in values else []), scale * sample.value])


def _most(numbers: Iterable[float]) -> float:
    """The largest; NaN where one is: it must not be hidden by the order in which they stand."""
    found = list(numbers)
    return math.nan if any(map(math.isnan, found)) else max(found)


def _share_hits(engine: dict[str, float]) -> None:
    """Of the tokens looked for in the prefix cache the share that was there, where that is counted."""
    hits, queries = engine.pop(PREFIX_HITS, math.nan), engine.pop(PREFIX_QUERIES, math.nan)
    if queries > 0 and hits >= 0:
        engine[PREFIX_SHARE] = hits / queries
