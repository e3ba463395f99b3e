"""A validation that has gone back: the way back stands in ``gyrostat status`` and ``gyrostat incidents``."""

import json
import time
from pathlib import Path

import pytest
from agent_runs import Bench
from cli_runs import calling

from gyrostat_agent import statusfile
from gyrostat_exporters.view import Tally, view

SCORES = (0.40, 0.45, 0.50, 0.55, 0.60, 0.61, 0.60, 0.35, 0.34)


def test_the_proposal_is_shown_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Step 7 was validated last before it went back; nothing is sent for it in mode act."""
    cli, bench = calling(monkeypatch, capsys), Bench(tmp_path, time.time)
    bench.control()
    agent = bench.agent()
    for step, score in enumerate(SCORES, 1):
        bench.telemetry.record(step, loss=0.5, step_applied=1.0, **{"val/accuracy": score})
        bench.verdicts.tell(f"{bench.root}/step-{step}", step)
        bench.now += 1.5
        while agent.once():
            pass
    statusfile.write(bench.run, view(agent.engine.state, Tally(), {}, ()), "")
    command = "to go back: gyrostat checkpoints rollback --to last-stable"
    _, out, _ = cli("status", bench.run.path)
    assert "proposed  below its best: val/accuracy since step 8; the last stable checkpoint is that of step 7" in out
    assert command in out
    _, out, _ = cli("status", "--json", bench.run.path)
    assert json.loads(out)["proposed"].endswith(command)
    status, out, _ = cli("incidents", bench.run.path)
    assert status == 0 and out.count("proposed") == 1 and command in out
    assert bench.directives() == []
    bench.close()
