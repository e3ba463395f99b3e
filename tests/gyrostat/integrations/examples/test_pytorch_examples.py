"""The examples for plain PyTorch and torchrun, run as they stand: watched, guarded, steered."""

import math
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from sdk_runs import acks, records, send

import gyrostat
from gyrostat.wire import Directive, KnobChange, RecordFile

pytest.importorskip("torch", reason="torch is not installed: the examples train with it")

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"
WORLD = {**os.environ, "PYTHONPATH": str(Path(gyrostat.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(EXAMPLES / "torchrun.py")]


def _start(run: Path, *arguments: str) -> "subprocess.Popen[str]":
    world = {**WORLD, "GYROSTAT_RUN_DIR": str(run)}
    command = [sys.executable, "-W", "ignore", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=world)


def _order(run: Path, number: int, **order: object) -> None:
    """Ring for a directive that the process which now tells as rank 0 would obey."""
    names = [name for path in (run / "records").iterdir() if (name := RecordFile.parse(path.name)) and name.rank == 0]
    plain = Directive(number, run.name, "trainer", names[-1].incarnation, 0, f"a-{number}", time.time() + 600)
    send(run, plain._replace(**order))  # type: ignore[arg-type]


def _until(process: "subprocess.Popen[str]", run: Path, step: int, answers: int = 0) -> None:
    """Wait until rank 0 has told this step and so many answers were given."""
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        with suppress(AssertionError, FileNotFoundError):  # nothing told yet, or read in the midst of a write
            if len(acks(run)) >= answers and any(r.rank == 0 and r.step >= step for r in records(run)):
                return
        time.sleep(0.05)
    raise AssertionError(f"step {step} and {answers} answers did not come; answers: {acks(run)}")


def test_ten_lines_watch_a_plain_loop(run: Path) -> None:
    """The bad batch is told and its step passed over; the lines that are ours are ten."""
    example = EXAMPLES / "pytorch.py"
    assert example.read_text(encoding="utf-8").count("  # gyrostat\n") == 10
    out, err = _start(run, str(example)).communicate(timeout=120)
    assert out.strip() == "TRAINED 60 finite=True skipped=1", err
    told = {r.step: r.values for r in records(run)}
    assert list(told) == list(range(1, 61))
    assert math.isnan(told[30]["loss"])
    assert [told[step]["step_applied"] for step in (29, 30, 31)] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "sharded", [pytest.param([], id="ddp", marks=pytest.mark.full), pytest.param(["--fsdp"], id="fsdp2")]
)
def test_ranks_act_as_one(run: Path, sharded: list[str]) -> None:
    """One rank's bad batch makes both skip, a knob turns and a stop comes at the same step of both."""
    process = _start(run, *TORCHRUN, *sharded, "--steps", "100000")
    try:
        _until(process, run, 31)
        _order(run, 1, knobs=(KnobChange("lr_scale", 1.0, 0.5),))
        _until(process, run, 31, answers=2)
        _order(run, 2, procedure="stop")
        out, err = process.communicate(timeout=60)
    finally:
        process.terminate()  # torchrun ends its ranks, which are in sessions of their own
        process.communicate(timeout=60)
    lines = re.findall(r"TRAINED rank=\d finite=\w+ skipped=\d+", out)  # two ranks write into one pipe, at once
    assert sorted(lines) == [f"TRAINED rank={rank} finite=True skipped=1" for rank in (0, 1)], err
    by_rank = [{r.step: r.values for r in records(run) if r.rank == rank} for rank in (0, 1)]
    assert [list(told)[-1] for told in by_rank] == [len(by_rank[0])] * 2
    assert [told[30]["step_applied"] for told in by_rank] == [0.0, 0.0]
    assert [math.isnan(told[30]["loss"]) for told in by_rank] == [False, True]
    turned = [next(step for step, values in told.items() if values["lr_scale"] == 0.5) for told in by_rank]
    assert turned[0] == turned[1]
    said = [(a.number, a.result, a.step) for a in acks(run)]
    assert len(said) == 4
    assert len(set(said)) == 2
