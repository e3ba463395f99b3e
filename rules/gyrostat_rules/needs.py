"""Needs: what each detector must be told to say anything, by its parameters. One function each, one table.

Called by ``wants`` alone.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from gyrostat_rules import experts, series
from gyrostat_rules.detectors.apart import Apart
from gyrostat_rules.detectors.balance import ExpertBalance
from gyrostat_rules.detectors.behind import Behind
from gyrostat_rules.detectors.beside import Beside
from gyrostat_rules.detectors.damaged import Damaged
from gyrostat_rules.detectors.drift import Drift
from gyrostat_rules.detectors.drop import Drop
from gyrostat_rules.detectors.entropy import Entropy
from gyrostat_rules.detectors.exited import Exited
from gyrostat_rules.detectors.faultline import FaultLines
from gyrostat_rules.detectors.filling import Filling
from gyrostat_rules.detectors.frozen import Frozen
from gyrostat_rules.detectors.grows import Grows
from gyrostat_rules.detectors.hollow import Hollow
from gyrostat_rules.detectors.idle import Idle
from gyrostat_rules.detectors.knobdrift import KnobDrift
from gyrostat_rules.detectors.level import Level
from gyrostat_rules.detectors.looks import found
from gyrostat_rules.detectors.loops import Loops
from gyrostat_rules.detectors.nonfinite import UNDEFINED, NonFinite
from gyrostat_rules.detectors.overdue import SAVED, Overdue
from gyrostat_rules.detectors.overuse import Overuse
from gyrostat_rules.detectors.quiet import Quiet
from gyrostat_rules.detectors.raised import Raised
from gyrostat_rules.detectors.regression import Regression
from gyrostat_rules.detectors.resumed import Resumed
from gyrostat_rules.detectors.rise import Rise
from gyrostat_rules.detectors.share import Share
from gyrostat_rules.detectors.skips import Skips
from gyrostat_rules.detectors.spike import Spike
from gyrostat_rules.detectors.stall import Stall
from gyrostat_rules.detectors.stuck import Stuck
from gyrostat_rules.detectors.trend import Trend


class Heard(NamedTuple):
    """What there is to look at. ``series``: names of those that are being told.

    ``knobs``: a process tells one of its knobs as a series; ``running``: steps are watched as they come; ``deaths``:
    somebody sees processes end; ``lines``: a log is read, with its error lines; ``checkpoints``: there is a folder of
    them, or some were seen; ``roles``: those of which two processes or more have spoken.
    """

    series: frozenset[str]
    knobs: bool = False
    running: bool = False
    deaths: bool = False
    lines: bool = False
    checkpoints: bool = False
    roles: frozenset[str] = frozenset()


class Need(NamedTuple):
    """One thing that is enough for a rule: its name for people, and whether it was ``met``."""

    words: str
    met: Callable[[Heard], bool]


def _of_series(params: Spike | Drift | Drop | Level | Stuck | Trend | Grows | Beside | Rise) -> tuple[Need, ...]:
    return tuple(_named(params.series))


def _of_names(params: Raised | Idle | Resumed | Skips | Frozen | Regression) -> tuple[Need, ...]:
    return tuple(_named(params.series))


def _of_filling(params: Filling) -> tuple[Need, ...]:
    both = f"{' or '.join(params.series)} beside {' or '.join(params.total)}"
    return (Need(both, partial(_tells_both, params.series, params.total)),)


def _of_hollow(params: Hollow) -> tuple[Need, ...]:
    three = (params.series, params.reward, params.truncated)
    said = " and ".join(" or ".join(names) for names in three[1:])
    return (Need(f"{' or '.join(params.series)} beside {said}", partial(_tells_each, three)),)


def _of_overuse(params: Overuse) -> tuple[Need, ...]:
    return (Need("expert counts", _tells_balance),)


def _of_loops(params: Loops) -> tuple[Need, ...]:
    return (Need("loop_update_1, loop_update_2 and so on", partial(_tells, "loop_update_2")),)


def _of_apart(params: Apart) -> tuple[Need, ...]:
    both = f"{' or '.join(params.rising)} beside {' or '.join(params.falling)}"
    return (Need(both, partial(_tells_both, params.rising, params.falling)),)


def _of_entropy(params: Entropy) -> tuple[Need, ...]:
    return tuple(_named([params.series]))


def _of_nonfinite(params: NonFinite) -> tuple[Need, ...]:
    """Any series may be the mean over nothing: a rule that looks for those alone has its data with the first one."""
    poison = Need("loss, grad_norm, reward or their like", _tells_poison)
    return (Need("any series", _tells_anything),) if UNDEFINED in params.classes else (poison,)


def _of_experts(params: ExpertBalance) -> tuple[Need, ...]:
    """Counts give both series, and some trainers tell nothing but the two."""
    both = f"{experts.RHO_EFF} beside {experts.DEAD_SHARE}"
    return (Need("expert counts", _tells_balance), Need(both, _tells_balance))


def _of_knobs(params: KnobDrift) -> tuple[Need, ...]:
    return (*_named(params.rates), Need("a knob told under its own name", lambda heard: heard.knobs))


def _of_stalls(params: Stall) -> tuple[Need, ...]:
    return (Need("a process that is watched while it runs", lambda heard: heard.running),)


def _of_exits(params: Exited) -> tuple[Need, ...]:
    return (Need("gyrostat run around the trainer", lambda heard: heard.deaths),)


def _of_lines(params: FaultLines) -> tuple[Need, ...]:
    return (Need("a log that is read", lambda heard: heard.lines),)


def _of_share(params: Share) -> tuple[Need, ...]:
    both = f"{' or '.join(params.part)} beside {' or '.join(params.whole)}"
    return (Need(both, partial(_tells_both, params.part, params.whole)),)


def _of_versions(params: Behind) -> tuple[Need, ...]:
    return tuple(Need(f"{want.words} of rollouts and trainer", want.met) for want in _named(params.series))


def _of_silences(params: Quiet) -> tuple[Need, ...]:
    return tuple(Need(f"two {role} processes", partial(_speak, role)) for role in params.roles)


def _of_saves(params: Overdue) -> tuple[Need, ...]:
    return (Need("a checkpoint folder", lambda heard: heard.checkpoints), *_named(SAVED))


def _of_verdicts(params: Damaged) -> tuple[Need, ...]:
    return (Need("a checkpoint folder", lambda heard: heard.checkpoints),)


def _speak(role: str, heard: Heard) -> bool:
    return role in heard.roles


def _named(names: Iterable[str]) -> Iterator[Need]:
    return (Need(name, partial(_tells, name)) for name in names)


def _tells(name: str, heard: Heard) -> bool:
    """Told under the name, or as what measures it: as the detectors find it."""
    return next(found([name], heard.series), None) is not None


def _tells_each(names: Iterable[Iterable[str]], heard: Heard) -> bool:
    """One of each."""
    return all(any(_tells(name, heard) for name in some) for some in names)


def _tells_both(some: Iterable[str], others: Iterable[str], heard: Heard) -> bool:
    return any(_tells(name, heard) for name in some) and any(_tells(name, heard) for name in others)


def _tells_balance(heard: Heard) -> bool:
    return heard.series >= {experts.RHO_EFF, experts.DEAD_SHARE}


def _tells_poison(heard: Heard) -> bool:
    return series.PARAMS_FINITE in heard.series or any(series.meaning(n) == series.POISON for n in heard.series)


def _tells_anything(heard: Heard) -> bool:
    return bool(heard.series)


NEEDS: dict[str, Callable[[Any], tuple[Need, ...]]] = {
    "nonfinite": _of_nonfinite,
    "stall": _of_stalls,
    "spike": _of_series,
    "drift": _of_series,
    "drop": _of_series,
    "level": _of_series,
    "stuck": _of_series,
    "trend": _of_series,
    "raised": _of_names,
    "idle": _of_names,
    "resumed": _of_names,
    "skips": _of_names,
    "frozen": _of_names,
    "regression": _of_names,
    "filling": _of_filling,
    "hollow": _of_hollow,
    "overuse": _of_overuse,
    "loops": _of_loops,
    "apart": _of_apart,
    "entropy": _of_entropy,
    "expert_balance": _of_experts,
    "knob_drift": _of_knobs,
    "rise": _of_series,
    "grows": _of_series,
    "share": _of_share,
    "beside": _of_series,
    "behind": _of_versions,
    "quiet": _of_silences,
    "overdue": _of_saves,
    "damaged": _of_verdicts,
    "exit": _of_exits,
    "fault_line": _of_lines,
}
