"""The collective over torch.distributed, between two real processes on gloo."""

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from gyrostat.wire import Ack, Directive, KnobChange, RunDirectory

RANK = """
    import json, math, os, sys, time
    from datetime import timedelta
    from torch import distributed
    from gyrostat import Control, Knob, StepGuard, Telemetry
    from gyrostat.integrations.torch_distributed import TorchCollective

    run, rank = sys.argv[1], int(sys.argv[2])
    store = distributed.FileStore(run + "/../store", 2)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=60))
    collective = TorchCollective()
    telemetry = Telemetry(run, rank=rank, world=2)
    held = {"lr": 1.0}
    knob = Knob("lr", lambda: held["lr"], lambda v: held.update(lr=v), 0.0, 2.0)
    control = Control(telemetry, [knob], collective=collective)
    guard = StepGuard(agree=collective.agree_max)
    if rank == 0:
        print(telemetry.incarnation, flush=True)
    told = []
    for step in range(100_000):
        applied = guard.allows(step, math.nan if (step, rank) == (2, 1) else 0.5, 1.0)
        if not applied:
            told.append(["skipped", step])
        for ack in control.apply(step):
            told.append([ack.result, ack.step])
        done = collective.agree_max(float(len(told) >= 2))
        if done:
            break
    print(json.dumps({"told": told, "lr": held["lr"], "largest": collective.agree_max(float(rank))}), flush=True)
    distributed.destroy_process_group()
"""


def test_two_processes_act_on_one_step(tmp_path: Path) -> None:
    """A directive lands on the same step of both processes, and one's NaN makes both skip."""
    pytest.importorskip("torch", reason="torch is not installed: no process group to try")
    run = tmp_path / "run-a"
    (run / "directives").mkdir(parents=True, mode=0o700)
    run.chmod(0o700)
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(RANK), str(run)]
    ranks = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(2)]
    try:
        assert ranks[0].stdout is not None
        incarnation = ranks[0].stdout.readline().strip()
        sent = Directive(
            1, "run-a", "trainer", incarnation, 0, "a-1", time.time() + 600, knobs=(KnobChange("lr", 1.0, 0.5),)
        )
        files = RunDirectory(str(run))
        for path, data in ((files.directive(1), sent.encode()), (files.bell, (1).to_bytes(8, "little"))):
            Path(path).write_bytes(data)
            Path(path).chmod(0o600)
        said = [json.loads(rank.communicate(timeout=120)[0]) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert said[0] == said[1]
    assert said[0]["told"][0] == ["skipped", 2]
    assert said[0]["told"][1][0] == Ack.APPLIED
    assert (said[0]["lr"], said[0]["largest"]) == (0.5, 1.0)
