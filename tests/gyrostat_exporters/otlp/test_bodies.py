"""What is posted, decoded again: values by the page's names, entries as records, spans by their own ids."""

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from entry_runs import entry, mended
from exported_runs import NAN, full_view, long_view
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from gyrostat_exporters.metrics import COUNTER, NAMES, samples_of
from gyrostat_exporters.otlp.installed import missing
from gyrostat_exporters.otlp.logs import Line, facts, logs, severity
from gyrostat_exporters.otlp.metrics import metrics
from gyrostat_exporters.otlp.origin import nanos
from gyrostat_exporters.otlp.taken import Refused, refused
from gyrostat_exporters.otlp.traces import traces
from gyrostat_exporters.trail import Trail

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"


def exported(body: bytes) -> dict[str, Metric]:
    (resource,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    return {metric.name: metric for metric in resource.scope_metrics[0].metrics}


def test_metrics_are_those_of_the_page() -> None:
    """Each sample, by the name that the documentation has: no board or rule need know which way it came."""
    found = exported(metrics(long_view(), 2000.0, 1000.0))
    documented = set(re.findall(r"^\| `(\w+)` \| (?:gauge|counter)", DOCS.read_text(encoding="utf-8"), re.MULTILINE))
    assert set(found) <= documented
    told = {
        (table(name), tuple(a.value.string_value for a in p.attributes)): p.as_double
        for name, metric in found.items()
        for p in (metric.sum if metric.HasField("sum") else metric.gauge).data_points
    }  # fmt: skip
    assert told == {(name, labels): value for name, labels, value in samples_of(long_view())}


def table(name: str) -> str:
    """A metric's name in the table."""
    return name if name in NAMES else name.removesuffix("_total")


def test_counters_say_since_when_and_gauges_when() -> None:
    """Cumulative and monotonic, as Prometheus counts; help and unit are the page's."""
    found = exported(metrics(long_view(), 2000.0, 1000.0))
    steps, ready = found["gyrostat_steps_total"], found["gyrostat_ready"]
    (point,) = steps.sum.data_points
    assert (point.start_time_unix_nano, point.time_unix_nano) == (1000 * 10**9, 2000 * 10**9)
    assert steps.sum.is_monotonic and steps.sum.aggregation_temporality == 2  # cumulative
    assert ready.gauge.data_points[0].time_unix_nano == 2000 * 10**9
    assert steps.description == NAMES["gyrostat_steps"].help
    assert (found["gyrostat_lost_seconds_total"].unit, found["gyrostat_journal_bytes"].unit) == ("s", "By")
    assert {m.unit for name, m in found.items() if "seconds" not in name and "bytes" not in name} == {""}


def test_a_nan_is_a_counter_here_too() -> None:
    """No point is NaN; what was not finite is counted by series, rank and what it was."""
    found = exported(metrics(full_view(), 2000.0, 1000.0))
    points = [p for m in found.values() for p in (*m.sum.data_points, *m.gauge.data_points)]
    assert all(math.isfinite(p.as_double) for p in points)
    odd = [[a.value.string_value for a in p.attributes] for p in found["gyrostat_nonfinite_total"].sum.data_points]
    assert ["loss", "trainer", "0", "nan"] in odd and ["grad_norm", "trainer", "0", "-inf"] in odd


def test_a_time_that_is_none_breaks_no_export() -> None:
    """What a trainer calls time may be anything."""
    view = full_view()
    ranks = tuple(rank._replace(at=NAN) for rank in view.ranks)
    assert "gyrostat_last_record_timestamp_seconds" not in exported(metrics(view._replace(ranks=ranks), 2.0, 1.0))
    assert [nanos(at) for at in (NAN, -1.0, math.inf, 1.5)] == [0, 0, 0, 1_500_000_000]


def test_who_tells_stands_on_all() -> None:
    """The run's name as it is, in any script and with markup; a machine and a run are an instance."""
    name = "强化学习 <b>&amp;</b>"
    (resource,) = ExportMetricsServiceRequest.FromString(
        metrics(full_view()._replace(run=name), 2.0, 1.0)
    ).resource_metrics
    said = {a.key: a.value.string_value for a in resource.resource.attributes}
    assert said["gyrostat.run"] == name and said["service.name"] == "gyrostat"
    assert said["service.instance.id"] == f"{said['host.name']}/{name}"


def test_an_entry_is_a_record() -> None:
    """Time, words, what it is about and its facts, flat; and the trace that it belongs to."""
    one = entry(
        7, "incident", "i0001", "open", "loss is <b>nan</b>", incident_kind="nonfinite",
        evidence={"values": {"loss": NAN, "reward": -math.inf, "lr": 0.5}, "ranks": [0, 1], "applied": True},
        orders={"directive": "secret plans"}, absent=None, huge=10**30,
    )  # fmt: skip
    (record,) = (
        ExportLogsServiceRequest.FromString(logs("r", [Line(one, 255, 15)])).resource_logs[0].scope_logs[0].log_records
    )
    said = {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in record.attributes}
    assert record.body.string_value == "loss is <b>nan</b>" and record.time_unix_nano == 1007 * 10**9
    assert record.event_name == "gyrostat.incident" and record.severity_text == "WARN"
    assert int.from_bytes(record.trace_id, "big") == 255 and int.from_bytes(record.span_id, "big") == 15
    assert said == {
        "gyrostat.entry": "00000007.0", "gyrostat.kind": "incident", "gyrostat.subject": "i0001",
        "gyrostat.state": "open", "gyrostat.step": 7, "gyrostat.data.incident_kind": "nonfinite",
        "gyrostat.nonfinite.evidence.values.loss": "nan", "gyrostat.nonfinite.evidence.values.reward": "-inf",
        "gyrostat.data.evidence.values.lr": 0.5, "gyrostat.data.evidence.ranks.0": 0,
        "gyrostat.data.evidence.ranks.1": 1, "gyrostat.data.evidence.applied": True,
        "gyrostat.data.huge": str(10**30),
    }  # fmt: skip


def test_a_record_without_an_incident_has_no_trace() -> None:
    """Nothing, not the id 0."""
    (record,) = (
        ExportLogsServiceRequest.FromString(logs("r", [Line(mended()[0])])).resource_logs[0].scope_logs[0].log_records
    )
    assert record.trace_id == b"" and record.span_id == b""


def test_facts_are_bounded_and_those_not_finite_come_first() -> None:
    """A thousand facts are cut; a NaN among them is not."""
    many = {f"a{n}": float(n) for n in range(1000)}
    said = dict(facts(entry(1, "alert", "A", "firing", evidence={**many, "z": NAN})))
    assert len(said) <= 101 and said["gyrostat.nonfinite.evidence.z"] == "nan"


@pytest.mark.parametrize(
    "kind, state, data, expected",
    [
        ("alert", "firing", {"severity": "critical"}, "ERROR"),
        ("alert", "firing", {"severity": "warning"}, "WARN"),
        ("alert", "firing", {"severity": "info"}, "INFO"),
        ("alert", "resolved", {"severity": "critical"}, "INFO"),
        ("incident", "open", {}, "WARN"),
        ("incident", "stopped", {}, "ERROR"),
        ("incident", "resolved", {}, "INFO"),
        ("action", "sent", {}, "INFO"),
        ("action", "refused", {}, "WARN"),
        ("source", "fresh", {}, "INFO"),
        ("source", "stale", {}, "WARN"),
        ("checkpoint", "verified", {}, "INFO"),
    ],
)
def test_how_grave_an_entry_is(kind: str, state: str, data: dict[str, str], expected: str) -> None:
    """By what it is about and how that stands."""
    assert severity(entry(1, kind, "s", state, **data)).name == expected


def test_spans_keep_their_ids_and_say_how_they_ended() -> None:
    """Not those that the SDK would draw; an ill one says why."""
    trail = Trail("r")
    spans = [span for one in mended() for span in trail.hear(one, {})]
    sent = ExportTraceServiceRequest.FromString(traces("r", spans)).resource_spans[0].scope_spans[0].spans
    assert [int.from_bytes(s.span_id, "big") for s in sent] == [s.id for s in spans]
    assert {int.from_bytes(s.trace_id, "big") for s in sent} == {spans[0].trace}
    assert [int.from_bytes(s.parent_span_id, "big") for s in sent] == [s.parent for s in spans]
    assert [s.end_time_unix_nano for s in sent] == [int(s.until * 1e9) for s in spans]
    ill = next(s for s in sent if s.name == "probation turn")
    assert ill.status.code == ill.status.STATUS_CODE_ERROR and "ineffective" in ill.status.message
    assert len(sent[-1].events) == 7 and sent[-1].status.code == ill.status.STATUS_CODE_OK


def test_what_a_collector_did_not_take() -> None:
    """A number and its words; an answer that is none, or empty, says nothing."""
    part = ExportLogsPartialSuccess(rejected_log_records=3, error_message="too old")
    assert refused("logs", ExportLogsServiceResponse(partial_success=part).SerializeToString()) == Refused(3, "too old")
    assert refused("traces", b"") == refused("metrics", b"\xff\xff<html>") == Refused()


def test_it_says_what_is_missing() -> None:
    """Here nothing is; elsewhere the first of what is not there, without importing any of it."""
    assert missing() == ""
    script = (
        "import sys, importlib.abc\n"
        "class Gone(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'opentelemetry': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Gone())\n"
        "from gyrostat_exporters.otlp.installed import missing\n"
        "print(missing())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "opentelemetry.sdk._logs\n"


def test_nobody_who_did_not_ask_imports_it() -> None:
    """The agent's own modules and its command line do without."""
    script = (
        "import sys, gyrostat_agent.service, gyrostat_agent.cli.agent\n"
        "print([m for m in sys.modules if 'opentelemetry' in m])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_the_table_of_counters_is_that_of_the_page() -> None:
    """A sum has _total behind its name here as there."""
    found = exported(metrics(long_view(), 2000.0, 1000.0))
    assert {name for name, m in found.items() if m.HasField("sum")} <= {
        f"{name}_total" for name, said in NAMES.items() if said.kind == COUNTER
    }
