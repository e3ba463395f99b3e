"""Push: metrics, journal and traces reach a collector whatever it does meanwhile; nobody waits for it."""

import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from alertmanager_runs import free_port, until
from collector_runs import Collector, collecting, named, said
from entry_runs import FIRED, entry, mended
from exported_runs import full_view
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsPartialSuccess, ExportLogsServiceResponse

from gyrostat_agent.errors import SetupError
from gyrostat_agent.journal import Journal
from gyrostat_agent.otlppush.bookmarks import Bookmarks
from gyrostat_agent.otlppush.pace import Pace
from gyrostat_agent.otlppush.push import OtlpPush
from gyrostat_agent.rundir import prepare
from gyrostat_exporters.metrics import Latest
from gyrostat_exporters.view import Exported
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Tick
from gyrostat_rules.state import Incident, State

QUICK = Pace(every=0.05, gap=0.01, answer=0.5, first=0.02, longest=0.1)
WHOLE = 12  # spans of the incident


class Bench:
    """A run's journal, its view, and whoever tells of them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.run = prepare(str(folder / "run"))
        self.journal = Journal(os.path.join(self.run.agent, "journal.db"))
        stack.callback(self.journal.close)
        self.latest, self.said, self._stack = Latest(), [], stack  # type: tuple[Latest, list[str], ExitStack]
        self.state = State(run="r")

    def push(self, url: str, pace: Pace = QUICK, headers_file: str = "") -> OtlpPush:
        made = OtlpPush(url, self.run, self.latest, self.said.append, headers_file=headers_file, pace=pace)
        self._stack.callback(made.close)
        return made

    def write(self, entries: Sequence[Entry]) -> None:
        """A turn each, as the loop commits them."""
        for one in entries:
            self.journal.commit(Tick(one.at), (one,), {})
            self.state.turn = int(one.id.partition(".")[0])

    def show(self, push: OtlpPush, *, elsewhere: bool = False) -> None:
        self.latest.view = full_view()
        push.look(self.state, news=True, elsewhere=elsewhere)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Its pushes end with the test."""
    with ExitStack() as stack:
        yield Bench(tmp_path, stack)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


def count(push: OtlpPush, signal: str) -> Exported:
    return next(one for one in push.counts() if one.signal == signal)


def ids(collector: Collector) -> list[str]:
    """Of the entries that it was told."""
    return [said(record.attributes)["gyrostat.entry"] for record in collector.records()]


def test_all_three_arrive(bench: Bench, collector: Collector) -> None:
    """Metrics again and again, each entry once, one trace; logs lead to it."""
    push = bench.push(collector.url)
    bench.write(mended())
    bench.show(push)
    until(lambda: len(collector.spans()) == WHOLE and len(ids(collector)) == len(mended()), "not all is told")
    until(lambda: sum(m.name == "gyrostat_ready" for m in collector.metrics()) > 2, "metrics are told once")
    assert ids(collector) == [one.id for one in mended()] and len({s.span_id for s in collector.spans()}) == WHOLE
    assert {r.trace_id for r in collector.records()} - {b""} == {s.trace_id for s in collector.spans()}
    assert [one.failed + one.dropped for one in push.counts()] == [0, 0, 0] and bench.said == []


def test_what_could_not_be_told_is_told_when_it_can_be(bench: Bench) -> None:
    """Down at first: said once a signal, counted, waiting; then all of it, metrics of meanwhile too, each once."""
    port = free_port()
    push = bench.push(f"http://127.0.0.1:{port}")
    bench.write(mended()[:10])
    bench.show(push)
    until(lambda: all(one.failed > 2 for one in push.counts()), "nothing is tried")
    bench.write(mended()[10:])
    bench.show(push)
    assert "Connection refused" in count(push, "logs").fault and count(push, "logs").waiting >= 10
    until(lambda: count(push, "metrics").waiting > 3, "metrics do not wait")
    with collecting(port) as collector:
        until(lambda: len(collector.spans()) == WHOLE, "the trace is never delivered")
        until(lambda: len(ids(collector)) == len(mended()), "the journal is never delivered")
        until(lambda: not any(one.fault for one in push.counts()), "it still says that it fails")
        assert ids(collector) == [one.id for one in mended()] and len(named_spans(collector)) == WHOLE
        until(lambda: len(times_of(collector)) > 3, "metrics of meanwhile are not delivered")
        assert times_of(collector) == sorted(set(times_of(collector)))
    told = {line.rpartition(" of ")[2].partition(":")[0] for line in bench.said[:3]}
    assert told == {"metrics", "logs", "traces"} and all("is not told" in line for line in bench.said[:3])
    # A post that meets the collector as it begins may fail once more, and is said again; the last word is well.
    assert bench.said[-1].endswith(" again") and sum(line.endswith(" again") for line in bench.said) >= 3


def times_of(collector: Collector) -> list[int]:
    """When the exports of metrics were made."""
    return [m.gauge.data_points[0].time_unix_nano for m in collector.metrics() if m.name == "gyrostat_ready"]


def named_spans(collector: Collector) -> set[bytes]:
    return {s.span_id for s in collector.spans()}


@pytest.mark.parametrize("status", [401, 404, 429, 503])
def test_one_that_does_not_take_it_now_gets_it_later(bench: Bench, collector: Collector, status: int) -> None:
    """Nothing of it is lost or told twice; only the signal that is not taken waits."""
    collector.failing["/v1/traces"] = status
    push = bench.push(collector.url)
    bench.write(mended())
    bench.show(push)
    until(lambda: count(push, "traces").failed > 2 * WHOLE, "it is not tried again")
    until(lambda: len(ids(collector)) == len(mended()), "logs wait for traces")
    assert collector.spans() == []
    collector.failing.clear()
    until(lambda: len(collector.spans()) == WHOLE, "the trace is never delivered")
    assert len(named_spans(collector)) == WHOLE and count(push, "traces").dropped == 0


def test_one_that_asks_for_time_gets_it(bench: Bench, collector: Collector) -> None:
    """503 with Retry-After: not asked again before."""
    collector.failing["/v1/logs"], collector.headers = 503, {"Retry-After": "2"}
    push = bench.push(collector.url)
    bench.write(mended())
    bench.show(push)
    until(lambda: count(push, "logs").failed, "it is not tried")
    asked = time.monotonic()
    collector.failing.clear()
    until(lambda: ids(collector) or bench.show(push), "it is never delivered")
    assert time.monotonic() - asked > 1.5 and collector.tried.count("/v1/logs") == 2


def test_one_that_hangs_holds_nobody_up(bench: Bench, collector: Collector) -> None:
    """Neither whoever shows a view nor the end of the agent; then it is told."""
    collector.go_on.clear()
    push = bench.push(collector.url, QUICK._replace(answer=60.0))
    bench.write(mended())
    began = time.monotonic()
    bench.show(push)
    assert time.monotonic() - began < 0.2
    until(lambda: len(collector.tried) == 3, "nothing is tried")
    collector.go_on.set()
    until(lambda: len(collector.spans()) == WHOLE, "it is never told")


def test_an_agent_that_ends_waits_for_nobody(bench: Bench, collector: Collector) -> None:
    """A few seconds, for one that never answers too."""
    collector.go_on.clear()
    push = bench.push(collector.url, QUICK._replace(answer=60.0))
    bench.write(mended())
    bench.show(push)
    until(lambda: collector.tried, "nothing is tried")
    began = time.monotonic()
    push.close()
    assert time.monotonic() - began < 6.0


@pytest.mark.parametrize("status, tries", [(400, 1), (500, 4)])
def test_what_is_refused_for_good_is_dropped(bench: Bench, collector: Collector, status: int, tries: int) -> None:
    """Counted, said with its reason; what comes afterwards is told."""
    collector.failing["/v1/logs"], collector.body = status, b"no such field"
    push = bench.push(collector.url)
    bench.write(mended()[:5])
    bench.show(push)
    until(lambda: count(push, "logs").dropped == 5, "it is not given up")
    until(lambda: any("no such field" in line for line in bench.said), "its reason is not said")
    assert collector.tried.count("/v1/logs") == tries
    collector.failing.clear()
    collector.body = b""
    bench.write(mended()[5:])
    bench.show(push)
    until(lambda: ids(collector) == [one.id for one in mended()[5:]], "nothing is told any more")


def test_what_is_too_large_is_parted(bench: Bench, collector: Collector) -> None:
    """Smaller and smaller, until it is taken; one that is too large alone is dropped, and the others are not."""
    noise = random.Random(1)
    entries = [entry(n, "run", "trainer/0", "began", noise.randbytes(150).hex()) for n in range(1, 40)]
    entries[20] = entries[20]._replace(data={str(n): noise.randbytes(400).hex() for n in range(20)})
    collector.largest = 3000
    push = bench.push(collector.url)
    bench.write(entries)
    bench.show(push)
    until(lambda: count(push, "logs").sent + count(push, "logs").dropped == 39, "not all is dealt with")
    assert count(push, "logs").dropped == 1
    assert ids(collector) == [one.id for one in entries if one is not entries[20]]


def test_what_a_collector_took_in_part_is_counted(bench: Bench, collector: Collector) -> None:
    """Its words are said once; the rest is not sent again."""
    part = ExportLogsPartialSuccess(rejected_log_records=2, error_message="too <b>old</b>\x1b")
    collector.body = ExportLogsServiceResponse(partial_success=part).SerializeToString()
    push = bench.push(collector.url)
    bench.write(mended()[:5])
    bench.show(push)
    until(lambda: count(push, "logs")[2:5] == (3, 0, 2), "what was refused is not counted")
    until(lambda: any(line.endswith("did not take all logs: too <b>old</b>?") for line in bench.said), "it is not said")


@pytest.mark.parametrize("killed_at", [3, 9, 12, 20])
def test_the_next_agent_goes_on(bench: Bench, collector: Collector, killed_at: int) -> None:
    """It is killed with nothing said: the same trace, each span and each entry once."""
    first = bench.push(collector.url)
    bench.write(mended()[:killed_at])
    bench.show(first)
    last = mended()[killed_at - 1].id
    until(lambda: all(Bookmarks(bench.run).place(s).told == last for s in ("logs", "traces")), "not all is told")
    for lane in first._lanes:
        lane.end()
    bench.write(mended()[killed_at:])
    bench.show(bench.push(collector.url))
    until(lambda: len(collector.spans()) >= WHOLE, "the trace never ends")
    until(lambda: len(ids(collector)) >= len(mended()), "the journal is not told to its end")
    assert len(collector.spans()) == len(named_spans(collector)) == WHOLE
    assert len({s.trace_id for s in collector.spans()}) == 1 and ids(collector) == [one.id for one in mended()]


def test_whoever_comes_after_one_that_could_tell_nothing(bench: Bench, collector: Collector) -> None:
    """The collector was away for days, and the agent that wrote it all is dead: from the beginning to the end."""
    old = [one._replace(at=one.at - 3 * 86400.0) for one in mended()[:10]]
    first = bench.push(f"http://127.0.0.1:{free_port()}")
    bench.write(old)
    bench.show(first)
    until(lambda: all(one.failed for one in first.counts()), "nothing is tried")
    for lane in first._lanes:
        lane.end()
    bench.write(mended()[10:])
    bench.show(bench.push(collector.url))
    until(lambda: ids(collector) == [one.id for one in mended()], "the beginning is lost")
    until(lambda: len(collector.spans()) == WHOLE, "the trace is not whole")


def test_without_a_bookmark_the_same_is_told_by_the_same_ids(bench: Bench, collector: Collector) -> None:
    """Twice, but as one trace: whoever keeps traces by their ids has it once."""
    first = bench.push(collector.url)
    bench.write(mended())
    bench.show(first)
    until(lambda: len(collector.spans()) == WHOLE, "it is never told")
    first.close()
    (Path(bench.run.agent) / "otlp.json").unlink()
    bench.show(bench.push(collector.url))
    until(lambda: len(collector.spans()) == 2 * WHOLE, "it is not told again")
    assert len(named_spans(collector)) == WHOLE and len({s.trace_id for s in collector.spans()}) == 1


def test_a_run_that_nobody_was_told_of_is_told_a_day_back(bench: Bench, collector: Collector) -> None:
    """Not all of its weeks: old times are refused by many, and a start must not take long."""
    old = [one._replace(at=one.at - 2 * 86400.0) for one in mended()[:10]]
    bench.write([*old, *mended()[10:]])
    bench.show(bench.push(collector.url))
    until(lambda: len(ids(collector)) == len(mended()) - 10, "the last day is not told")
    assert ids(collector) == [one.id for one in mended()[10:]]


def test_an_incident_that_the_ledger_brought_has_its_own_trace(bench: Bench, collector: Collector) -> None:
    """A new pod's journal begins in the middle; the engine knows when it fired."""
    bench.state.incidents = [Incident("i0001", "nonfinite", "open", 2, 2, FIRED, [], 2)]
    bench.write(mended()[15:])
    bench.show(bench.push(collector.url))
    until(lambda: any(s.name == "incident nonfinite" for s in collector.spans()), "it is never told")
    with collecting() as other:
        beside = Path(bench.run.path).parent / "beside"
        beside.mkdir()
        with ExitStack() as stack:
            second = Bench(beside, stack)
            second.write(mended())
            second.show(second.push(other.url))
            until(lambda: len(other.spans()) == WHOLE, "the other is never told")
        assert {s.trace_id for s in other.spans()} == {s.trace_id for s in collector.spans()}


def test_too_much_that_waits_is_let_go_and_counted(bench: Bench) -> None:
    """The oldest; what goes on is told to its end when it can be. Metrics too."""
    port = free_port()
    push = bench.push(f"http://127.0.0.1:{port}", QUICK._replace(entries=4, exports=2))
    bench.write(mended())
    bench.show(push)
    until(lambda: count(push, "logs").dropped == len(mended()) - 4, "nothing is let go")
    until(lambda: count(push, "metrics").dropped > 2, "exports pile up")
    assert count(push, "logs").waiting == 4 and count(push, "metrics").waiting <= 2
    with collecting(port) as collector:
        until(lambda: ids(collector) == [one.id for one in mended()[-4:]], "the newest are not told")
        until(lambda: any(s.name == "incident nonfinite" for s in collector.spans()), "the incident's end is lost")
        assert count(push, "traces").dropped + len(collector.spans()) == WHOLE


def test_where_another_agent_tells_of_incidents_no_trace_is_told(bench: Bench, collector: Collector) -> None:
    """One that follows has its own journal, and its entries lead to no trace that nobody tells."""
    push = bench.push(collector.url)
    bench.write(mended())
    bench.show(push, elsewhere=True)
    until(lambda: len(ids(collector)) == len(mended()), "its journal is not told")
    until(lambda: not count(push, "traces").waiting, "its entries wait for ever")
    assert collector.spans() == [] and {r.trace_id for r in collector.records()} == {b""}


def test_what_the_view_does_not_know_yet_waits(bench: Bench, collector: Collector) -> None:
    """An entry of a later turn: when its incident fired nobody has said."""
    push = bench.push(collector.url)
    bench.write(mended())
    bench.state.turn = 4
    bench.show(push)
    until(lambda: len(ids(collector)) == 4, "what it knows is not told")
    bench.state.turn = len(mended())
    bench.show(push)
    until(lambda: len(ids(collector)) == len(mended()), "the rest is never told")


def test_headers_are_read_at_each_post(bench: Bench, collector: Collector, tmp_path: Path) -> None:
    """They may be changed; while they cannot be read nothing is sent without them, and none is ever said."""
    path = tmp_path / "headers"
    path.write_text("X-Key: first")
    path.chmod(0o600)
    push = bench.push(collector.url, headers_file=str(path))
    bench.show(push)
    until(lambda: collector.posts, "it is never told")
    path.chmod(0o644)
    until(lambda: count(push, "metrics").fault, "a file that others can read is used")
    many = len(collector.posts)
    path.write_text("X-Key: second")
    path.chmod(0o600)
    until(lambda: len(collector.posts) > many, "it is not told again")
    assert {post.headers["X-Key"] for post in collector.posts[:many]} == {"first"}
    assert collector.posts[-1].headers["X-Key"] == "second"
    assert not any("first" in line or "second" in line for line in bench.said)


@pytest.mark.parametrize("url, headers", [("http://elsewhere:4318", ""), ("http://127.0.0.1:1", "/none")])
def test_what_cannot_be_used_ends_the_start(bench: Bench, url: str, headers: str) -> None:
    """Before anything is watched: a mistake is told to whoever makes it."""
    with pytest.raises(SetupError, match="--otlp"):
        bench.push(url, headers_file=headers)


def test_an_entry_that_no_engine_wrote_stops_nothing(bench: Bench, collector: Collector) -> None:
    """Somebody wrote into the journal: that one is dropped and counted, the others are told."""
    odd = [entry(22, "incident", "i0002", "open", 7), entry(23, "run", "x", "began", 7)]  # type: ignore[arg-type]
    push = bench.push(collector.url)
    bench.write([*mended(), *odd, entry(24, "run", "trainer/0", "began", "the last")])
    bench.show(push)
    until(lambda: "00000024.0" in ids(collector), "nobody is told any more")
    until(lambda: not count(push, "logs").waiting and not count(push, "traces").waiting, "it waits for ever")
    assert ids(collector) == [one.id for one in mended()] + ["00000024.0"] and len(collector.spans()) == WHOLE
    assert count(push, "logs").dropped == 2 and count(push, "traces").dropped == 1


def test_a_journal_that_cannot_be_read_ends_nothing(bench: Bench, collector: Collector) -> None:
    """Said; told when it can be read again."""
    bench.write(mended())
    path = Path(bench.run.agent) / "journal.db"
    path.rename(path.with_suffix(".away"))
    push = bench.push(collector.url)
    bench.show(push)
    until(lambda: "journal" in count(push, "logs").fault, "it is not said")
    path.with_suffix(".away").rename(path)
    until(lambda: len(ids(collector)) == len(mended()), "nobody is told any more")


def test_an_idle_run_costs_next_to_nothing(bench: Bench, collector: Collector) -> None:
    """Nothing is asked of the journal, or of the processor, while nothing happens; nor while more is written."""
    push = bench.push(collector.url, Pace())
    bench.write(mended())
    bench.state.turn = 4
    bench.show(push)
    until(lambda: len(ids(collector)) == 4, "it is never told")
    began, busy = time.monotonic(), time.process_time()
    until(lambda: time.monotonic() - began > 1.5, "")
    polled = 1.5 / 0.01 * 0.0005  # what this test's own waiting takes at most
    assert time.process_time() - busy < 0.25 + polled


def test_before_the_first_view_nothing_is_said(bench: Bench, collector: Collector) -> None:
    """Nor when it ends then."""
    bench.write(mended())
    bench.push(collector.url).close()
    assert collector.tried == []


def test_names_are_told_once(bench: Bench, collector: Collector) -> None:
    """A trace with two remedies has two directives, and each ack below its own."""
    push = bench.push(collector.url)
    bench.write(mended())
    bench.show(push)
    until(lambda: len(collector.spans()) == WHOLE, "it is never told")
    rest = [s for s in collector.spans() if not s.name.startswith("ack trainer/0")]
    assert {"directive turn", "directive rollback"} <= set(named(rest))
