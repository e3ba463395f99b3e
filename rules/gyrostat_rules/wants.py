"""Wants: what each rule must be told to say anything. A rule without it is silent, and that must never read as clean.

Asked when a run is shown and when a past log is summed up; nothing of it enters the state or an entry. It does not
promise that a rule which has its data has enough of it: a reward told twice is data too.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from gyrostat_rules.inputs import SourceWord
from gyrostat_rules.needs import NEEDS, Heard, Need
from gyrostat_rules.pack import Rule
from gyrostat_rules.state import Process, State, Window

ENOUGH = 20  # steps of a trainer after which it shows what it tells: some tell a series every tenth step
LOG = "log:"  # sources of this name are logs: their error lines are read
_GONE = 20  # steps, or two of a series' own spacings, after which what was told is told no more


class Off(NamedTuple):
    """A rule with nothing to look at, and what it would want."""

    alert: str
    wants: str


def wants(rule: Rule) -> tuple[Need, ...]:
    """What a rule looks at; any one of it is enough."""
    return NEEDS[rule.detector](rule.params)


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
        bool(state.checkpoints) or any(process.root for _, process in processes),
        frozenset(role for role, many in Counter(p.role for _, p in processes if p.spoken).items() if many > 1),
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
