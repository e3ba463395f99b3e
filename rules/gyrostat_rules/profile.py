"""The run's own beginning, which later steps are held against: thresholds calibrate on the run itself.

A reference is never taken anew while the run goes on: one that adapts learns the collapse. It rests on the first
values of a window, which the window keeps when it lets go of old ones.
"""

import math
from collections.abc import Mapping
from itertools import islice
from statistics import fmean, median
from typing import NamedTuple

from gyrostat_rules import experts
from gyrostat_rules.manyranks import is_one_of_many
from gyrostat_rules.series import measured
from gyrostat_rules.state import Process, State, Window

START = 20  # steps that make a profile of experts
_NEWEST = 5
_STALE_STEPS = 20  # behind the process's newest step: what says nothing for so long is no word on the present


class Told(NamedTuple):
    """What one process has told: its name in the state's tables, the process, and its windows."""

    key: str
    process: Process
    windows: Mapping[str, Window]

    @property
    def labels(self) -> dict[str, str]:
        """Role and rank, as the labels of a reading."""
        return {"role": self.process.role, "rank": str(self.process.rank)}


def tellers(state: State) -> list[Told]:
    """The processes that live and have told something; of many ranks the first ones.

    Not those of a moment's records: an engine looks once more after each batch, without records, and what a
    detector does not return then is cleared.
    """
    return [
        Told(key, process, state.windows[key])
        for key, process in state.processes.items()
        if not process.ended and key in state.windows and not is_one_of_many(process.role, process.rank)
    ]


def named(windows: Mapping[str, Window], name: str) -> Window | None:
    """The series of that name, else the first that measures it: ``actor/entropy`` is ``entropy`` (docs/series.md)."""
    return windows.get(name) or next((w for other, w in windows.items() if measured(other) == name), None)


def is_fresh(window: Window | None, process: Process) -> bool:
    """True where a series is still being told."""
    return window is not None and bool(window.steps) and process.last_step - window.steps[-1] <= _STALE_STEPS


def newest(window: Window | None, count: int) -> list[float]:
    """The newest finite values, at most ``count``, oldest first."""
    return [v for v in (window.values if window else [])[-count:] if math.isfinite(v)]


def reference(window: Window | None, first: int = 0, last: int = START, least: int = START) -> float:
    """Median of the finite values from place ``first`` on, before ``last``; NaN where they are fewer than ``least``."""
    found = [v for v in (window.values if window else [])[first:last] if math.isfinite(v)]
    return median(found) if found and len(found) >= least else math.nan


def divergence(windows: Mapping[str, Window]) -> float:
    """KL(f || f_ref) in nats of the newest expert shares and those of the first steps: the largest of any layer.

    NaN where the shares of single experts are not kept or there is no profile yet.
    """
    layers: dict[str, list[tuple[float, float]]] = {}
    for name, window in windows.items():
        if name.startswith(experts.SHARE + "/"):
            if len(window.values) < START:
                return math.nan
            then, now = fmean(islice(window.values, START)), fmean(window.values[-_NEWEST:])
            layers.setdefault(name.split("/")[1], []).append((now, then))
    return max((_kl(pairs) for pairs in layers.values()), default=math.nan)


def _kl(pairs: list[tuple[float, float]]) -> float:
    tiny = 1e-3 / len(pairs)  # an expert that nobody asked at first is no infinite distance away
    total, total_ref = sum(p + tiny for p, _ in pairs), sum(q + tiny for _, q in pairs)
    return sum((p + tiny) / total * math.log((p + tiny) / total * total_ref / (q + tiny)) for p, q in pairs)
