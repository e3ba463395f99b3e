"""Play: one draw, really run: the trainer, its sidecar, what is done to them, until the run is over.

A run that a disturbance ended with its pod is started again, twice at most, as a job's controller does; nobody else
helps. Whatever happens, no process outlives a play that is ended by SIGTERM.
"""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from chaos import course, disks, faults
from chaos.blows import BLOWS, Blow
from chaos.disturbances import DISTURBANCES
from chaos.draw import Draw
from chaos.plan import FOLDER, Plan
from chaos.stage import Stage
from gyrostat_agent.demo.child import environment

_HERE = Path(__file__).parent
_LOOK_SECONDS = 0.05
_STEP_SECONDS, _MORE_SECONDS = 8.0, 240.0  # longest that a run may take: for each step, and besides
_PODS = 3  # lives of a pod whose end was brought about
# Where an agent dies at a named point: the point and how often it is passed before. What comes but once, the first.
_POINTS = (
    ("batch.drained", 40), ("batch.decided", 60), ("turn.committed", 60), ("ledger.written", 3), ("resume.written", 1),
    ("directive.linked", 1), ("bell.rung", 1), ("snapshot.saved", 1), ("settled", 1), ("records.deleted", 1),
)  # fmt: skip


class Played(NamedTuple):
    """What a run came to: exit ``status`` of its last pod, ``pods`` that there were, steps as printed, how long.

    ``gap``: longest pause between two steps, seconds, those left out in which the trainer was stopped.
    """

    status: int
    pods: int
    steps: tuple[course.Told, ...]
    seconds: float
    gap: float
    silent: bool


def plan_of(draw: Draw) -> Plan:
    """What the children are told."""
    point = draw.has("agent_killed_at")
    late = draw.has("control_late")
    control = next((d.name.partition("_")[2] for d in draw.disturbances if d.name.startswith("control_")), "")
    upgrade = next((d.name.partition("_")[2] for d in draw.disturbances if d.name.startswith("upgrade_")), "")
    return Plan(_failpoint(point.amount) if point else "", upgrade, control, round(late.amount) if late else 1)


def command(draw: Draw, folder: Path, *, beside: bool) -> list[str]:
    """How the run is started; ``beside`` false: without a sidecar, as its untreated twin."""
    stage = Stage(draw, folder).layout
    keep = draw.has("rotation")
    trainer = [
        str(_HERE / "trainer_child.py"), "--steps", str(draw.steps), "--seed", str(draw.seed),
        "--checkpoints", str(stage.checkpoints), "--checkpoint-every", "2" if keep else "5",
        *(["--keep", str(round(keep.amount))] if keep else []),
        "--summary", str(stage.summary), "--run-dir", str(stage.run_dir),
        *faults.words(draw.faults, beside=beside), *_damage(draw),
    ]  # fmt: skip
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(draw.ranks)]
    trainer = [sys.executable, *(ranks if draw.ranks > 1 else []), *trainer]
    if not beside:
        return trainer
    return [
        sys.executable, str(_HERE / "supervisor_child.py"), "run", "--run-dir", str(stage.run_dir), "--run", "chaos",
        "--mode", "act", "--no-approvals", "--listen", "", "--", *trainer,
    ]  # fmt: skip


def play(stage: Stage, *, beside: bool = True) -> Played:
    """Run it to its end; raises OSError, CalledProcessError where it cannot be begun."""
    for where in (stage.layout.run_dir, stage.layout.checkpoints):
        where.mkdir(mode=0o700)
    plan_of(stage.draw).write(stage.folder)
    if beside:
        disks.mount(stage)
    return _Run(stage, beside).to_its_end()


class _Run:
    """A stage, its pod and the blows under way."""

    def __init__(self, stage: Stage, beside: bool) -> None:
        self._stage, self._beside = stage, beside
        self._log = course.Log(stage.folder / "output.log")
        self._due = sorted(stage.draw.disturbances, key=lambda d: d.step) if beside else []
        self._under_way: list[tuple[float, Blow]] = []
        self._steps: list[course.Told] = []
        self._last = math.inf  # when the last step was told; none yet of this pod
        self._gap = 0.0

    def to_its_end(self) -> Played:
        began, pods = time.monotonic(), 1
        deadline = began + _MORE_SECONDS + _STEP_SECONDS * self._stage.draw.steps
        mortal = any(DISTURBANCES[d.name].pod for d in self._stage.draw.disturbances)
        pod = self._start()
        try:
            while time.monotonic() < deadline:
                status = pod.poll()
                self._look()
                if status is not None and (not status or not mortal or pods == _PODS):
                    break
                if status is not None:
                    self._stage.say(f"the pod ended with {status}, and is started again")
                    pods, pod = pods + 1, self._start()
                time.sleep(_LOOK_SECONDS)
        finally:
            for _, blow in self._under_way:
                blow.close()
            status = pod.poll()
            self._stage.end()
        silent = status is None
        left = pod.wait()
        return Played(left, pods, tuple(self._steps), time.monotonic() - began, self._gap, silent)

    def _start(self) -> "subprocess.Popen[bytes]":
        self._last = math.inf
        argv = command(self._stage.draw, self._stage.folder, beside=self._beside)
        path = os.pathsep.join(p for p in (str(_HERE.parent), os.environ.get("PYTHONPATH", "")) if p)
        env = {**environment(os.environ), FOLDER: str(self._stage.folder), "PYTHONPATH": path}
        with (
            (self._stage.folder / "output.log").open("ab") as out,
            (self._stage.folder / "errors.log").open("ab") as err,
        ):
            pod = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)
        self._stage.pod = pod.pid
        return pod

    def _look(self) -> None:
        """Take in what was printed, and do what is due."""
        now = time.monotonic()
        for step in self._log.news():
            self._gap, self._last = max(self._gap, now - self._last - self._stage.frozen), now  # less than 0 at first
            self._stage.frozen = 0.0
            self._steps.append(step)
            self._stage.step = step.step
        while self._due and self._stage.step >= self._due[0].step:
            one = self._due.pop(0)
            if one.name in BLOWS:
                self._under_way.append((now, BLOWS[one.name](self._stage, one.amount)))
        self._under_way = [later for at, blow in self._under_way for later in _taken_further(at, blow, now)]


def _taken_further(at: float, blow: Blow, now: float) -> Iterator[tuple[float, Blow]]:
    if now < at:
        yield at, blow
        return
    for seconds in blow:
        yield now + seconds, blow
        return


def _failpoint(share: float) -> str:
    """A point for a number from 0 to 1; where it is passed often, later ones for what is left of the number."""
    place = min(share, 1 - 1e-9) * len(_POINTS)
    name, most = _POINTS[int(place)]
    return f"{name}:{1 + int((place % 1) * most)}"


def _damage(draw: Draw) -> list[str]:
    """The trainer's own faults of checkpoints, at their step."""
    found = [d for d in draw.disturbances if d.name.startswith("checkpoint_")]
    return [word for d in found for word in ("--fault", f"{d.name}@{d.step}")]


def interruptible(main: Callable[[], int]) -> int:
    """Run ``main`` so that SIGTERM ends it by its ``finally`` clauses."""

    def leave(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    try:
        return main()
    except KeyboardInterrupt:
        return 130


__all__: Sequence[str] = ("Played", "command", "interruptible", "plan_of", "play")
