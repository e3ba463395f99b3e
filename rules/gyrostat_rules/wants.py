"""Wants: what each rule must be told to say anything. A rule without it is silent, and that must never read as clean.

Asked when a run is shown and when a past log is summed up; nothing of it enters the state or an entry. It does not
promise that a rule which has its data has enough of it: a reward told twice is data too.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from gyrostat_rules import experts, series
from gyrostat_rules.detectors.apart import Apart
from gyrostat_rules.detectors.balance import ExpertBalance
from gyrostat_rules.detectors.drift import Drift
from gyrostat_rules.detectors.drop import Drop
from gyrostat_rules.detectors.entropy import Entropy
from gyrostat_rules.detectors.exited import Exited
from gyrostat_rules.detectors.faultline import FaultLines
from gyrostat_rules.detectors.knobdrift import KnobDrift
from gyrostat_rules.detectors.level import Level
from gyrostat_rules.detectors.looks import found
from gyrostat_rules.detectors.nonfinite import UNDEFINED, NonFinite
from gyrostat_rules.detectors.spike import Spike
from gyrostat_rules.detectors.stall import Stall
from gyrostat_rules.detectors.stuck import Stuck
from gyrostat_rules.detectors.trend import Trend
from gyrostat_rules.inputs import SourceWord
from gyrostat_rules.pack import Rule
from gyrostat_rules.state import Process, State, Window

ENOUGH = 20  # steps of a trainer after which it shows what it tells: some tell a series every tenth step
LOG = "log:"  # sources of this name are logs: their error lines are read
_GONE = 20  # steps, or two of a series' own spacings, after which what was told is told no more


class Heard(NamedTuple):
    """What there is to look at. ``series``: names of those that are being told.

    ``knobs``: a process tells one of its knobs as a series; ``running``: steps are watched as they come; ``deaths``:
    somebody sees processes end; ``lines``: a log is read, with its error lines.
    """

    series: frozenset[str]
    knobs: bool = False
    running: bool = False
    deaths: bool = False
    lines: bool = False


class Want(NamedTuple):
    """One thing that is enough for a rule: its name for people, and whether it was ``met``."""

    words: str
    met: Callable[[Heard], bool]


class Off(NamedTuple):
    """A rule with nothing to look at, and what it would want."""

    alert: str
    wants: str


def wants(rule: Rule) -> tuple[Want, ...]:
    """What a rule looks at; any one of it is enough."""
    return WANTS[rule.detector](rule.params)


def words(rule: Rule) -> str:
    """The same for people: ``gpu_lost``, ``learning_rate or lr or ...``."""
    return " or ".join(want.words for want in wants(rule))


def off(rules: Iterable[Rule], heard: Heard) -> tuple[Off, ...]:
    """The rules that have nothing to look at, in the order of the pack."""
    return tuple(Off(rule.alert, words(rule)) for rule in rules if not any(want.met(heard) for want in wants(rule)))


def is_early(state: State) -> bool:
    """True until a trainer has told 20 steps: before, what it will tell is not known."""
    return not any(
        len(process.step_seconds) + 1 >= ENOUGH
        or any(len(window.steps) >= ENOUGH for window in state.windows.get(key, {}).values())
        for key, process in state.processes.items()
        if process.role == "trainer"
    )


def heard(state: State) -> Heard:
    """What there is to look at in a run that goes on, of all its processes."""
    processes = state.processes.items()
    return Heard(
        _told(state),
        any(not process.knobs.keys().isdisjoint(state.windows.get(key, ())) for key, process in processes),
        any(process.role == "trainer" and process.last_step >= 0 for _, process in processes),
        state.supervisor() is not None,
        any(name.startswith(LOG) and said[0] == SourceWord.FRESH for name, said in state.sources.items()),
    )


def _told(state: State) -> frozenset[str]:
    """Most ranks tell the same names: of each rank only those are looked at that no rank before it tells."""
    known, left = set[str](), set[str]()
    for key, windows in state.windows.items():
        process = state.processes.get(key)
        if process is not None:
            if not known.issuperset(windows):
                left |= windows.keys() - known
                known |= windows.keys()
            left -= {name for name in left if name in windows and _is_told(windows[name], process)}
    return frozenset(known - left)


def _is_told(window: Window, process: Process) -> bool:
    """False for what a process has left off telling: its rule is as silent as if it had never been told."""
    if not window.steps:
        return False
    spacing = window.steps[-1] - window.steps[-2] if len(window.steps) > 1 else 0
    return process.last_step - window.steps[-1] <= max(_GONE, 2 * spacing)


# -- one for each detector ----------------------------------------------------------------------------


def _of_series(params: Spike | Drift | Drop | Level | Stuck | Trend) -> tuple[Want, ...]:
    return tuple(_named(params.series))


def _of_apart(params: Apart) -> tuple[Want, ...]:
    both = f"{' or '.join(params.rising)} beside {' or '.join(params.falling)}"
    return (Want(both, partial(_tells_both, params.rising, params.falling)),)


def _of_entropy(params: Entropy) -> tuple[Want, ...]:
    return tuple(_named([params.series]))


def _of_nonfinite(params: NonFinite) -> tuple[Want, ...]:
    """Any series may be the mean over nothing: a rule that looks for those alone has its data with the first one."""
    poison = Want("loss, grad_norm, reward or their like", _tells_poison)
    return (Want("any series", _tells_anything),) if UNDEFINED in params.classes else (poison,)


def _of_experts(params: ExpertBalance) -> tuple[Want, ...]:
    """Counts give both series, and some trainers tell nothing but the two."""
    both = f"{experts.RHO_EFF} beside {experts.DEAD_SHARE}"
    return (Want("expert counts", _tells_balance), Want(both, _tells_balance))


def _of_knobs(params: KnobDrift) -> tuple[Want, ...]:
    return (*_named(params.rates), Want("a knob told under its own name", lambda heard: heard.knobs))


def _of_stalls(params: Stall) -> tuple[Want, ...]:
    return (Want("a process that is watched while it runs", lambda heard: heard.running),)


def _of_exits(params: Exited) -> tuple[Want, ...]:
    return (Want("gyrostat run around the trainer", lambda heard: heard.deaths),)


def _of_lines(params: FaultLines) -> tuple[Want, ...]:
    return (Want("a log that is read", lambda heard: heard.lines),)


def _named(names: Iterable[str]) -> Iterator[Want]:
    return (Want(name, partial(_tells, name)) for name in names)


def _tells(name: str, heard: Heard) -> bool:
    """Told under the name, or as what measures it: as the detectors find it."""
    return next(found([name], heard.series), None) is not None


def _tells_both(some: Iterable[str], others: Iterable[str], heard: Heard) -> bool:
    return any(_tells(name, heard) for name in some) and any(_tells(name, heard) for name in others)


def _tells_balance(heard: Heard) -> bool:
    return heard.series >= {experts.RHO_EFF, experts.DEAD_SHARE}


def _tells_poison(heard: Heard) -> bool:
    return series.PARAMS_FINITE in heard.series or any(series.meaning(n) == series.POISON for n in heard.series)


def _tells_anything(heard: Heard) -> bool:
    return bool(heard.series)


WANTS: dict[str, Callable[[Any], tuple[Want, ...]]] = {
    "nonfinite": _of_nonfinite,
    "stall": _of_stalls,
    "spike": _of_series,
    "drift": _of_series,
    "drop": _of_series,
    "level": _of_series,
    "stuck": _of_series,
    "trend": _of_series,
    "apart": _of_apart,
    "entropy": _of_entropy,
    "expert_balance": _of_experts,
    "knob_drift": _of_knobs,
    "exit": _of_exits,
    "fault_line": _of_lines,
}
