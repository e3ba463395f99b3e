"""Logs: a journal entry as a log record, and records as one export."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.trace import TraceFlags

from gyrostat.wire.fields import clean
from gyrostat.wire.messages import spell
from gyrostat_exporters.otlp.origin import SCOPE, nanos, origin
from gyrostat_exporters.spans import Said, number, short
from gyrostat_rules.alerts import RESOLVED
from gyrostat_rules.entries import Entry, EntryKind
from gyrostat_rules.incidents import STOPPED
from gyrostat_rules.inputs import SourceWord

_FACTS = 96  # attributes of one record: backends keep 128
_NOT_SENT = ("orders",)  # a directive as it was written: long, and in the journal
_ALERTS = {"critical": SeverityNumber.ERROR, "warning": SeverityNumber.WARN}
_FAULTS = ("failed", "refused", "timed out", "ineffective", "unknown", "deny")


class Line(NamedTuple):
    """An entry, and the trace and span that it belongs to, 0 for none."""

    entry: Entry
    trace: int = 0
    span: int = 0


def logs(run: str, lines: Sequence[Line]) -> bytes:
    """A body for POST /v1/logs."""
    told = origin(run)
    body: bytes = encode_logs([ReadableLogRecord(_record(line), told, SCOPE) for line in lines]).SerializeToString()
    return body


def _record(line: Line) -> LogRecord:
    entry, how = line.entry, severity(line.entry)
    flags = TraceFlags(TraceFlags.SAMPLED if line.trace else TraceFlags.DEFAULT)
    record = LogRecord(
        timestamp=nanos(entry.at), observed_timestamp=nanos(entry.at), severity_text=how.name, severity_number=how,
        body=short(clean(entry.text)), attributes=dict(facts(entry)), event_name=f"gyrostat.{entry.kind}",
    )  # fmt: skip
    record.trace_id, record.span_id, record.trace_flags = line.trace, line.span, flags
    return record


def severity(entry: Entry) -> SeverityNumber:
    """How grave an entry is."""
    if entry.state == RESOLVED:
        return SeverityNumber.INFO
    if entry.kind == EntryKind.ALERT:
        return _ALERTS.get(str(entry.data.get("severity", "")), SeverityNumber.INFO)
    if entry.kind == EntryKind.INCIDENT:
        return SeverityNumber.ERROR if entry.state == STOPPED else SeverityNumber.WARN
    ill = entry.state in _FAULTS or (entry.kind == EntryKind.SOURCE and entry.state != SourceWord.FRESH)
    return SeverityNumber.WARN if ill or entry.kind == EntryKind.RULE else SeverityNumber.INFO


def facts(entry: Entry) -> Said:
    """The attributes: what the entry is about, and its data, flat. A number that is not finite is spelled beside it."""
    own = (
        ("gyrostat.entry", entry.id), ("gyrostat.kind", entry.kind), ("gyrostat.subject", short(clean(entry.subject))),
        ("gyrostat.state", clean(entry.state)), ("gyrostat.step", number(entry.step)),
    )  # fmt: skip
    data = {name: value for name, value in entry.data.items() if name not in _NOT_SENT}
    odd = [(f"gyrostat.nonfinite.{name}", spell(value)) for name, value in _flat(data) if _is_odd(value)]
    usual = ((f"gyrostat.data.{name}", value) for name, value in _flat(data) if not _is_odd(value))
    return (*own, *islice((*odd, *usual), _FACTS))


def _is_odd(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Each value by its path; the numbers of a list are its parts' names."""
    if isinstance(value, (Mapping, list, tuple)):
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, part in parts:
            yield from _flat(part, f"{name}.{short(clean(str(key)))}" if name else short(clean(str(key))))
    elif isinstance(value, str):
        yield name, short(clean(value))
    elif isinstance(value, int):  # and bool
        yield name, number(value)
    elif isinstance(value, float):
        yield name, value
    elif value is not None:
        yield name, short(clean(str(value)))
