"""OTLP as it is posted: by real exporters' bytes over a real socket, answered as they expect."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from http_posts import DATA, post
from otlp_bodies import as_json, gauge, point

from gyrostat_agent.sources.httpin import HttpIn
from gyrostat_agent.sources.otlp import PATH, OtlpIn, receiver
from gyrostat_agent.sources.postbox import PostBox

OTLP = DATA / "otlp"
PROTOBUF = "application/x-protobuf"


class Receiving(NamedTuple):
    """A server, its OTLP route, and how often the loop was woken, one entry each."""

    server: HttpIn
    otlp: OtlpIn
    woken: list[bool]


@pytest.fixture
def receiving() -> Iterator[Receiving]:
    """A receiver on a free port."""
    woken: list[bool] = []
    otlp = OtlpIn(lambda: woken.append(True))
    server = HttpIn("127.0.0.1:0", {PATH: otlp.take})
    yield Receiving(server, otlp, woken)
    server.close()


@pytest.mark.parametrize(
    ("file", "kind", "packing"),
    [
        ("sdk-1.45-2.bin", PROTOBUF, ""), ("gzip-2.bin", PROTOBUF, "gzip"), ("deflate-2.bin", PROTOBUF, "deflate"),
        ("sdk-1.45-2.json", "application/json", ""), ("mapped-2.json", "application/json; charset=utf-8", ""),
    ],
)  # fmt: skip
def test_what_real_exporters_post(receiving: Receiving, file: str, kind: str, packing: str) -> None:
    """Is taken, and answered in its own encoding: an empty response is a full success."""
    said = post(receiving.server.address, PATH, (OTLP / file).read_bytes(), kind, Content_Encoding=packing)
    assert said.status == 200 and said.body == (b"" if kind == PROTOBUF else b"{}")
    assert said.headers["content-type"] == kind.partition(";")[0]
    told = receiving.otlp.drain()
    assert [row.step for row in told] == [1, 2, 3, 3] and told[1].values["loss"] == 1.0
    assert receiving.woken == [True] and receiving.otlp.drain() == []


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"\x0a\xff\x01", PROTOBUF, 400), (b"not json", "application/json", 400), (b"{}", "text/html", 415),
        (b'{"resourceMetrics": {}}', "application/json", 400), (b"\x80" * 50, "application/protobuf", 400),
    ],
)  # fmt: skip
def test_nonsense_is_answered_with_a_line(receiving: Receiving, body: bytes, kind: str, status: int) -> None:
    """As google.rpc.Status in the encoding of the post; nothing of it is told."""
    said = post(receiving.server.address, PATH, body, kind)
    assert said.status == status
    text = said.body if "protobuf" in kind else json.loads(said.body)["message"].encode()
    assert b"this is" in text or b"must be" in text
    assert receiving.otlp.drain() == [] and receiving.woken == [] and receiving.server.refused == 1
    assert receiving.otlp.nonsense == (status == 400)


@pytest.mark.parametrize("kind", [PROTOBUF, "application/json"])
def test_what_is_not_read_is_said(receiving: Receiving, kind: str) -> None:
    """As a partial success, so that whoever exports may know."""
    summary = b"\x0a\x0d\x12\x0b\x12\x09\x0a\x01x\x5a\x04\x0a\x02\x30\x01"
    text = as_json({"name": "x", "summary": {"dataPoints": [{}]}})
    said = post(receiving.server.address, PATH, summary if kind == PROTOBUF else text, kind)
    assert said.status == 200 and b"are not read" in said.body and receiving.otlp.unread == 1
    if kind == PROTOBUF:
        assert said.body[2:4] == b"\x08\x01"
    else:
        assert json.loads(said.body)["partialSuccess"]["rejectedDataPoints"] == "1"


def test_a_loop_that_does_not_keep_up(receiving: Receiving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever posts is told to come again, and what is taken then is whole."""
    monkeypatch.setattr(receiver, "PostBox", lambda wake: PostBox(wake, most=3))
    otlp = OtlpIn()
    for step in range(3):
        assert otlp.take(as_json(gauge("loss", point(float(step), step=step))), "application/json").status == 200
    late = as_json(gauge("loss", point(3.0, step=3)))
    assert otlp.take(late, "application/json").status == 503
    assert [row.step for row in otlp.drain()] == [0, 1, 2]
    assert otlp.take(late, "application/json").status == 200
    assert [row.step for row in otlp.drain()] == [3]


def test_a_live_exporter(receiving: Receiving) -> None:
    """The SDK of this machine, where it is installed."""
    metrics = pytest.importorskip("opentelemetry.sdk.metrics", reason="opentelemetry-sdk is not installed (extra otlp)")
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    http = pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http.metric_exporter", reason="its OTLP exporter is not installed"
    )
    exporter = http.OTLPMetricExporter(endpoint=f"http://{receiving.server.address}{PATH}")
    reader = export.PeriodicExportingMetricReader(exporter, export_interval_millis=10_000_000)
    provider = metrics.MeterProvider([reader])
    loss = provider.get_meter("trainer").create_gauge("loss")
    for step in (1, 2):
        loss.set(1.0 / step, {"step": step})
        assert provider.force_flush()
    provider.shutdown()
    assert [(row.step, row.values) for row in receiving.otlp.drain()] == [(1, {"loss": 1.0}), (2, {"loss": 0.5})]
