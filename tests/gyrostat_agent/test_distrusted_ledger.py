"""A ledger that cannot be believed: the agent only observes, says so wherever a person looks, and leaves it alone."""

import http.client
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_runs import Bench

from gyrostat_agent import ledgerfile
from gyrostat_agent.cli.options import builtin, digest_of
from gyrostat_agent.loop import Agent
from gyrostat_agent.service import Service
from gyrostat_agent.settings import Settings
from gyrostat_agent.sources.commands import give
from gyrostat_rules.inputs import Verb
from gyrostat_rules.ledger import VERSION, facts
from gyrostat_rules.remembered import Deed
from gyrostat_rules.state import State

DEADLINE = 30.0
GOOD = {**facts(State(run="run")), "journal_head": "0:"}


def _of(**changed: object) -> bytes:
    return json.dumps({**GOOD, **changed}).encode()


# What is written there, and a word of what is said of it.
LEDGERS = {
    "damaged": (b"\x00" * 100, "cannot be read"),
    "cut off": (_of()[:40], "cannot be read"),
    "empty": (b"", "cannot be read"),
    "newer": (_of(version=VERSION + 1), "a newer agent wrote it"),
    "keys missing": (json.dumps({"version": VERSION}).encode(), "is missing"),
    "huge": (_of(next_directive=1 << 80), "cannot be read"),
    "negative": (_of(incident_count=-1), "cannot be read"),
    "NaN": (_of().replace(b'"segment": 0', b'"segment": NaN'), "cannot be read"),
    "nested": (_of().replace(b'"segment": 0', b'"segment": ' + b"[" * 400 + b"]" * 400), "nested too deep"),
    "wrong type": (_of(deeds=[["nonfinite", "rollback", "soon", 0.0]]), "cannot be read"),
    "a kind of later": (_of(closed=[["cold fusion", "rollback", 5, 0.0]]), "cold fusion"),
}
_LEDGERS = pytest.mark.parametrize(("written", "word"), LEDGERS.values(), ids=LEDGERS)


@pytest.fixture
def signals() -> Iterator[None]:
    """The signals are ours again afterwards."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [(number, signal.getsignal(number)) for number in numbers]
    yield
    for number, handler in before:
        signal.signal(number, handler)


def lay(root: str, written: bytes, mode: int = 0o600) -> Path:
    """Put a ledger beside the checkpoints."""
    os.makedirs(os.path.dirname(ledgerfile.path_of(root)), mode=0o700, exist_ok=True)
    path = Path(ledgerfile.path_of(root))
    path.write_bytes(written)
    path.chmod(mode)
    return path


def watched(agent: Agent, bench: Bench) -> str:
    """Two poisoned steps are told to it; returns why it only observes. It must have sent nothing."""
    bench.skip_twice(5)
    agent.once()
    bench.now += 2.0
    agent.once()
    assert not bench.directives()
    return agent.engine.state.settings.distrust


@_LEDGERS
def test_a_new_pod_only_observes(bench: Bench, written: bytes, word: str) -> None:
    """No journal, and a ledger that says nothing: nothing is done, and the ledger is not written over."""
    path = lay(bench.root, written)
    bench.control()
    assert word in watched(bench.agent(), bench)
    assert path.read_bytes() == written


@_LEDGERS
def test_an_agent_with_its_journal_only_observes(bench: Bench, written: bytes, word: str) -> None:
    """Also where the history is at hand: who wrote that, and what has happened since? A person looks, says trust."""
    control = bench.control()
    first = bench.agent()
    bench.tell(1)
    first.once()
    first.close()
    path = lay(bench.root, written)
    agent = bench.agent()
    assert word in watched(agent, bench)
    assert path.read_bytes() == written
    give(bench.run, Verb.TRUST, {"by": "ada"})
    agent.once()
    assert agent.engine.state.settings.distrust == "" and len(control.apply(7)) == 1
    assert ledgerfile.read(bench.root)[0] is not None


def test_one_that_others_may_write(bench: Bench) -> None:
    """Whatever it says."""
    lay(bench.root, _of(), 0o666)
    bench.control()
    assert "0666" in watched(bench.agent(), bench)


def test_a_run_directory_that_is_an_older_copy(bench: Bench, tmp_path: Path) -> None:
    """Budgets were used up and numbers given that this journal does not know of: they would come twice."""
    control = bench.control()
    first = bench.agent()
    bench.tell(1)
    first.once()
    first.close()
    copy = {p: p.read_bytes() for p in Path(bench.run.agent).iterdir() if p.name.startswith("journal.db")}
    second = bench.agent()
    bench.skip_twice(2)
    second.once()
    control.apply(4)
    second.close()
    for path in Path(bench.run.agent).iterdir():
        if path.name.startswith("journal.db"):
            path.unlink()
    for path, data in copy.items():
        path.write_bytes(data)
    third = bench.agent()
    third.once()
    bench.now += 2.0
    third.once()
    assert bench.directives() == ["1.json"]
    assert "this run directory is an older copy" in third.engine.state.settings.distrust


@pytest.mark.parametrize("written", [_of(deeds=[["nonfinite", "rollback", 5, 0.0]]), _of(run="another")])
def test_one_that_can_be_believed(bench: Bench, written: bytes) -> None:
    """An older agent's, and another run's name beside the same checkpoints: the history goes on."""
    lay(bench.root, written)
    control = bench.control()
    agent = bench.agent()
    bench.tell(1)
    agent.once()
    bench.now += 60.0
    bench.skip_twice(2)
    agent.once()
    assert agent.engine.state.settings.distrust == "" and len(control.apply(4)) == 1
    assert agent.engine.state.deeds[-1] == Deed("nonfinite", "skip_data", 3, bench.now, 0)


def test_it_is_said_wherever_a_person_looks(bench: Bench, signals: None) -> None:
    """/readyz with its reason and status 503, the metric, the status file, and a line for the operator."""
    lay(bench.root, b"{")
    bench.tell(1)
    said: list[str] = []
    text = builtin()
    service = Service(bench.run, Settings("run", text, digest_of(text), "act", False), "127.0.0.1:0", said.append)
    seen: dict[str, tuple[int, str]] = {}

    def look() -> None:
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end and not any("observe only" in line for line in said):
            time.sleep(0.01)
        while time.monotonic() < end and "observe only" not in seen.get("/readyz", (0, ""))[1]:
            for page in ("/readyz", "/metrics"):
                seen[page] = _fetched(service._server.address, page)  # type: ignore[union-attr]
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=look)
    thread.start()
    service.run()
    thread.join()
    status, page = seen["/readyz"]
    path = ledgerfile.path_of(bench.root)
    assert status == 503 and any(b.startswith(f"observe only: {path}") for b in json.loads(page)["blind"])
    assert "gyrostat_observe_only 1.0" in seen["/metrics"][1].splitlines()
    shown = json.loads(Path(bench.run.agent, "status.json").read_text())
    assert shown["observe_only"].startswith(path) and shown["ready"] is False
    assert any(f"observe only: {path}" in line for line in said)


def _fetched(address: str, page: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, timeout=5)
    connection.request("GET", page)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found
