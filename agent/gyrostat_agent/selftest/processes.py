"""Simulated runs for the detectors of processes, ranks, checkpoints and logs. Called as those of ``numbers`` are."""

from typing import Any, get_args

from gyrostat.wire import Exit
from gyrostat_agent.selftest.numbers import named
from gyrostat_agent.selftest.script import SECONDS, Script
from gyrostat_rules.detectors.behind import Behind
from gyrostat_rules.detectors.beside import Beside
from gyrostat_rules.detectors.damaged import Damaged
from gyrostat_rules.detectors.exited import Exited
from gyrostat_rules.detectors.faultline import FaultLines
from gyrostat_rules.detectors.overdue import Overdue
from gyrostat_rules.detectors.quiet import Quiet
from gyrostat_rules.detectors.stall import Stall
from gyrostat_rules.inputs import CheckpointSeen, Died, FaultKind, FaultLine, Fit


def _steps(script: Script, count: int) -> None:
    script.column("loss", script.about(1.0, count))


def stall(params: Stall, script: Script, ill: bool) -> None:
    """A trainer that falls silent for twice what is too long; in the quiet run for half of it."""
    _steps(script, 10)
    script.ill()
    longest = max(params.after_seconds, params.times_step * SECONDS, 2 * SECONDS)
    for _ in range(4 if ill else 1):
        script.wait(longest / 2)


def exited(params: Exited, script: Script, ill: bool) -> None:
    """A trainer that dies; in the quiet run it is asked to end."""
    _steps(script, 5)
    script.ill()
    script.say(Died("supervisor", Exit("trainer", 0, 7, 1 if ill else 0, not ill)))


def fault_line(params: FaultLines, script: Script, ill: bool) -> None:
    """A line of a kind that counts; in the quiet run one that does not, where there is any."""
    _steps(script, 5)
    script.ill()
    others = [kind for kind in get_args(FaultKind) if kind not in params.kinds]
    kinds = params.kinds[:1] if ill else others[:1]
    script.say(*(FaultLine("trainer", 0, kind, "a line of the simulated log") for kind in kinds))
    _steps(script, 2)


def quiet(params: Quiet, script: Script, ill: bool) -> None:
    """One of two ranks falls silent while the other goes on."""
    role = params.roles[0]
    longest = max(params.after_seconds, params.times_step * SECONDS, 2 * SECONDS)
    for step in range(params.spoke + 5 + params.ahead + int(2 * longest / SECONDS)):
        if step == params.spoke + 5:
            script.ill()
        ranks = (0,) if ill and step >= params.spoke + 5 else (0, 1)
        script.rows([*((role, rank, {"load": 1.0}) for rank in ranks), ("trainer", 0, {"loss": 1.0})])


def overdue(params: Overdue, script: Script, ill: bool) -> None:
    """A run with a folder for checkpoints and none in it; in the quiet run they come."""
    stride = max(1, params.after // 20)
    script.ill()
    for step in range(0, params.after + params.least + 3 * stride, stride):
        if not ill:
            script.say(_checkpoint(step))
        script.tell({"loss": 1.0}, stride=stride)


def damaged(params: Damaged, script: Script, ill: bool) -> None:
    """A checkpoint whose digest differs; in the quiet run one that a rotation has taken away."""
    _steps(script, 3)
    script.say(_checkpoint(1))
    script.ill()
    script.say(_checkpoint(2, Fit.UNFIT, "its digest differs" if ill else Fit.GONE))
    _steps(script, 2)


def _checkpoint(step: int, fit: str = Fit.VERIFIED, why: str = "") -> CheckpointSeen:
    return CheckpointSeen(f"/ck/{step}", step, 0, f"digest-{step}", fit, why, float(step))


def beside(params: Beside, script: Script, ill: bool) -> None:
    """Three ranks, one of which becomes slow."""
    name = named(params.series)
    for step in range(10 + params.of):
        if step == 10:
            script.ill()
        slow = 2 * params.times if ill and step >= 10 else 1.0
        pace: list[tuple[str, int, dict[str, Any]]] = [
            ("trainer", rank, {name: value * (slow if rank == 2 else 1.0)})
            for rank, value in enumerate(script.about(1.0, 3))
        ]
        script.rows(pace)


def behind(params: Behind, script: Script, ill: bool) -> None:
    """A rollout engine whose weights stay while the trainer's go on; in the quiet run it follows one version late."""
    name = named(params.series)
    versions = [float(v) for v in range(10)] + [10 + 2 * params.versions + v for v in range(5)]
    for place, version in enumerate(versions):
        if place == 10:
            script.ill()
        held = min(version, 10.0) if ill else version - min(1.0, params.versions)
        script.rows([("rollout", 0, {name: float(held)}), ("trainer", 0, {name: float(version)})])
