"""Silences as a person gives, lists and ends them: what is understood, what is refused, and what status shows."""

import json
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from agent_runs import NAN, Bench
from cli_runs import Run, calling, one_line
from supervised_runs import until
from test_cli_word import entries, watched

from gyrostat_agent import statusfile
from gyrostat_agent.cli.silence import _moment
from gyrostat_exporters.view import Tally, view

ALERT = "alert=NonFinitePoison"
HOUR = 3600.0
FOR = ("--for", "2h", "--reason", "new nodes")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


def show(bench: Bench) -> None:
    """What an agent that begins now shows, as its service writes it."""
    agent = bench.agent()
    agent.once()
    statusfile.write(bench.run, view(agent.engine.state, Tally(), {}, ()), "")
    bench.agents.remove(agent)
    agent.close()


def given(bench: Bench) -> dict[str, Any]:
    """The newest silence as it stands in the journal."""
    return dict([e for e in entries(bench, "command") if e.subject == "silence"][-1].data["arguments"])


# -- giving one ------------------------------------------------------------------------------------------


def test_what_is_silenced_waits(cli: Run, bench: Bench) -> None:
    """The word is answered with an id; the incident that it fits is held by it, and unsilence lets it go on."""
    path = bench.run.path
    bench.control()
    for step in range(1, 15):
        bench.tell(step)
    bench.verdicts.tell("/c/2", 2)
    with watched(bench, mode="act", approvals=False):
        until(lambda: entries(bench, "checkpoint"))
        status, out, _ = cli("silence", path, ALERT, *FOR)
        assert (
            status == 0
            and f"silenced {ALERT} until" in out
            and "as s0001: new nodes; alerts that it fits now: 0" in out
        )
        bench.tell(15, NAN)
        until(lambda: [e for e in entries(bench, "action") if e.state == "hold"])
        assert "silenced until" in [e for e in entries(bench, "action") if e.state == "hold"][-1].text
        status, out, _ = cli("unsilence", "s0001", path)
        assert status == 0 and "ended s0001 before its time" in out
        until(lambda: [e for e in entries(bench, "action") if e.state == "sent"])
        status, _, err = cli("unsilence", "s0001", path)
    assert status == 2
    one_line(err, "silence 's0001' has ended already; standing now: none", "gyrostat status")


def test_the_run_is_found_and_words_may_stand_in_any_order(
    cli: Run, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN_DIR before, behind or nowhere; what is no NAME=VALUE is the directory."""
    with watched(bench):
        for words in ((bench.run.path, ALERT, "rank=0"), (ALERT, "rank=0", bench.run.path)):
            assert cli("silence", *words, *FOR)[0] == 0
            assert given(bench)["matchers"] == f"{ALERT}\nrank=0"
        monkeypatch.setenv("GYROSTAT_RUN_DIR", bench.run.path)
        assert cli("silence", "--all", *FOR)[0] == 0
    assert (given(bench)["matchers"], given(bench)["all"], given(bench)["seconds"]) == ("", "yes", "7200.0")


def test_a_window_is_given_ahead(cli: Run, bench: Bench) -> None:
    """From and until, in whatever zone; what is shown names both."""
    begin = datetime.now().astimezone() + timedelta(days=2)
    times = ("--from", begin.isoformat(), "--until", (begin + timedelta(hours=4)).isoformat())
    with watched(bench):
        status, out, _ = cli("silence", "--all", bench.run.path, *times, "--reason", "交换机维护")
    assert status == 0 and "silenced everything from " in out and "交换机维护" in out
    assert float(given(bench)["ends"]) - float(given(bench)["begins"]) == pytest.approx(4 * HOUR)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((ALERT, "--reason", "x"), "one of the two"),
        ((ALERT, "--for", "2h", "--until", "18:00", "--reason", "x"), "one of the two"),
        ((ALERT, "--for", "soon", "--reason", "x"), "--for soon: write how long"),
        ((ALERT, "--for", "5 steps", "--reason", "x"), "--for 5 steps: write how long"),
        ((ALERT, "--for", "0s", "--reason", "x"), "--for 0s: write how long"),
        ((ALERT, "--until", "25:00", "--reason", "x"), "--until 25:00: is no time"),
        ((ALERT, "--until", "tomorrow", "--reason", "x"), "--until tomorrow: is no time; write it like 18:00"),
        ((ALERT, "--from", "never", "--for", "2h", "--reason", "x"), "--from never: is no time"),
        (("NonFinitePoison", *FOR), "one RUN_DIR at most; a matcher is written NAME=VALUE"),
        (("alert=NonFinitePoisn", *FOR), "no alert is called 'NonFinitePoisn'"),
        ((*FOR,), "or all of it with --all"),
        ((ALERT, "--all", *FOR), "or all of it with --all"),
        ((ALERT, "--for", "31d", "--reason", "x"), "at most 30 days"),
        ((ALERT, "--until", "2020-01-01", "--reason", "x"), "that is over already"),
        ((ALERT, "--for", "2h", "--reason", " "), "wants a reason"),
    ],
    ids=str,
)
def test_what_is_no_silence_is_one_line(cli: Run, bench: Bench, words: tuple[str, ...], why: str) -> None:
    """Status 2, what was wrong, and nothing is silenced."""
    with watched(bench):
        status, out, err = cli("silence", bench.run.path, *words)
    assert (status, out) == (2, "")
    one_line(err, why)
    assert not [e for e in entries(bench, "command") if " silenced " in e.text]


def test_a_reason_is_asked_for(cli: Run, bench: Bench) -> None:
    """By the command line itself."""
    status, _, err = cli("silence", bench.run.path, ALERT, "--for", "2h")
    assert status == 2 and "--reason" in err


@pytest.mark.parametrize(
    ("said", "after"),
    [
        ("18:00", datetime(2026, 12, 1, 18, 0)),
        ("9:30", datetime(2026, 12, 2, 9, 30)),
        ("12:00", datetime(2026, 12, 2, 12, 0)),
        ("2026-12-24", datetime(2026, 12, 24)),
        ("2026-12-24T18:00", datetime(2026, 12, 24, 18, 0)),
        ("2026-12-24T18:00Z", datetime.fromisoformat("2026-12-24T18:00+00:00")),
        ("2026-12-24T18:00+08:00", datetime.fromisoformat("2026-12-24T18:00+08:00")),
    ],
)
def test_times_as_people_write_them(said: str, after: datetime) -> None:
    """A time of day is the next one; without a zone it is local."""
    assert _moment("--until", said, datetime(2026, 12, 1, 12, 0).timestamp()) == after.timestamp()


@pytest.mark.parametrize("words", [("silence", ALERT, *FOR), ("unsilence", "s0001")], ids=["silence", "unsilence"])
def test_an_agent_elsewhere_is_told_by_its_address(
    cli: Run, bench: Bench, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """No RUN_DIR is looked for then; one that is typed beside it is one too many."""
    token = tmp_path / "token"
    token.write_text("x" * 43)
    token.chmod(0o600)
    there = ("--agent", "http://127.0.0.1:1", "--token-file", str(token))
    status, _, err = cli(*words, *there)
    assert status == 2
    one_line(err, "127.0.0.1:1")
    status, _, err = cli(*words, bench.run.path, *there)
    assert status == 2
    one_line(err, "are both given")


# -- seeing them -------------------------------------------------------------------------------------------


def test_silences_and_status_show_what_stands(cli: Run, bench: Bench) -> None:
    """For people and for machines: what, until when, by whom, why, and which has not begun."""
    path = bench.run.path
    with watched(bench):
        cli("silence", path, ALERT, "rank=0", *FOR)
        later = (datetime.now().astimezone() + timedelta(days=1)).isoformat()
        cli("silence", path, "--all", "--from", later, *FOR)
    show(bench)
    status, out, _ = cli("silences", path)
    first, second = out.splitlines()
    assert status == 0 and first.startswith(f"s0001: {ALERT}, rank=0 until ") and first.endswith(": new nodes")
    assert second.startswith("s0002: everything from ")
    said = json.loads(cli("silences", "--json", path)[1])
    assert [one["state"] for one in said["silences"]] == ["active", "pending"]
    assert said["silences"][0]["matchers"] == [ALERT, "rank=0"] and said["trouble"] is None
    assert f"silence   {first}" in cli("status", path)[1].splitlines()
    assert [one["id"] for one in json.loads(cli("status", "--json", path)[1])["silences"]] == ["s0001", "s0002"]


def test_nothing_is_silenced(cli: Run, bench: Bench) -> None:
    """Said, with status 0; an agent that has shown nothing yet is status 1."""
    bench.agent().close()
    status, out, _ = cli("silences", bench.run.path)
    assert status == 1 and "shown nothing yet" in out
    show(bench)
    assert cli("silences", bench.run.path)[:2] == (0, "nothing is silenced\n")


def test_what_is_over_is_not_shown(cli: Run, bench: Bench) -> None:
    """Though the agent that showed it is gone."""
    with watched(bench):
        cli("silence", bench.run.path, ALERT, *FOR)
    show(bench)
    path = Path(bench.run.agent, "status.json")
    said = json.loads(path.read_text())
    said["silences"][0]["ends"] = time.time() - 1.0
    path.write_text(json.dumps(said))
    assert "nothing is silenced" in cli("silences", bench.run.path)[1]
    assert "silence " not in cli("status", bench.run.path)[1]


@pytest.mark.parametrize(
    "odd",
    [
        [7], "x", [{}], [{"id": "s1", "by": "", "reason": "", "begins": 0.0, "ends": "late", "matchers": []}],
        [{"id": "s1", "by": "", "reason": "", "begins": 0.0, "ends": 9e18, "matchers": [7]}],
    ],
    ids=["a number", "text", "empty", "an end in words", "odd matchers"],
)  # fmt: skip
def test_an_odd_list_is_one_line(cli: Run, bench: Bench, odd: Any) -> None:
    """Whatever somebody wrote into status.json, no stack trace."""
    show(bench)
    path = Path(bench.run.agent, "status.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "silences": odd}))
    for command in ("silences", "status"):
        status, out, err = cli(command, bench.run.path)
        assert status == 1 and not err and "not readable" in out


def test_a_silence_of_the_year_ten_million(cli: Run, bench: Bench) -> None:
    """No calendar has it; it is shown as a number."""
    show(bench)
    path = Path(bench.run.agent, "status.json")
    one = {"id": "s1", "by": "eve\x1b[31m", "reason": "", "begins": 0.0, "ends": 9e18, "matchers": []}
    path.write_text(json.dumps({**json.loads(path.read_text()), "silences": [one]}))
    status, out, _ = cli("silences", bench.run.path)
    assert status == 0 and out == "s1: everything until 9e+18, by eve?[31m: \n"
