"""``gyrostat status`` over whatever lies in status.json: never a stack trace, and never old news as new."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_runs import Bench
from cli_runs import Run, calling

from gyrostat_agent import statusfile
from gyrostat_agent.rundir import Lock
from gyrostat_exporters.view import Tally, view

RANK = {"role": "trainer", "rank": 0, "step": 7, "at": 1.0, "ended": "", "values": {"loss": 0.5}}


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``gyrostat WORDS``: status, stdout, stderr."""
    return calling(monkeypatch, capsys)


@pytest.fixture
def held(bench: Bench) -> Iterator[Bench]:
    """A run that an agent of this process holds."""
    bench.agent().close()
    lock = Lock(bench.run)
    yield bench
    lock.release()


def shown(**changed: Any) -> dict[str, Any]:
    """What an agent that is well shows."""
    now = {"run": "r", "mode": "act", "observe_only": "", "step": 7, "segment": 0, "ready": True, "blind": []}
    return {**now, "incidents": 0, "ranks": [RANK], "at": time.time(), "pid": os.getpid(), **changed}


def lay(bench: Bench, said: "dict[str, Any] | bytes") -> None:
    Path(bench.run.agent, "status.json").write_bytes(said if isinstance(said, bytes) else json.dumps(said).encode())


def test_all_is_well(cli: Run, held: Bench) -> None:
    """Status 0 only where a living agent says so now."""
    lay(held, shown(ranks=[{**RANK, "values": {"loss": None, "reward": 0.25}, "nonfinite": {"loss": "nan"}}]))
    status, out, _ = cli("status", held.run.path)
    assert status == 0 and "loss nan  reward 0.25" in out and "stale" not in out
    assert json.loads(cli("status", "--json", held.run.path)[1])["ready"] is True


@pytest.mark.parametrize(
    "body",
    [
        b'{"ranks":[1]}',
        json.dumps(shown()).encode()[:-20],
        b"all is well",
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"run": "' + b"x" * (2 << 20) + b'"}',
        b"[" * 100_000,
        b'{"ready": true, "at": NaN}',
        json.dumps(shown(step="seven")).encode(),
        json.dumps(shown(alerts=[["a"]])).encode(),
        json.dumps(shown(held=[["a", "b"]])).encode(),
        json.dumps(shown(off=["a"])).encode(),
        json.dumps(shown(blind="x")).encode(),
        json.dumps(shown(ranks=[{"role": "trainer"}])).encode(),
        json.dumps(shown(ranks=[{**RANK, "values": {"loss": "low"}}])).encode(),
        json.dumps(shown(ranks=[{**RANK, "step": None}])).encode(),
    ],
    ids=[
        "a rank that is a number", "truncated", "not JSON", "empty", "a list", "not UTF-8", "huge", "deep", "NaN",
        "a step in words", "short alerts", "odd held", "odd off", "odd blind", "half a rank", "odd values", "no step",
    ],
)  # fmt: skip
def test_an_odd_status_file(cli: Run, held: Bench, body: bytes) -> None:
    """One line says that it is not readable; that is not well, for machines neither."""
    lay(held, body)
    status, out, err = cli("status", held.run.path)
    lines = [line for line in out.splitlines() if "not readable" in line]
    assert status == 1 and not err and len(lines) == 1 and lines[0].startswith("blind "), out + err
    status, out, err = cli("status", "--json", held.run.path)
    said = json.loads(out)
    assert status == 1 and not err and said["ready"] is False and "not readable" in said["blind"][0]


def test_no_status_file_yet(cli: Run, held: Bench) -> None:
    """An agent that has just begun has shown nothing: said."""
    status, out, _ = cli("status", held.run.path)
    assert status == 1 and "shown nothing yet" in out


def test_a_status_file_that_never_ends(cli: Run, held: Bench) -> None:
    """A pipe in its place is not waited for."""
    os.mkfifo(os.path.join(held.run.agent, "status.json"))
    status, out, _ = cli("status", held.run.path)
    assert status == 1 and "not readable" in out


@pytest.mark.parametrize(
    "changed, why",
    [
        ({"pid": 1}, "process 1 wrote this"),
        ({"ago": 3600.0}, "nothing for 36"),
        ({"ago": -3600.0}, "nothing for -3"),
        ({"at": 0.0}, "nothing for "),
    ],
    ids=["another agent's", "an hour old", "of the future", "no time"],
)
def test_old_news_is_not_well(cli: Run, held: Bench, changed: dict[str, Any], why: str) -> None:
    """What a dead or a stuck agent wrote does not read as healthy."""
    changed = dict(changed)
    if (ago := changed.pop("ago", None)) is not None:  # by the clock of the test, not of its collection
        changed["at"] = time.time() - ago
    lay(held, shown(**changed))
    status, out, _ = cli("status", held.run.path)
    assert status == 1 and f"blind     stale: {why}" in out.replace("the agent has shown ", ""), out
    said = json.loads(cli("status", "--json", held.run.path)[1])
    assert said["ready"] is False and "stale" in said["blind"][0]


def test_what_waits_is_shown(cli: Run, held: Bench) -> None:
    """The id to approve, what it would do, why it waits and how long yet; and that the agent is paused."""
    waits = {
        "action": "i0001.2", "remedy": "rollback", "does": "back to step 15", "reason": "needs approval: \x1b[2J",
        "until": time.time() + 1830.0,
    }  # fmt: skip
    one = {"id": "i0001", "kind": "nonfinite", "state": "held", "why": "x", "onset": 21}
    lay(held, shown(paused=True, open=[one], held=[waits]))
    status, out, _ = cli("status", held.run.path)
    assert status == 0 and "paused" in out and "incident  i0001 nonfinite: held (began at step 21)\n" in out
    assert "held      i0001.2 rollback: back to step 15\n          needs approval: ?[2J\n" in out
    assert "given up in 30 min" in out or "given up in 31 min" in out


def test_what_waits_for_nobody_has_no_end(cli: Run, held: Bench) -> None:
    """A silence ends by itself: nothing is given up, and none is said."""
    waits = {"action": "i0001.2", "remedy": "stop", "does": "", "reason": "silenced", "until": None}
    lay(held, shown(held=[waits]))
    status, out, _ = cli("status", held.run.path)
    assert status == 0 and "held      i0001.2 stop\n          silenced\n" in out and "given up" not in out


def test_why_an_incident_was_given_up(cli: Run, held: Bench) -> None:
    """Stopped, while its alert still fires: which one, and why."""
    one = {"id": "i0007", "kind": "entropy", "state": "stopped", "why": "budget spent", "onset": 3}
    lay(held, shown(open=[one]))
    status, out, _ = cli("status", held.run.path)
    assert status == 0 and "incident  i0007 entropy: stopped, budget spent (began at step 3)\n" in out


def test_the_last_agents_news_are_called_so(cli: Run, bench: Bench) -> None:
    """Nobody watches: old news are shown as such, and not as stale as well."""
    bench.agent().close()
    lay(bench, shown(pid=1, at=1.0))
    status, out, _ = cli("status", bench.run.path)
    assert status == 1 and "what the last agent saw" in out and "stale" not in out and "step 7" in out


@pytest.mark.parametrize(
    "changed, words, off",
    [
        ({}, "rules     too early to say", None),
        ({"off": []}, "", []),
        (
            {"off": [["A", "a or b"], ["B", "c\x1b"]]},
            "rules     switched off for want of data: A (wants a or b), B (wants c?)\n",
            [["A", "a or b"], ["B", "c\x1b"]],
        ),
        (
            {"off": [[name, "x"] for name in "ABCDE"]},
            "data: A (wants x), B (wants x), C (wants x), and 2 more; gyrostat status --json names them all\n",
            [[name, "x"] for name in "ABCDE"],
        ),
    ],
    ids=["early", "none", "two", "five"],
)
def test_rules_that_have_nothing_to_look_at_are_named(
    cli: Run, held: Bench, changed: dict[str, Any], words: str, off: object
) -> None:
    """Their silence does not read as clean, nor does a list that nobody could make yet; it is no failure either."""
    lay(held, shown(**changed))
    status, out, _ = cli("status", held.run.path)
    assert status == 0 and (words in out if words else "rules  " not in out), out
    assert json.loads(cli("status", "--json", held.run.path)[1])["off"] == off


def test_a_live_run_is_asked_what_it_tells(cli: Run, bench: Bench, tmp_path: Path) -> None:
    """From records and a log to the terminal; what comes is struck off, and the engine knows nothing of it."""
    log = tmp_path / "train.log"
    log.write_text("nothing yet\n")
    agent = bench.agent(logs=(str(log),))

    def off() -> str:
        agent.once()
        before = agent.engine.snapshot()
        statusfile.write(bench.run, view(agent.engine.state, Tally(), {}, ()), "")
        assert agent.engine.snapshot() == before
        wanting = json.loads(cli("status", "--json", bench.run.path)[1])["off"]
        return "too early" if wanting is None else ", ".join(f"{rule} (wants {wants})" for rule, wants in wanting)

    for step in range(1, 20):
        bench.tell(step)
    assert "too early" in off()
    bench.tell(20)
    assert "RewardCollapsed (wants reward), " in (said := off()) and "TrainerDied (wants gyrostat run" in said
    assert "FaultInLog" not in said and "NonFiniteValue" not in said and "TrainerStalled" not in said
    bench.telemetry.record(21, **{"critic/reward/mean": 0.5})
    assert "RewardCollapsed" not in off()
