"""Push: what the newest view has reaches each Alertmanager, whatever the others do; nobody waits for it."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from alertmanager_runs import Server, free_port, serving, until
from case_runs import alert, ended, incident, run, told

from gyrostat_agent.alertpush.push import NOTE, Pace, Push
from gyrostat_agent.errors import SetupError
from gyrostat_exporters.alertmanager import Links
from gyrostat_exporters.cases import Case
from gyrostat_exporters.metrics import Latest
from gyrostat_exporters.view import nothing

QUICK = Pace(resend=0.2, stands=2.0, answer=0.5, first=0.02, longest=0.1)


class Bench:
    """Pushes, the view that they are shown, and what was said."""

    def __init__(self, stack: ExitStack) -> None:
        self.latest, self.said, self._stack = Latest(), [], stack  # type: tuple[Latest, list[str], ExitStack]

    def push(self, *servers: str, token_file: str = "", pace: Pace = QUICK) -> Push:
        made = Push(servers, self.latest, Links("http://page"), self.said.append, token_file=token_file, pace=pace)
        self._stack.callback(made.close)
        return made

    def show(self, push: Push, cases: tuple[Case, ...]) -> None:
        self.latest.view = nothing("r", "act", "")._replace(cases=cases)
        push.look()


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Its pushes end with the test."""
    with ExitStack() as stack:
        yield Bench(stack)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


GOING = told(run(incident("acting")))
OVER = told(run(incident("resolved")), ended("i0001"))


def test_firing_told_again_and_resolved_once(bench: Bench, server: Server) -> None:
    """While it goes on its end moves ahead of it; when it is over it ends when it did."""
    push = bench.push(server.url)
    bench.show(push, GOING)
    until(lambda: len(server.seen) >= 3 or bench.show(push, GOING), "it is not told again")
    ends = [alert["endsAt"] for alert in server.alerts()]
    assert ends == sorted(set(ends)) and {a["startsAt"] for a in server.alerts()} == {"1970-01-01T00:15:00.000Z"}
    bench.show(push, OVER)
    until(lambda: server.alerts()[-1]["endsAt"] == "1970-01-01T01:23:10.000Z", "it is never over")
    lone = told(run(one=alert("Lone", incident="")))
    until(lambda: named(server, "Lone") >= 3 or bench.show(push, OVER + lone), "the other one is not told again")
    assert [a["endsAt"] for a in server.alerts()].count("1970-01-01T01:23:10.000Z") == 1 and bench.said == []


def named(server: Server, name: str) -> int:
    """How often an alert of that name was told."""
    return sum(alert["labels"]["alertname"] == name for alert in server.alerts())


def test_what_could_not_be_told_is_told_when_it_can_be(bench: Bench) -> None:
    """Down at first: said once, counted, and delivered as it is by then."""
    port = free_port()
    push = bench.push(f"http://127.0.0.1:{port}")
    bench.show(push, GOING)
    until(lambda: push.counts()[0].failed >= 3, "nothing is tried")
    assert push.counts()[0].waiting == 1 and push.counts()[0].fault == "Connection refused"
    bench.show(push, OVER)
    with serving(port) as server:
        until(lambda: server.alerts(), "it is never delivered")
        assert server.alerts()[0]["endsAt"] == "1970-01-01T01:23:10.000Z"
        until(lambda: not push.counts()[0].fault, "it still says that it fails")
    assert [line.rpartition("alertmanager")[2].split(" ", 2)[2][:8] for line in bench.said] == ["is not t", "is told "]
    assert (push.counts()[0].waiting, push.counts()[0].sent) == (0, 1)


@pytest.mark.parametrize("status", [500, 401, 302])
def test_one_that_fails_is_tried_again(bench: Bench, server: Server, status: int) -> None:
    """With longer and longer waits, and not at all too often; the other one has it at once."""
    with serving() as well:
        server.status = status
        push = bench.push(server.url, well.url)
        bench.show(push, GOING)
        until(lambda: well.seen, "the one that is well was not told")
        until(lambda: len(server.seen) >= 3, "it is not tried again")
        server.status = 200
        until(lambda: push.counts()[0].sent, "it is never taken")
        assert push.counts()[0].failed >= 3 and push.counts()[1].failed == 0


def test_one_that_drips_holds_nobody_up(bench: Bench, server: Server) -> None:
    """Neither whoever shows a view nor the other one."""
    with serving() as well:
        server.slow.set()
        push = bench.push(server.url, well.url)
        began = time.monotonic()
        bench.show(push, GOING)
        assert time.monotonic() - began < 0.2
        until(lambda: well.seen, "the one that is well was not told")
        until(lambda: push.counts()[0].failed, "it is waited for without end")
        server.slow.clear()
        until(lambda: push.counts()[0].sent, "it is never taken")


def test_what_is_refused_for_good_is_dropped(bench: Bench, server: Server) -> None:
    """Counted, said with its reason, and not sent again at once."""
    server.status, server.body = 400, b'"bad label"'
    push = bench.push(server.url, pace=QUICK._replace(resend=60.0))
    bench.show(push, GOING)
    until(lambda: push.counts()[0].dropped == 1, "it is not given up")
    assert push.counts()[0].waiting == 0 and "bad label" in bench.said[0] and len(server.seen) == 1


def test_an_agent_that_ends_leaves_what_goes_on(bench: Bench, server: Server) -> None:
    """For a day, and says that nobody watches: an ended run must not read as resolved four minutes later."""
    push = bench.push(server.url)
    bench.show(push, GOING)
    until(lambda: server.seen, "it is never told")
    before = time.time()
    push.close()
    last = server.alerts()[-1]
    assert last["annotations"]["agent"] == NOTE
    assert last["endsAt"] >= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(before + 86400))


def test_an_agent_that_ends_waits_for_nobody(bench: Bench, server: Server) -> None:
    """A few seconds, for one that never answers too."""
    server.slow.set()
    push = bench.push(server.url, pace=QUICK._replace(answer=60.0))
    bench.show(push, GOING)
    until(lambda: server.seen, "nothing is tried")
    began = time.monotonic()
    push.close()
    assert time.monotonic() - began < 6.0


def test_the_token_is_read_at_each_post(bench: Bench, server: Server, tmp_path: Path) -> None:
    """It may be changed; while it cannot be read nothing is sent without it, and it is never said."""
    path = tmp_path / "token"
    write(path, "first")
    push = bench.push(server.url, token_file=str(path))
    bench.show(push, GOING)
    until(lambda: server.seen, "it is never told")
    path.chmod(0o644)
    until(lambda: push.counts()[0].fault or bench.show(push, GOING), "a file that others can read is used")
    many = len(server.seen)
    write(path, "second")
    path.chmod(0o600)
    until(lambda: len(server.seen) > many or bench.show(push, GOING), "it is not told again")
    assert {seen.headers["Authorization"] for seen in server.seen[:many]} == {"Bearer first"}
    assert server.seen[-1].headers["Authorization"] == "Bearer second"
    assert "chmod 600" in bench.said[0] and not any("first" in line or "second" in line for line in bench.said)


def write(path: Path, token: str) -> None:
    path.write_text(token)
    path.chmod(0o600)


def test_a_token_that_cannot_be_read_ends_the_start(bench: Bench, tmp_path: Path) -> None:
    """Before anything is watched: a mistake is told to whoever makes it."""
    with pytest.raises(SetupError, match="alertmanager-token-file"):
        bench.push("http://127.0.0.1:1", token_file=str(tmp_path / "none"))


def test_the_same_one_twice_is_one(bench: Bench) -> None:
    """By host, port and path."""
    push = bench.push("http://127.0.0.1:1", "http://127.0.0.1:1/")
    assert len(push.counts()) == 1


def test_before_the_first_view_nothing_is_said(bench: Bench, server: Server) -> None:
    """Nor where there is nothing to tell."""
    push: Callable[[], None] = bench.push(server.url).close
    push()
    with closing(bench.push(server.url)) as other:
        bench.show(other, ())
    assert server.seen == []


def test_what_nobody_foresaw_ends_nothing(bench: Bench, server: Server) -> None:
    """A view that cannot be read is said, once; the next one is told."""
    push = bench.push(server.url)
    bench.latest.view = object()  # type: ignore[assignment]
    push.look()
    until(lambda: bench.said or push.look(), "it is not said")
    assert len(bench.said) == 1 and "internal error: AttributeError" in bench.said[0]
    bench.show(push, GOING)
    until(lambda: server.seen, "nobody is told any more")
