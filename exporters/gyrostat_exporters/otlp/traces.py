"""Traces: spans as one export. Their ids are their own; the SDK would draw others at each start."""

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SdkEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from gyrostat_exporters.otlp.origin import SCOPE, nanos, origin
from gyrostat_exporters.spans import Span


def traces(run: str, spans: Sequence[Span]) -> bytes:
    """A body for POST /v1/traces."""
    told = origin(run)
    body: bytes = encode_spans([_span(told, span) for span in spans]).SerializeToString()
    return body


def _span(told: Resource, span: Span) -> ReadableSpan:
    return ReadableSpan(
        span.name, _place(span.trace, span.id), _place(span.trace, span.parent) if span.parent else None, told,
        dict(span.said), [SdkEvent(one.name, dict(one.said), nanos(one.at)) for one in span.events],
        kind=SpanKind.INTERNAL, status=_status(span.fault), start_time=nanos(span.since), end_time=nanos(span.until),
        instrumentation_scope=SCOPE,
    )  # fmt: skip


def _place(trace: int, span: int) -> SpanContext:
    return SpanContext(trace, span, False, TraceFlags(TraceFlags.SAMPLED))


def _status(fault: str | None) -> Status:
    if fault is None:
        return Status(StatusCode.UNSET)
    return Status(StatusCode.ERROR, fault) if fault else Status(StatusCode.OK)
