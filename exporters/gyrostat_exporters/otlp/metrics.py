"""Metrics: what ``/metrics`` shows of a view, under the same names, as one export."""

import math
from collections.abc import Iterable, Iterator

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)

from gyrostat.wire.fields import clean
from gyrostat_exporters.metrics import COUNTER, NAMES, samples_of
from gyrostat_exporters.otlp.origin import SCOPE, nanos, origin
from gyrostat_exporters.spans import short
from gyrostat_exporters.view import View

# A unit only where the name ends with it, for those that put it there themselves would else name it anew.
_UNITS = {"_seconds": "s", "_bytes": "By"}


def metrics(view: View, at: float, since: float) -> bytes:
    """A body for POST /v1/metrics: the view at ``at``; counters count since ``since`` (Unix seconds)."""
    rows: dict[str, list[tuple[tuple[str, ...], float]]] = {}
    for name, labels, value in samples_of(view):
        if math.isfinite(value):
            rows.setdefault(name, []).append((labels, value))
    made = [_metric(name, found, nanos(at), nanos(since)) for name, found in rows.items()]
    scoped = ScopeMetrics(SCOPE, made, "")
    body: bytes = encode_metrics(MetricsData([ResourceMetrics(origin(view.run), [scoped], "")])).SerializeToString()
    return body


def _metric(name: str, rows: Iterable[tuple[tuple[str, ...], float]], at: int, since: int) -> Metric:
    said = NAMES[name]
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
    if said.kind != COUNTER:
        return Metric(name, said.help, unit, Gauge(list(_points(said.labels, rows, at, at))))
    total = Sum(list(_points(said.labels, rows, at, since)), AggregationTemporality.CUMULATIVE, True)
    return Metric(f"{name}_total", said.help, unit, total)


def _points(
    names: tuple[str, ...], rows: Iterable[tuple[tuple[str, ...], float]], at: int, since: int
) -> Iterator[NumberDataPoint]:
    for labels, value in rows:
        said = {name: short(clean(label)) for name, label in zip(names, labels, strict=True)}
        yield NumberDataPoint(said, since, at, value)
