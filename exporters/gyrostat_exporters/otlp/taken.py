"""Taken: what a collector says of a post that it took: some of it may have been refused all the same."""

from typing import NamedTuple

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

_ANSWERS: dict[str, tuple[type[Message], str]] = {
    "metrics": (ExportMetricsServiceResponse, "rejected_data_points"),
    "logs": (ExportLogsServiceResponse, "rejected_log_records"),
    "traces": (ExportTraceServiceResponse, "rejected_spans"),
}


class Refused(NamedTuple):
    """How many were not taken (of metrics: data points), and why, in the collector's words."""

    many: int = 0
    why: str = ""


def refused(signal: str, body: bytes) -> Refused:
    """What the answer to a post of ``signal`` says; an answer that is none says nothing."""
    kind, count = _ANSWERS[signal]
    answer = kind()
    try:
        answer.ParseFromString(body)
    except DecodeError:
        return Refused()
    said = getattr(answer, "partial_success", None)
    return Refused(max(0, int(getattr(said, count))), str(getattr(said, "error_message", "")))
