"""A /metrics page that is scraped over a real socket: records of the engine, and one line where it cannot be read."""

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from engine_pages import VllmPage
from http_posts import DATA

from gyrostat.wire import Record
from gyrostat_agent.errors import SetupError
from gyrostat_agent.sources import metricspage
from gyrostat_agent.sources.metricspage import MetricsPage
from gyrostat_rules.inputs import Item, SourceState, SourceWord

DEADLINE = 20.0


@contextmanager
def serving(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """A server that answers as it likes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads, block_on_close = True, False

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def text(body: str, status: int = 200, **headers: str) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body.encode())

    return answer


@pytest.fixture
def scrape() -> Iterator[Callable[..., MetricsPage]]:
    """Makes sources; closed at the end."""
    made: list[MetricsPage] = []

    def start(url: str, rank: int = 0, timeout: float = 5.0) -> MetricsPage:
        made.append(MetricsPage(url, rank, every=10.0, timeout=timeout))
        return made[-1]

    yield start
    for source in made:
        source.close()


def drained(source: MetricsPage, now: float, step: int = -1, segment: int = 0) -> list[Item]:
    """What comes of the scrape that is due at ``now``."""
    until = time.monotonic() + DEADLINE
    while not (items := source.drain(now, step, segment)):
        assert time.monotonic() < until, "nothing was scraped"
        time.sleep(0.002)
    return items


def test_an_engine_is_a_rollout_process(scrape: Callable[..., MetricsPage]) -> None:
    """Its records bear its rank, and the step that the trainer is at."""
    vllm = VllmPage()
    with vllm.served() as url:
        source = scrape(url, rank=3)
        vllm.of("num_requests_running").set(8)
        fresh, first = drained(source, 1000.0)
        vllm.of("num_preemptions").inc(20)
        (second,) = drained(source, 1010.0, step=41, segment=2)
    assert isinstance(fresh, SourceState) and fresh[:2] == (url, SourceWord.FRESH)
    assert isinstance(first, Record) and isinstance(second, Record)
    assert first[:7] == ("rollout", 3, url, 0, 1, 0, 1000.0) and first.values["requests_running"] == 8.0
    assert second[:7] == ("rollout", 3, url, 2, 2, 42, 1010.0) and second.values["preemptions_per_second"] == 2.0


def test_the_loop_never_waits(scrape: Callable[..., MetricsPage]) -> None:
    """An engine that hangs is asked in another thread; it is said once, and it is asked again."""
    release = threading.Event()
    with serving(lambda handler: release.wait(DEADLINE) and None) as url:
        source = scrape(url, timeout=DEADLINE)
        began = time.monotonic()
        assert source.drain(1000.0) == [] and source.drain(1010.0) == []
        (said,) = source.drain(1031.0)
        assert source.drain(1040.0) == [] and time.monotonic() - began < 5.0
        release.set()
    assert isinstance(said, SourceState) and said[1:] == (SourceWord.DAMAGED, "no answer for 30 s")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (text("gone", 404), "cannot be fetched: status 404"),
        (text("", 302, Location="file:///etc/passwd"), "cannot be fetched: status 302"),
        (text("", 302, Location="http://192.0.2.1/"), "cannot be fetched: status 302"),
        (text("<html>hello</html>"), "none of its 0 names is one of vLLM, SGLang or the DCGM exporter"),
        (text("go_threads 3\nup 1"), "none of its 2 names is one of vLLM, SGLang or the DCGM exporter"),
        (text("\x00" * 5000), "none of its 0 names is one of vLLM, SGLang or the DCGM exporter"),
        (text("up 1\n" * 50_000), "cannot be fetched: more than 0 MiB"),
        (text("x", **{"Content-Length": "900"}), "cannot be fetched: cut short: 899 bytes are missing"),
        (lambda handler: handler.wfile.write(b"junk\r\n\r\n"), "cannot be fetched: junk"),
        (lambda handler: None, "cannot be fetched: Remote end closed connection without response"),
    ],
    ids=["404", "file", "elsewhere", "html", "other", "binary", "large", "cut", "no http", "nothing"],
)
def test_a_page_that_cannot_be_read_is_said_once(
    scrape: Callable[..., MetricsPage], monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[http.server.BaseHTTPRequestHandler], None], why: str,
) -> None:  # fmt: skip
    """As damaged, which neither silences the stall rule nor holds actions back; in one line, not every ten seconds."""
    monkeypatch.setattr(metricspage, "_BYTES", 100_000)
    asked: list[int] = []

    def counted(handler: http.server.BaseHTTPRequestHandler) -> None:
        asked.append(1)
        answer(handler)

    with serving(counted) as url:
        source = scrape(url)
        (said,) = drained(source, 1000.0)
        until = time.monotonic() + DEADLINE
        for now in (1010.0, 1020.0, 1030.0):
            before = len(asked)
            while len(asked) == before:
                assert source.drain(now) == [] and time.monotonic() < until
                time.sleep(0.002)
    assert isinstance(said, SourceState) and said.state == SourceWord.DAMAGED and said.detail.startswith(why)
    assert "\n" not in said.detail


def test_a_page_that_drips_has_its_time_as_a_whole(scrape: Callable[..., MetricsPage]) -> None:
    """A byte now and then keeps no thread for ever."""
    stop = threading.Event()

    def drip(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not stop.wait(0.05):
            handler.wfile.write(b"# \n")
            handler.wfile.flush()

    with serving(drip) as url:
        (said,) = drained(scrape(url, timeout=0.3), 1000.0)
        stop.set()
    assert isinstance(said, SourceState) and said.detail == "cannot be fetched: not whole after 0.3 s"


def test_nobody_listens_and_then_somebody_does(scrape: Callable[..., MetricsPage]) -> None:
    """An engine that starts after us, dies and comes back: each is said once, records come while it is there."""
    vllm = VllmPage()
    with vllm.served() as url:
        port = int(url.partition("127.0.0.1:")[2].partition("/")[0])
    source = scrape(url)
    (said,) = drained(source, 1000.0)
    assert isinstance(said, SourceState) and said.detail == "cannot be fetched: Connection refused"
    with serving_at(port, vllm.text()):
        fresh, record = drained(source, 1010.0)
        (more,) = drained(source, 1020.0)
    assert isinstance(fresh, SourceState) and fresh.state == SourceWord.FRESH
    assert isinstance(record, Record) and isinstance(more, Record)
    (gone,) = drained(source, 1030.0)
    assert isinstance(gone, SourceState) and gone.state == SourceWord.DAMAGED


@contextmanager
def serving_at(port: int, body: str) -> Iterator[None]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text(body)(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_proxy_for_the_outside_is_not_used(
    scrape: Callable[..., MetricsPage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines are within; the environment of a cluster often names one all the same."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with VllmPage().served() as url:
        assert any(isinstance(item, Record) for item in drained(scrape(url), 1000.0))


def test_gpus_and_their_xids(scrape: Callable[..., MetricsPage]) -> None:
    """As the GPU source tells them; an XID is said once, when it is new."""
    body = (DATA / "pages" / "dcgm.txt").read_text()
    pages = [body, body, body.replace(" 79\n", " 48\n")]
    with serving(lambda handler: text(pages.pop(0))(handler)) as url:
        source = scrape(url)
        told = [drained(source, now, step=7) for now in (1000.0, 1010.0, 1020.0)]
    records = [item for item in told[0] if isinstance(item, Record)]
    assert [(r.role, r.rank, r.incarnation, r.step) for r in records] == [
        ("gpu", 0, "GPU-aa", 8),
        ("gpu", 1, "GPU-bb", 8),
    ]
    assert not any("gpu_xid" in r.values for r in records)
    xids = [[i for i in items if isinstance(i, SourceState) and "xid" in i.source] for items in told]
    assert [len(x) for x in xids] == [1, 0, 1]
    assert xids[0][0].source == "gpu/1 xid" and "fallen off the bus" in xids[0][0].detail


def test_an_exporter_that_measures_no_more_is_stale(scrape: Callable[..., MetricsPage]) -> None:
    """It answers, always the same: nothing is told of its GPUs, and that is said once, until a number changes."""
    body = (DATA / "pages" / "dcgm.txt").read_text()
    shown = [body]
    with serving(lambda handler: text(shown[0])(handler)) as url:
        source = scrape(url)
        told = [drained(source, 1000.0 + 30.0 * scraped, step=7) for scraped in range(5)]
        asked = source.drain(1150.0)
        shown[0] = body.replace(" 79\n", " 48\n")
        mended = [*asked, *drained(source, 1180.0, step=9)]
        while not any(isinstance(item, Record) for item in mended):
            mended += drained(source, 1210.0, step=9)
    states = [[i for i in items if isinstance(i, SourceState) and i.source == f"gpus of {url}"] for items in told]
    assert [[state.state for state in found] for found in states] == [[], [], [], [], [SourceWord.STALE]]
    assert "not one number has changed for 120 s" in states[4][0].detail
    assert [sum(isinstance(item, Record) for item in items) for items in told] == [2, 2, 2, 2, 0]
    assert [i.state for i in mended if isinstance(i, SourceState) and i.source == f"gpus of {url}"] == ["fresh"]


def test_an_engine_that_idles_is_not_stale(scrape: Callable[..., MetricsPage]) -> None:
    """While the trainer updates, its rollout engines show the same page for as long as that takes."""
    with serving(text(VllmPage().text())) as url:
        source = scrape(url)
        told = [drained(source, 1000.0 + 60.0 * scraped, step=7) for scraped in range(4)]
    assert all(isinstance(items[-1], Record) for items in told)
    assert not [i for items in told for i in items if isinstance(i, SourceState) and i.state == SourceWord.STALE]


@pytest.mark.parametrize(
    "url",
    ["", "here", "file:///etc/passwd", "ftp://x/m", "http://", "http://u:p@h/m", "http://h:x/", "http://h/a b", "http://[::1/"],
)  # fmt: skip
def test_what_is_no_address(url: str) -> None:
    """Says how to write one."""
    with pytest.raises(SetupError, match="write http://HOST:PORT/metrics"):
        MetricsPage(url)


def test_an_address_without_a_path(scrape: Callable[..., MetricsPage]) -> None:
    """Means the usual one."""
    with VllmPage().served() as url:
        fresh, *_ = drained(scrape(url.removesuffix("/metrics")), 1000.0)
    assert isinstance(fresh, SourceState) and fresh.source == url
