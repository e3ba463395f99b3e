"""Blows: disturbances done to a run from outside, each a generator that yields the seconds until it goes on.

The play begins one at its step and takes it further when its seconds are over; what must be undone stands behind a
``finally``, for a run may end before.
"""

import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from chaos import clockjump, disks, records
from chaos.stage import Stage

Blow = Generator[float, None, None]
_SECOND_SECONDS = 30.0  # within which a second agent must have refused
_HELD = 3
_OTHER_RUN = Path(__file__).with_name("other_run.py")


def agent_killed(stage: Stage, amount: float) -> Blow:
    """It is started again by its supervisor."""
    stage.send("the agent", [stage.agent], signal.SIGKILL)
    yield 0.0


def agent_ended(stage: Stage, amount: float) -> Blow:
    """Told to end, politely."""
    stage.send("the agent", [stage.agent], signal.SIGTERM)
    yield 0.0


def agent_stopped(stage: Stage, amount: float) -> Blow:
    """It sleeps for ``amount`` seconds and knows nothing of it."""
    pid = stage.agent
    try:
        stage.send("the agent", [pid], signal.SIGSTOP)
        yield amount
    finally:
        stage.send("the agent", [pid], signal.SIGCONT)


def trainer_killed(stage: Stage, amount: float) -> Blow:
    """Its last rank; the others end by themselves."""
    stage.send("the trainer", stage.trainers[-1:], signal.SIGKILL)
    yield 0.0


def trainer_stopped(stage: Stage, amount: float) -> Blow:
    """All its ranks sleep."""
    pids = stage.trainers
    try:
        if stage.send("the trainer", pids, signal.SIGSTOP):
            stage.frozen += amount
        yield amount
    finally:
        stage.send("the trainer", pids, signal.SIGCONT)


def pod_ended(stage: Stage, amount: float) -> Blow:
    """SIGTERM to the first process, as a pod's end begins."""
    stage.send("the supervisor", [stage.pod], signal.SIGTERM)
    yield 0.0


def pod_killed(stage: Stage, amount: float) -> Blow:
    """All of it at once."""
    stage.send("supervisor, trainer and agent", [stage.pod, *stage.trainers, stage.agent], signal.SIGKILL)
    yield 0.0


def clock_jumped(stage: Stage, amount: float) -> Blow:
    """The node's clock is set."""
    (stage.folder / clockjump.FILE).write_text(f"{amount}", encoding="ascii")
    stage.say(f"the clock jumps by {amount:+.0f} s")
    yield 0.0


def second_agent(stage: Stage, amount: float) -> Blow:
    """A second agent must leave with exit status 3 and name the holder."""
    argv = [sys.executable, "-m", "gyrostat_agent", "agent", str(stage.layout.run_dir), "--mode", "act"]
    child = subprocess.Popen([*argv, "--listen", ""], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        left, held = _SECOND_SECONDS, bool(stage.agent)
        while child.poll() is None and left > 0:
            yield 0.2
            left -= 0.2
        said = f"a second agent ended with {child.poll()}"
        stage.say(said)
        if child.returncode != _HELD and held:
            stage.wrong.append(f"{said}, where {_HELD} is due")
    finally:
        child.kill()
        child.communicate()


def second_run(stage: Stage, amount: float) -> Blow:
    """Another run tells the same checkpoint folder, and its agent writes there."""
    stage.say("another run begins in the same checkpoint folder")
    other = stage.folder / "other"
    other.mkdir(mode=0o700)
    argv = [sys.executable, str(_OTHER_RUN), str(other), str(stage.layout.checkpoints)]
    with (stage.folder / "other.log").open("wb") as log:
        child = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        while child.poll() is None:
            yield 0.5
        stage.say(f"the other run ended with {child.returncode}")
    finally:
        child.terminate()
        child.wait()


BLOWS: Mapping[str, Callable[[Stage, float], Blow]] = {
    "agent_killed": agent_killed,
    "agent_stopped": agent_stopped,
    "agent_ended": agent_ended,
    "upgrade_form": agent_ended,
    "upgrade_rules": agent_ended,
    "trainer_killed": trainer_killed,
    "trainer_stopped": trainer_stopped,
    "pod_ended": pod_ended,
    "pod_killed": pod_killed,
    "clock_jumped": clock_jumped,
    "second_agent": second_agent,
    "second_run": second_run,
    "disk_full_run": disks.run_full,
    "disk_full_checkpoints": disks.checkpoints_full,
    "records_cut": records.cut,
    "records_copied": records.copied,
    "records_swapped": records.swapped,
    "records_flipped": records.flipped,
    "records_deleted": records.deleted,
}
