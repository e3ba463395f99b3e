"""Phases of a run in which numbers move for good reason, and rules may be told to look away, or only there."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from gyrostat_rules.detectors.looks import found
from gyrostat_rules.state import Process, State, key_of

WARM_UP = 20  # first steps of a process's life
AFTER_ROLLBACK = 10  # steps after one gone back to
AFTER_CHANGE = 5  # steps after the learning rate was changed
_CHANGE = 1.5  # a schedule moves it by less from one step to the next
_RATES = ("learning_rate", "lr", "lr_scale")


def is_in(phases: Sequence[str], state: State, role: str, rank: int) -> bool:
    """True where a process is in one of ``phases``, or where all of them begin with ``not ``, in none of those."""
    if not phases:
        return True
    process = state.processes.get(key_of(role, rank))
    if process is None:
        return False
    wanted = [PHASES[p](state, process) for p in phases if p in PHASES]
    refused = [PHASES[p.removeprefix("not ")](state, process) for p in phases if p not in PHASES]
    return (any(wanted) or not wanted) and not any(refused)


def _warms_up(state: State, process: Process) -> bool:
    return process.told <= WARM_UP


def _is_back(state: State, process: Process) -> bool:
    return any(
        process.segment > jump.segment and 0 < process.last_step - jump.step <= AFTER_ROLLBACK for jump in state.jumps
    )


def _has_other_rate(state: State, process: Process) -> bool:
    windows = state.windows.get(key_of(process.role, process.rank), {})
    return any(_changed(windows[name].values[-AFTER_CHANGE - 1 :]) for name in found(_RATES, windows))


def _changed(values: Sequence[float]) -> bool:
    return any(a > 0 and b > 0 and not 1 / _CHANGE <= b / a <= _CHANGE for a, b in pairwise(values))


PHASES: Mapping[str, Callable[[State, Process], bool]] = {
    "warmup": _warms_up,
    "after_rollback": _is_back,
    "lr_change": _has_other_rate,
}
