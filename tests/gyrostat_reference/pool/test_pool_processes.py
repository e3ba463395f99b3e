import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gyrostat_reference.model import LoopMoE
from gyrostat_reference.pool import RolloutPool
from gyrostat_reference.pool.weights import PolicyFolder

TRAINER = """
import sys
from pathlib import Path
from torch import Generator
from gyrostat_reference import task
from gyrostat_reference.model import LoopMoE
from gyrostat_reference.pool import Blow, Faults, RolloutPool, Settings
faults = Faults(blows=(Blow(0, 1, "stop"), Blow(1, 1, "hang")))
settings = Settings(silence=600.0, round_deadline=600.0, faults=faults, folder=Path(sys.argv[1]))
pool = RolloutPool(2, settings=settings)
pool.publish(1, LoopMoE().state_dict())
print(*pool.pids, flush=True)
pool.roll_out(task.draw_prompts(2, Generator()), [0, 1], [0, 1])
"""


def state_of(pid: int) -> str:
    """The kernel's letter for a process; 'Z' also where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "Z"


def until(true: Callable[[], bool], what: str) -> None:
    """Wait for a condition, a minute at most."""
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def test_no_worker_survives_its_trainer(tmp_path: Path) -> None:
    """Of a trainer that is SIGKILLed no worker is left, even stopped or hanging, and the next one clears its files."""
    with subprocess.Popen(
        [sys.executable, "-c", TRAINER, str(tmp_path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as trainer:  # fmt: skip
        assert trainer.stdout is not None
        try:
            stopped, hanging = map(int, trainer.stdout.readline().split())
            until(lambda: state_of(stopped) == "T", "the worker has not stopped itself")
        finally:
            trainer.kill()
    until(lambda: state_of(hanging) == "Z", "the hanging worker is still there")
    until(lambda: state_of(stopped) == "Z", "the stopped worker is still there")
    assert len(list(tmp_path.iterdir())) == 1
    folder = PolicyFolder(tmp_path)
    assert list(tmp_path.iterdir()) == [folder.path]
    folder.close()


def test_workers_do_not_speak_for_the_trainer(
    open_pool: Callable[..., RolloutPool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the run directory nor the trainer's faults are in a worker's environment."""
    monkeypatch.setenv("GYROSTAT_RUN_DIR", "/nowhere")
    monkeypatch.setenv("GYROSTAT_REFERENCE_DIE_AT", "step.recorded:1")
    monkeypatch.setenv("MARK_OF_THIS_TEST", "1")
    place = Path(f"/proc/{open_pool(1).pids[0]}/environ")
    until(lambda: bool(place.read_bytes()), "the worker has not begun")  # between fork and exec there is none
    environment = place.read_bytes()
    assert b"MARK_OF_THIS_TEST=" in environment
    assert b"GYROSTAT" not in environment


def test_closing_is_bounded_and_leaves_nothing(
    open_pool: Callable[..., RolloutPool], batch: Any, policy: LoopMoE, tmp_path: Path
) -> None:
    """A worker that cannot go by itself is killed; no process and no file is left."""
    pool = open_pool(2)  # the other may still be starting
    pool.publish(1, policy.state_dict())
    pool.roll_out(*batch)
    pids = pool.pids
    os.kill(pids[0], signal.SIGSTOP)
    until(lambda: state_of(pids[0]) == "T", "the worker does not stop")
    began = time.monotonic()
    pool.close()
    assert time.monotonic() - began < 10
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_is_the_trainers_alone(open_pool: Callable[..., RolloutPool]) -> None:
    """Ctrl-C goes to the trainer's process group, in which the workers are not."""
    pool = open_pool(1)
    assert os.getpgid(pool.pids[0]) != os.getpgid(0)
