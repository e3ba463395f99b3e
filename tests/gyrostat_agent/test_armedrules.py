"""A supervisor in mode shadow: while its agent shows an armed rule it does as in mode act, and else as ever."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from supervised_runs import FIRST_TIME, PAUSE, Starter, environment, python, starting, until

from gyrostat.wire import Ack


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts supervisors, and ends what a failed test leaves behind."""
    yield from starting(tmp_path)


def show(tmp_path: Path, **changed: Any) -> None:
    """What the run's agent shows."""
    folder = tmp_path / "run" / "agent"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    said = {"mode": "shadow", "observe_only": "", "paused": False, "armed": [["A", "40 hits of 40"]], **changed}
    (folder / "status.json").touch(mode=0o600)
    (folder / "status.json").write_text(json.dumps(said))


def test_an_armed_restart_is_followed(start: Starter, tmp_path: Path) -> None:
    """The trainer dies, its exit is held back, and a directive begins it again."""
    show(tmp_path)
    lives = tmp_path / "lives"
    run = start(python(FIRST_TIME.format(str(lives)) + f"sys.exit(7) if first else None; {PAUSE}"), mode="shadow")
    until(run.exits)
    assert run.direct(1, "restart").result == Ack.APPLIED
    until(lambda: lives.read_text().count(" ") == 2)


def test_a_release_passes_the_exit_on(start: Starter, tmp_path: Path) -> None:
    """Where the armed rule restarts nothing, nobody is kept waiting."""
    show(tmp_path)
    run = start(python("import sys; sys.exit(7)"), mode="shadow")
    until(run.exits)
    run.lay(1, "release")
    status, _, err = run.end()
    assert status == 7 and "released by the agent" in err


@pytest.mark.parametrize(
    "shown",
    [{"armed": []}, {"paused": True}, {"observe_only": "broken"}, {"mode": "observe"}, {"armed": 5}],
    ids=["nothing armed", "paused", "distrusted", "observe", "odd"],
)
def test_without_one_nothing_is_held_back(start: Starter, tmp_path: Path, shown: dict[str, Any]) -> None:
    """The exit is passed on at once, as in shadow ever."""
    show(tmp_path, **shown)
    status, _, err = start(python("import sys; sys.exit(7)"), mode="shadow").end()
    assert status == 7 and "waiting" not in err


def test_observe_is_not_armed_by_a_file(start: Starter, tmp_path: Path) -> None:
    """A supervisor in mode observe restarts nothing, whatever stands there."""
    show(tmp_path)
    run = start(python("import sys; sys.stdin.read()"), mode="observe")
    ack = run.direct(1, "restart")
    assert ack.result == Ack.FAILED and "observe" in ack.reason


def test_the_supervisor_loads_no_rules() -> None:
    """It is there for as long as the trainer is: what it reads of armed rules costs it no rule engine."""
    program = "import sys, gyrostat_agent.supervisor; print([n for n in sys.modules if n.startswith('gyrostat_rules')])"
    called = [sys.executable, "-c", program]
    found = subprocess.run(called, env=environment(), capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
