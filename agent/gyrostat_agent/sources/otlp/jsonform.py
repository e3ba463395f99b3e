"""The JSON form of an export, as protobuf's JSON mapping writes it, and as people and JavaScript write it by hand.

Numbers of 64 bits may be text; NaN and infinity are "NaN", "Infinity", bare, or null, which is what JSON.stringify
makes of them: a value that is there and null is NaN, one that is not there is none.
"""

import json
import math
from collections.abc import Iterator
from typing import Any

from gyrostat.wire.fields import clean
from gyrostat_agent.sources.buckets import Buckets
from gyrostat_agent.sources.logs.numerals import number
from gyrostat_agent.sources.otlp.points import ATTRIBUTES, DELTA, NAME_LENGTH, NO_VALUE, Export, Point

_DELTAS = (DELTA, str(DELTA), "AGGREGATION_TEMPORALITY_DELTA")
_KINDS = ("gauge", "sum", "histogram", "exponentialHistogram", "summary")


def decode(body: bytes) -> list[Export]:
    """The exports of a request; raises ValueError with a line that says what is wrong and where."""
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is not JSON: {error}") from None
    if not isinstance(raw, dict) or (raw and "resourceMetrics" not in raw):
        raise ValueError("this is no metrics request: it must be a mapping with resourceMetrics")
    return [_export(each, where) for each, where in _rows(raw, "resourceMetrics", "")]


def _export(raw: dict[str, Any], where: str) -> Export:
    points: list[Point] = []
    unread = 0
    for scope, inside in _rows(raw, "scopeMetrics", where):
        for metric, place in _rows(scope, "metrics", inside):
            found, odd = _metric(metric, place)
            points += found
            unread += odd
    resource = raw.get("resource")
    return Export(_attributes(resource, where) if isinstance(resource, dict) else {}, tuple(points), unread)


def _metric(raw: dict[str, Any], where: str) -> tuple[list[Point], int]:
    said = raw.get("name")
    name = clean(said)[:NAME_LENGTH] if isinstance(said, str) else ""
    kind = next((k for k in _KINDS if isinstance(raw.get(k), dict)), "")
    if not kind:
        return [], 0
    data = raw[kind]
    rows = [(row, place) for row, place in _rows(data, "dataPoints", f"{where}.{kind}") if not _absent(row, place)]
    if not name or kind in ("exponentialHistogram", "summary"):
        return [], len(rows)
    delta = data.get("aggregationTemporality") in _DELTAS
    if kind == "histogram":
        return [_histogram(row, place, name, delta) for row, place in rows], 0
    growing = data.get("isMonotonic") is True
    return [_number(row, place, name, growing, delta) for row, place in rows if _has_value(row)], 0


def _number(row: dict[str, Any], where: str, name: str, growing: bool, delta: bool) -> Point:
    value = _float(row["asDouble"] if "asDouble" in row else row["asInt"], where)
    return Point(name, _attributes(row, where), *_times(row, where), value, growing, delta)


def _histogram(row: dict[str, Any], where: str, name: str, delta: bool) -> Point:
    counts = tuple(_count(each, where) for each in _list(row, "bucketCounts", where))
    bounds = tuple(_float(each, where) for each in _list(row, "explicitBounds", where))
    if counts and len(counts) != len(bounds) + 1:
        raise ValueError(
            f"histogram {name!r} has {len(counts)} counts for {len(bounds)} bounds; there must be one more"
        )
    count = _count(row.get("count", 0), where)
    buckets = Buckets(bounds, counts or (count,), _float(row["sum"], where) if "sum" in row else math.nan)
    return Point(name, _attributes(row, where), *_times(row, where), count, True, delta, buckets)


def _has_value(row: dict[str, Any]) -> bool:
    return "asDouble" in row or "asInt" in row


def _absent(row: dict[str, Any], where: str) -> bool:
    flags = _float(row.get("flags", 0), where)
    return math.isfinite(flags) and bool(int(flags) & NO_VALUE)


def _times(row: dict[str, Any], where: str) -> tuple[float, float]:
    return tuple(_time(row.get(key, 0), where) for key in ("timeUnixNano", "startTimeUnixNano"))  # type: ignore[return-value]


def _time(said: Any, where: str) -> float:
    seconds = _float(said, where) / 1e9
    return seconds if 0.0 <= seconds < 1e11 else 0.0


def _attributes(raw: dict[str, Any], where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for row, _ in _rows(raw, "attributes", where):
        key, value = row.get("key"), row.get("value")
        if isinstance(key, str) and key and len(found) < ATTRIBUTES:
            found[clean(key)[:NAME_LENGTH]] = _value(value) if isinstance(value, dict) else ""
    return found


def _value(said: dict[str, Any]) -> str:
    for key in ("stringValue", "intValue", "doubleValue", "boolValue"):
        value = said.get(key)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (str, int, float)):
            return clean(str(value)[:NAME_LENGTH])
    return ""


def _float(said: Any, where: str) -> float:
    """A number or its text; null is NaN."""
    if said is None:
        return math.nan
    try:
        found = number(said) if isinstance(said, str) else float(said)
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        raise ValueError(f"{where}: {clean(str(said)[:40])!r} is not a number")
    return found


def _count(said: Any, where: str) -> float:
    found = _float(said, where)
    if not 0.0 <= found < math.inf:
        raise ValueError(f"{where}: a histogram cannot have counted {found} values")
    return found


def _rows(raw: dict[str, Any], key: str, where: str) -> Iterator[tuple[dict[str, Any], str]]:
    for place, row in enumerate(_list(raw, key, where)):
        inside = f"{where}.{key}[{place}]".lstrip(".")
        if not isinstance(row, dict):
            raise ValueError(f"{inside} must be a mapping")
        yield row, inside


def _list(raw: dict[str, Any], key: str, where: str) -> list[Any]:
    found = raw.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise ValueError(f"{where}.{key} must be a list".lstrip("."))
    return found
