"""The agent as a process: it survives a journal that fails, says what a person should know, and ends in order."""

import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_runs import NAN

from gyrostat import Telemetry
from gyrostat.wire import RunDirectory
from gyrostat_agent.cli.options import builtin, digest_of
from gyrostat_agent.errors import HeldError
from gyrostat_agent.rundir import held, prepare
from gyrostat_agent.server import Server
from gyrostat_agent.service import Service
from gyrostat_agent.settings import Settings
from gyrostat_exporters.metrics import Latest

DEADLINE = 20.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    """A run directory; the signals are ours again afterwards."""
    before = [(number, signal.getsignal(number)) for number in SIGNALS]
    yield prepare(str(tmp_path / "run"))
    for number, handler in before:
        signal.signal(number, handler)


def service(run: RunDirectory, said: list[str], listen: str = "") -> Service:
    text = builtin()
    return Service(run, Settings("run", text, digest_of(text), "act", False), listen, said.append)


def status(run: RunDirectory) -> dict[str, object]:
    try:
        found: dict[str, object] = json.loads(Path(run.agent, "status.json").read_text())
    except FileNotFoundError:
        return {}
    return found


def run_until(agent: Service, ready: Callable[[], object], number: int = signal.SIGTERM) -> int:
    """Run it here, and send this process a signal once ``ready``; its status. A deadline ends it as well."""
    came: list[bool] = []

    def watch() -> None:
        end = time.monotonic() + DEADLINE
        while not ready() and time.monotonic() < end:
            time.sleep(0.005)
        came.append(time.monotonic() < end)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=watch)
    thread.start()
    left = agent.run()
    thread.join()
    assert came == [True], "what was waited for never came"
    return left


@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
def test_a_signal_ends_it_in_order(run: RunDirectory, number: signal.Signals) -> None:
    """Status 0, the lock free, a snapshot left; what was decided was said."""
    said: list[str] = []
    telemetry = Telemetry(run.path, run="run", rank=0)
    telemetry.record(1, loss=0.5)
    assert run_until(service(run, said), lambda: status(run).get("step") == 1, number) == 0
    assert held(run) == "" and said[0] == f"watching {run.path}, run run, mode act"
    assert not any("cannot go on" in line for line in said)


def test_the_view_on_disk_has_no_nan_in_it(run: RunDirectory) -> None:
    """JSON knows none: null, and beside it what it was; an incident is said to the operator."""
    said: list[str] = []
    telemetry = Telemetry(run.path, run="run", rank=0)
    telemetry.record(1, loss=0.5, reward=0.25)
    telemetry.record(2, loss=NAN, reward=0.25, step_applied=1.0)
    run_until(service(run, said), lambda: status(run).get("incidents") == 1)
    shown = status(run)["ranks"]
    assert isinstance(shown, list)
    assert shown[0]["values"] == {"loss": None, "reward": 0.25, "step_applied": 1.0}
    assert shown[0]["nonfinite"] == {"loss": "nan"}
    assert any(line.startswith("step 2  incident i0001: nonfinite:") for line in said)


def test_a_journal_that_cannot_be_opened_is_waited_out(run: RunDirectory) -> None:
    """Said once, however often it is tried; once it is out of the way, the agent goes on by itself."""
    said: list[str] = []
    path = Path(run.agent, "journal.db")
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    tries: list[int] = []

    def ready() -> bool:
        if "cannot go on" in str(said) and path.exists() and not tries:
            tries.append(1)
            path.unlink()
        return "watching" in str(said)

    agent = service(run, said)
    assert run_until(agent, ready) == 0
    assert ["cannot go on" in line for line in said] == [True, False] + [False] * (len(said) - 2)


def test_a_port_that_is_taken_costs_only_the_port(run: RunDirectory) -> None:
    """Another run's agent has the usual one: a free one is served, and said."""
    said: list[str] = []
    other = Server("127.0.0.1:0", Latest(), lambda: "")
    agent = service(run, said, other.address)
    other.close()
    assert run_until(agent, lambda: status(run).get("http")) == 0
    assert "is taken, serving on a free one" in said[0] and status(run)["http"] != other.address


def test_a_second_one_is_turned_away(run: RunDirectory) -> None:
    """Before it has touched anything."""
    first = service(run, [])
    with pytest.raises(HeldError):
        service(run, [])
    assert run_until(first, lambda: status(run)) == 0


def test_a_verdict_on_a_checkpoint_is_told_again_after_a_turn_that_could_not_be_written(
    run: RunDirectory, tmp_path: Path
) -> None:
    """Else a good checkpoint would be unknown for the rest of the run: no rollback could ever name it."""
    said: list[str] = []
    telemetry = Telemetry(run.path, run="run", rank=0, checkpoint_root=tmp_path / "ck")
    telemetry.record(1, loss=0.5)
    agent = service(run, said)
    stage: list[sqlite3.Connection] = []

    def ready() -> bool:
        if not stage and status(run).get("step") == 1:
            stage.append(sqlite3.connect(Path(run.agent, "journal.db"), check_same_thread=False, isolation_level=None))
            stage[0].execute("BEGIN IMMEDIATE")
            (tmp_path / "ck" / "step-5").mkdir(parents=True)
            (tmp_path / "ck" / "step-5" / "manifest.json").write_text("{}")
        elif stage and "cannot go on" in str(said):
            if stage[0].in_transaction:
                stage[0].rollback()
            found = stage[0].execute("SELECT count(*) FROM entries WHERE kind = 'checkpoint'").fetchone()
            return bool(found[0])
        return False

    assert run_until(agent, ready) == 0
    stage[0].close()


def test_what_was_written_before_the_end_is_read_before_leaving(run: RunDirectory) -> None:
    """Told to end before its first pass: the goodbye and the last step are in the status all the same."""
    telemetry = Telemetry(run.path, run="run")
    for step in range(1, 31):
        telemetry.record(step, loss=1.0)
    telemetry.close()
    agent = service(run, [])
    agent._end(signal.SIGTERM, None)
    assert agent.run() == 0
    assert status(run)["step"] == 30
    assert [r["ended"] for r in status(run)["ranks"]] == ["bye"]  # type: ignore[attr-defined]


def test_a_journal_that_cannot_be_used_is_said_in_the_status(run: RunDirectory) -> None:
    """An agent that can do nothing must not leave the status of a healthier hour behind."""
    Path(run.agent, "journal.db").write_bytes(b"no database, " * 1000)
    agent = service(run, [])
    agent._end(signal.SIGTERM, None)
    agent.run()
    assert status(run)["ready"] is False
    assert "not an SQLite database" in str(status(run)["blind"])


def test_checkpoints_that_cannot_be_seen_are_said(run: RunDirectory, tmp_path: Path) -> None:
    """A store that cannot be listed means nothing to go back to: that must not read as ready."""
    (tmp_path / "no-folder").touch()
    telemetry = Telemetry(run.path, run="run", checkpoint_root=tmp_path / "no-folder")
    telemetry.record(1, loss=1.0)
    agent = service(run, [])
    run_until(agent, lambda: "cannot be listed" in str(status(run).get("blind")))
    telemetry.close()
    assert "no-folder cannot be listed" in str(status(run)["blind"])
