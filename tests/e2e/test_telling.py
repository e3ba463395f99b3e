"""What must hold of an OTLP collector beside a real run: an incident's whole trace, whoever dies meanwhile."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from collector_runs import Collector, collecting, named, said
from processes import Place, ended, until

from gyrostat_agent.journal import Journal

Places = Callable[..., Place]
NAME = "强化学习 <b>{{ .Status }}<|b>"
PAUSED = ("--items", "60", "--poison", "20", "--gates", "22")  # while the remedy is still being watched
TRACE = {
    "incident nonfinite", "alert NonFinitePoison", "decision skip_data", "directive skip_data", "ack trainer/0",
    "probation skip_data",
}  # fmt: skip


@pytest.fixture
def collector() -> Iterator[Collector]:
    """One that takes all."""
    with collecting() as made:
        yield made


def noted(run: Place) -> set[str]:
    """How far the journal was told, by the agent's own note."""
    file = run.run / "agent" / "otlp.json"
    return {one["told"] for one in json.loads(file.read_text()).values()} if file.exists() else set()


def newest(run: Place) -> str:
    """The id of the journal's newest entry."""
    with closing(Journal(str(run.journal), readonly=True)) as journal:
        return next(journal.entries(newest_first=True)).id


def test_a_run_is_told_and_its_trace_goes_on_after_a_kill(place: Places, collector: Collector, tmp_path: Path) -> None:
    """The agent dies while a remedy is watched; the next one tells the rest of the same trace, each span once.

    Metrics are those of the page, a NaN is counted and stands in a log, a run's name arrives as it is, and the token
    is where it belongs and nowhere else.
    """
    run = place()
    headers = tmp_path / "headers"
    headers.write_text("Authorization: Bearer hunter2hunter2\n")
    headers.chmod(0o600)
    words = ("--otlp", collector.url, "--otlp-headers-file", str(headers), "--run", NAME)
    first = run.agent(*words)
    trainer = run.start(run.trainer_argv(*PAUSED), GYROSTAT_RUN=NAME)
    until(lambda: run.done("gate 22"), "the trainer never came to its gate")
    until(lambda: any(s.name == "ack trainer/0" for s in collector.spans()), "the answer is not told")
    until(lambda: noted(run) == {newest(run)}, "not all is told")  # else what was on its way is told twice
    assert b"hunter2" not in Path(f"/proc/{first.pid}/cmdline").read_bytes()
    first.kill()
    first.wait()
    second = run.agent(*words)
    run.watched(second)
    run.open_gate(22)
    until(lambda: any(s.name == "incident nonfinite" for s in collector.spans()), "the trace never ends")
    assert trainer.wait() == 0
    run.read_to_end()
    assert ended(second) == 0
    spans = named(collector.spans())
    assert set(spans) == TRACE and len({s.trace_id for s in spans.values()}) == 1
    root = spans["incident nonfinite"]
    assert not root.parent_span_id and spans["ack trainer/0"].parent_span_id == spans["directive skip_data"].span_id
    assert root.events[0].name == "open" and root.status.code == root.status.STATUS_CODE_OK
    records = collector.records()
    assert len({said(r.attributes)["gyrostat.entry"] for r in records}) == len(records)
    assert {r.trace_id for r in records if r.event_name == "gyrostat.incident"} == {root.trace_id}
    assert any("nan" in r.body.string_value for r in records)
    assert ("gyrostat.run", NAME) in collector.origins()
    odd = [p for m in collector.metrics() if m.name == "gyrostat_nonfinite_total" for p in m.sum.data_points]
    assert {said(p.attributes)["value"] for p in odd} == {"nan"}
    assert {p.headers["Authorization"] for p in collector.posts} == {"Bearer hunter2hunter2"}
    assert "hunter2" not in run.said.read_text() + (run.run / "agent" / "status.json").read_text()
