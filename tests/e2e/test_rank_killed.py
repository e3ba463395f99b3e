"""One rank of a real trainer under torchrun is killed: all of it is begun anew from a certified checkpoint, in time."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from histories import check_chain_and_replay, check_nothing_twice, states
from processes import DEADLINE, Place, until

Places = Callable[..., Place]
SOON = 60.0  # seconds in which it must train again


def test_a_killed_rank_is_restarted_and_trains_again(place: Places) -> None:
    """torchrun ends the other rank and itself; its supervisor begins it anew, where both ranks go on alike."""
    run = place()
    options = ["--mode", "act", "--no-approvals", "--listen", "", "--run-dir", str(run.run)]
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    trainer = ["-m", "gyrostat_reference", "--steps", "24", "--checkpoint-every", "4", "--checkpoints", str(run.root)]
    whole = run.start(
        [sys.executable, "-m", "gyrostat_agent", "run", *options, "--", *ranks, *trainer, "--run-dir", str(run.run)]
    )
    until(lambda: run.status().get("step", 0) >= 13, "it never trained", 2 * DEADLINE)
    os.kill(rank_of(run, 1), signal.SIGKILL)
    killed = time.monotonic()
    until(lambda: run.status().get("segment", 0) > 0, "it was not begun anew")
    until(lambda: trained(run), "it did not train again")
    assert time.monotonic() - killed < SOON
    assert whole.wait(2 * DEADLINE) == 0, run.said.read_text()
    assert set(states(run.journal, "incident").values()) == {"resolved"}
    assert run.status()["step"] == 24
    check_chain_and_replay(run.journal)
    check_nothing_twice(run.journal)


def trained(run: Place) -> bool:
    """Both ranks have told a step of their new life."""
    told = [r for r in run.status().get("ranks", []) if r["role"] == "trainer"]
    return len(told) == 2 and all(not r["ended"] and r["step"] > 0 for r in told)


def rank_of(run: Place, rank: int) -> int:
    """The pid of one rank of this run's trainer, by what torchrun tells it."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            told = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(run.run).encode() in words and f"RANK={rank}".encode() in told:
            return int(name)
    raise AssertionError(f"no rank {rank} runs: {json.dumps(run.status())[:500]}")
