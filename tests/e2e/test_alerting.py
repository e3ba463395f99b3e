"""What must hold of what on-call is told: firing, resolved, and never resolved because somebody has died."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from alertmanager_runs import Alertmanager, Server, alertmanager, serving
from processes import Place, ended, until

Places = Callable[..., Place]
NAME = "run <b>{{ .Status }}<|b>"
PAUSED = ("--items", "60", "--poison", "20", "--gates", "22")  # while the remedy is still being watched


@pytest.fixture
def server() -> Iterator[Server]:
    """One with an Alertmanager's words, that keeps what it is told."""
    with serving() as made:
        yield made


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Alertmanager]:
    """A real one; skips where there is none."""
    with alertmanager(tmp_path) as made:
        yield made


def told(server: Server, *, going: bool) -> list[dict[str, Any]]:
    """What was told of the incident, while it went on or when it was over."""
    now = datetime.now(timezone.utc).isoformat()
    return [
        a for a in server.alerts() if a["labels"]["alertname"] == "NonFinitePoison" and (a["endsAt"] > now) is going
    ]


def state(run: Place) -> str:
    """The incident's state in the agent's view, '' where it is over."""
    return "".join(one["state"] for one in run.status().get("open", []))


def test_resolved_is_told_by_whoever_comes_after_a_kill(place: Places, server: Server) -> None:
    """The agent that said that it began dies; the next one tells the same alert on, and that it is over."""
    run = place()
    first = run.agent("--alertmanager", server.url, "--runbook-base", "https://wiki")
    trainer = run.trainer(*PAUSED)
    until(lambda: told(server, going=True), "nobody was told")
    until(lambda: run.done("gate 22"), "the trainer never came to its gate")
    first.kill()
    first.wait()
    second = run.agent("--alertmanager", server.url, "--runbook-base", "https://wiki")
    run.watched(second)
    assert state(run) == "probation" and not told(server, going=False)
    run.open_gate(22)
    (over,) = until(lambda: told(server, going=False), "nobody was told that it is over")
    assert {json.dumps(a["labels"], sort_keys=True) for a in server.alerts()} == {
        json.dumps(over["labels"], sort_keys=True)
    }
    assert over["annotations"]["done"].startswith("skip_data (done)")
    assert trainer.wait() == 0 and ended(second) == 0


def test_resolved_while_nobody_could_be_told(place: Places, server: Server) -> None:
    """By an agent that knew no Alertmanager, or that died before it said so: out of the journal, with its own time."""
    run = place()
    first = run.agent()
    assert run.trainer("--items", "60", "--poison", "20").wait() == 0
    until(lambda: run.status().get("incidents") and not state(run), "it is never mended")
    assert ended(first) == 0 and server.seen == []
    second = run.agent("--alertmanager", server.url)
    (over,) = until(lambda: told(server, going=False), "nobody was told that it is over")
    assert over["endsAt"] < datetime.fromtimestamp(run.status()["at"], timezone.utc).isoformat()
    assert over["annotations"]["state"] == "resolved" and ended(second) == 0


def test_a_dead_trainer_and_an_ended_agent_resolve_nothing(place: Places, server: Server) -> None:
    """The trainer is killed while a remedy is watched, then the agent is told to end: for a day it goes on."""
    run = place()
    agent = run.agent("--alertmanager", server.url)
    trainer = run.trainer(*PAUSED)
    until(lambda: run.done("gate 22") and told(server, going=True), "nobody was told")
    trainer.kill()
    trainer.wait()
    before = datetime.now(timezone.utc).timestamp()
    assert ended(agent) == 0
    assert not told(server, going=False)
    last = told(server, going=True)[-1]
    assert datetime.fromisoformat(last["endsAt"].replace("Z", "+00:00")).timestamp() > before + 86000
    assert "nobody watches" in last["annotations"]["agent"]


def test_one_that_is_down_costs_the_run_nothing(place: Places, tmp_path: Path) -> None:
    """Mended as ever; status and metrics say that it is not told, and neither shows a secret."""
    run = place()
    token = tmp_path / "token"
    token.write_text("hunter2hunter2")
    token.chmod(0o600)
    agent = run.agent("--alertmanager", "http://127.0.0.1:1", "--alertmanager-token-file", str(token))
    assert run.trainer("--items", "60", "--poison", "20").wait() == 0
    until(lambda: run.status().get("incidents") and not state(run), "it is never mended")
    (pushed,) = until(lambda: [p for p in run.status()["pushed"] if p["failed"]], "nothing is tried")
    assert (pushed["to"], pushed["sent"], pushed["fault"]) == ("127.0.0.1:1", 0, "Connection refused")
    assert ended(agent) == 0
    said = run.said.read_text()
    assert said.count("alertmanager 127.0.0.1:1 is not told, trying again: Connection refused") == 1
    assert "hunter2" not in said and "hunter2" not in json.dumps(run.status())


def test_a_real_one_pages_and_unpages(place: Places, real: Alertmanager) -> None:
    """One group for the incident, with the runbook's URL and the page's; markup arrives as text; then resolved."""
    run = place()
    page = ("--external-url", "http://gyro.example/page", "--runbook-base", "https://wiki/runbooks")
    run.pack.write_text(
        run.pack.read_text().replace(
            "incident: nonfinite\n", "incident: nonfinite\n        runbook_url: nonfinite\n", 1
        )
    )
    agent = run.agent("--alertmanager", real.url, "--run", NAME, *page)
    trainer = run.start(run.trainer_argv(*PAUSED), GYROSTAT_RUN=NAME)
    (first, *_) = until(lambda: real.notified("firing"), "Alertmanager told nobody")
    assert first["labels"]["run"] == NAME and first["labels"]["alertname"] == "NonFinitePoison"
    assert first["annotations"]["runbook_url"] == "https://wiki/runbooks/nonfinite.md"
    assert first["generatorURL"] == "http://gyro.example/page"
    assert {tuple(seen.said["groupLabels"]) for seen in real.hook.seen} == {("incident", "run")}
    until(lambda: run.done("gate 22"), "the trainer never came to its gate")
    agent.kill()
    agent.wait()
    again = run.agent("--alertmanager", real.url, "--run", NAME, *page)
    run.watched(again)
    assert not real.notified("resolved")
    run.open_gate(22)
    (over, *_) = until(lambda: real.notified("resolved"), "Alertmanager never told that it is over")
    assert over["fingerprint"] == first["fingerprint"] and over["startsAt"] == first["startsAt"]
    assert over["annotations"]["state"] == "resolved"
    assert trainer.wait() == 0 and ended(again) == 0


def test_a_real_one_is_not_told_anew_of_what_is_long_over(place: Places, real: Alertmanager) -> None:
    """An agent tells at its start what ended in the last day; whoever never heard of it is not woken by that."""
    run = place()
    first = run.agent()
    assert run.trainer("--items", "60", "--poison", "20").wait() == 0
    until(lambda: run.status().get("incidents") and not state(run), "it is never mended")
    assert ended(first) == 0
    second = run.agent("--alertmanager", real.url)
    until(lambda: [p for p in run.status().get("pushed", []) if p["sent"]], "it was not told")
    assert ended(second) == 0 and real.hook.seen == []
