"""Rows: the points of OTLP exports as what a trainer told of its steps.

SDKs send a point again with every export, stamped anew, for as long as the process lives: what was told before is
passed over, and a row in which nothing has changed is no row. Else a trainer that hangs would seem to go on.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gyrostat_agent.sources.buckets import Buckets, described, since
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Told
from gyrostat_agent.sources.otlp.points import Export, Point

STEPS = ("step", "global_step", "train_step", "training_step", "iteration")
RANKS = ("rank", "global_rank", "process_rank")
_PHASES = ("phase", "split")
_EVALUATION = ("eval", "evaluation", "val", "valid", "validation", "test")
_TRAINING = ("train", "training")
_STREAMS = 1 << 17  # more than the largest body has points, so that none is forgotten between two exports of it
_SOURCES = 1024
_NAMES = 1000
_RANKS = 4096
_SECONDS = 1e-3  # an interval below has no rate


class _Place(NamedTuple):
    """Where a value belongs. ``labels``: the attributes that say neither step, rank nor phase."""

    step: int | None
    rank: int
    phase: str
    labels: tuple[tuple[str, str], ...]


class _Last(NamedTuple):
    """What a stream told last: its time, the value as told, and what it adds up to."""

    at: float
    start: float
    value: float
    total: float
    buckets: Buckets | None


class _Source:
    """One process that exports: its newest step, and its newest row without one by rank and phase."""

    def __init__(self) -> None:
        self.step: int | None = None
        self.rows: dict[tuple[int, str], dict[str, float]] = {}


class Rows:
    """Turns exports into rows, in order. Not for two threads at once."""

    def __init__(self) -> None:
        self._sources: OrderedDict[int, _Source] = OrderedDict()
        self._streams: OrderedDict[int, _Last] = OrderedDict()
        self._labels: dict[str, dict[str, str]] = {}  # of each metric: the value each label had first
        self._varied: dict[str, set[str]] = {}
        self._names: set[str] = set()
        self._rates: set[str] = set()  # names made here: a rate that has become 0 is nothing that anybody told

    def of(self, exports: Iterable[Export]) -> tuple[list[Told], int]:
        """The rows, and how many points were not read: of kinds nobody reads, or of names beyond a thousand."""
        told: list[Told] = []
        unread = 0
        for export in exports:
            rows, odd = self._export(export)
            told += rows
            unread += export.unread + odd
        return told, unread

    def _export(self, export: Export) -> tuple[list[Told], int]:
        identity = hash(tuple(sorted(export.resource.items())))
        source = self._sources.pop(identity, None) or _Source()
        self._sources[identity] = source
        while len(self._sources) > _SOURCES:
            self._sources.popitem(last=False)
        placed = [(_place(point, export.resource), point) for point in sorted(export.points, key=lambda p: p.at)]
        for place, point in placed:
            self._learn(point.name, place)
        said = {place.rank: int(p.value) for place, p in placed if _says_step(p)}
        steps = [s for s in (*(place.step for place, _ in placed), *said.values()) if s is not None]
        source.step = max(steps) if steps else source.step
        return self._rows(identity, source, [(place, p) for place, p in placed if not _says_step(p)], said)

    def _rows(
        self, identity: int, source: _Source, placed: list[tuple[_Place, Point]], said: Mapping[int, int]
    ) -> tuple[list[Told], int]:
        """Points of one step as one row; those without one as a row of the newest step, where any was ever told."""
        open_: dict[tuple[int | None, int, str], tuple[dict[str, float], float]] = {}
        told: list[Told] = []
        unread = 0
        for place, point in placed:
            name = self._name(point.name, place)
            if not name:
                unread += 1
                continue
            values = self._values(identity, name, place, point)
            key = (place.step, place.rank, place.phase)
            row, at = open_.get(key, ({}, 0.0))
            if place.step is None and row.keys() & values.keys():  # an older one of the same name, sent late
                told += self._stepless(source, said, key, row, at)
                row = {}
            if values:
                open_[key] = ({**row, **values}, max(at, point.at))
        rows = [
            (at, Told(v, s, phase, rank, at or None)) for (s, rank, phase), (v, at) in open_.items() if s is not None
        ]
        rows.sort(key=lambda r: (r[0], r[1].step or 0))
        last = [self._stepless(source, said, key, v, at) for key, (v, at) in open_.items() if key[0] is None]
        return [row for _, row in rows] + told + [row for each in last for row in each], unread

    def _stepless(
        self,
        source: _Source,
        said: Mapping[int, int],
        key: tuple[int | None, int, str],
        row: dict[str, float],
        at: float,
    ) -> list[Told]:
        """A row without a step of its own, unless it repeats the one before."""
        _, rank, phase = key
        if len(source.rows) > _RANKS:
            source.rows.clear()
        known = source.rows.setdefault((rank, phase), {})
        news = [n for n, v in row.items() if n not in self._rates and not (n in known and _same(known[n], v))]
        known.update(row)
        if not news:
            return []
        return [Told(row, said.get(rank, source.step), phase, rank, at or None)]

    def _values(self, identity: int, name: str, place: _Place, point: Point) -> dict[str, float]:
        """What a point says that is new; nothing where it was told before."""
        key = hash((identity, point.name, place))
        last = self._streams.pop(key, None)
        if last is not None and point.delta and (point.at, point.start) == (last.at, last.start):
            self._streams[key] = last  # posted again: its answer was lost
            return {}
        grown = _grown(point, last)
        total = grown + (last.total if last is not None and point.delta else 0.0) if point.delta else point.value
        self._streams[key] = _Last(point.at, point.start, point.value, total, point.buckets)
        while len(self._streams) > _STREAMS:
            self._streams.popitem(last=False)
        if point.buckets is not None:
            same_life = last is not None and not point.delta and last.start == point.start
            return described(name, since(point.buckets, last.buckets if last is not None and same_life else None))
        if place.step is not None and last is not None and _same(last.value, point.value) and not point.delta:
            return {}
        if not point.growing:
            return {name: point.value}
        seconds, rate = _seconds(point, last), f"{name}_per_second"
        self._rates.add(rate)
        return {name: total, rate: grown / seconds} if seconds > _SECONDS else {name: total}

    def _learn(self, name: str, place: _Place) -> None:
        """Which labels tell values of one name apart: those that have had two values."""
        if name not in self._labels and len(self._labels) >= _NAMES:
            return
        first = self._labels.setdefault(name, {})
        for label, value in place.labels:
            if first.setdefault(label, value) != value:
                self._varied.setdefault(name, set()).add(label)

    def _name(self, name: str, place: _Place) -> str:
        """The metric's name, with the labels that tell its values apart behind it; '' where there are too many."""
        varied = self._varied.get(name)
        if varied:
            name = "/".join((name, *(value for label, value in place.labels if label in varied)))
        if name not in self._names:
            if len(self._names) >= _NAMES:
                return ""
            self._names.add(name)
        return name


def _place(point: Point, resource: Mapping[str, str]) -> _Place:
    step, rank, phase = None, _whole(next((resource[k] for k in RANKS if k in resource), "")), TRAIN
    labels: list[tuple[str, str]] = []
    for key, value in sorted(point.attributes.items()):
        word = key.lower().replace(".", "_")
        if word in STEPS and (found := _whole(value)) is not None:
            step = found
        elif word in RANKS and (found := _whole(value)) is not None:
            rank = found
        elif word in _PHASES and value.lower() in _EVALUATION + _TRAINING:
            phase = EVAL if value.lower() in _EVALUATION else TRAIN
        else:
            labels.append((key, value))
    return _Place(step, rank or 0, phase, tuple(labels))


def _says_step(point: Point) -> bool:
    """True for a gauge that is called ``global_step`` or the like: it is the step, not a series."""
    word = point.name.lower().replace(".", "/").rpartition("/")[2]
    return word in STEPS and point.buckets is None and 0.0 <= point.value < 1e15


def _whole(text: str) -> int | None:
    bare = text.removesuffix(".0")
    return int(bare) if bare.isascii() and bare.isdigit() and len(bare) <= 15 else None


def _grown(point: Point, last: _Last | None) -> float:
    """By how much a sum has grown since it was last told; all of it where it was begun anew."""
    if point.delta or last is None or last.start != point.start or point.value < last.value:
        return point.value
    return point.value - last.value


def _seconds(point: Point, last: _Last | None) -> float:
    begun_anew = last is None or last.start != point.start or point.value < last.value
    since_when = point.start if point.delta or begun_anew or last is None else last.at
    return point.at - since_when if since_when > 0 else 0.0


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
