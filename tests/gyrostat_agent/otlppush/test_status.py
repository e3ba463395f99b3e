"""``gyrostat status`` says how a collector fares: what it does not know is not silence."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from cli_runs import calling
from exported_runs import EXPORTED, full_view

from gyrostat.wire import RunDirectory
from gyrostat_agent import statusfile
from gyrostat_agent.journal import Journal
from gyrostat_agent.rundir import prepare


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run that an agent has watched."""
    made = prepare(str(tmp_path / "run"))
    Journal(os.path.join(made.agent, "journal.db")).close()
    return made


def test_it_is_shown(run: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each signal, and all of it for machines."""
    statusfile.write(run, full_view()._replace(exported=EXPORTED), "")
    _, out, _ = calling(monkeypatch, capsys)("status", run.path)
    assert "otlp      logs to c:4318: 9 sent, 3 wait, 1 dropped; down\n" in out
    _, out, _ = calling(monkeypatch, capsys)("status", "--json", run.path)
    assert json.loads(out)["exported"] == [EXPORTED[0]._asdict()]


@pytest.mark.parametrize("wrong", [{"signal": 7}, {"to": None}, {"sent": "x"}, {"waiting": 1.5}])
def test_what_no_agent_writes_is_said(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrong: dict[str, Any]
) -> None:
    """Nothing in the file is trusted; no stack trace."""
    said = {"run": "r", "at": time.time(), "pid": os.getpid(), "exported": [{**EXPORTED[0]._asdict(), **wrong}]}
    (Path(run.agent) / "status.json").write_text(json.dumps(said))
    status, out, err = calling(monkeypatch, capsys)("status", run.path)
    assert status == 1 and "status.json is not readable" in out and "Traceback" not in out + err
