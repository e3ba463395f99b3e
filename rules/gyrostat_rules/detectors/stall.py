"""Silence: a process that lives, has spoken, and says nothing for far longer than its steps take."""

import math
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from gyrostat_rules.detectors.gauge import ABOVE, Gauge
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.inputs import SourceWord
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import Process, State


class Stall(NamedTuple):
    """Breached after ``after_seconds``, ``times_step`` median steps, or twice the longest recent pause: the longest.

    A life that has not told a step yet may be loading a large model: it has ``first_seconds``.
    """

    after_seconds: float = 900.0
    times_step: float = 10.0
    first_seconds: float = 900.0


def stall(params: Stall, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a silent process. A source that is known to be blind says nothing here."""
    if any(s[0] in (SourceWord.GONE, SourceWord.FOREIGN) for s in state.sources.values()):
        return
    for process in state.processes.values():
        if process.last_step >= 0 and is_silent(params, process, moment.at):
            silent = moment.at - process.last_at
            why = f"no record for {silent:.0f} s after step {process.last_step}"
            labels = {"role": process.role, "rank": str(process.rank)}
            yield Reading(labels, silent, process.last_step + 1, why)


def stall_gauges(params: Stall, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a process that is watched: how long it has said nothing."""
    blind = [name for name, s in state.sources.items() if s[0] in (SourceWord.GONE, SourceWord.FOREIGN)]
    for process in state.processes.values():
        if not _is_watched(process):
            continue
        longest = limit(params, process)
        said = f"since step {process.last_step}; its steps take {median(process.step_seconds or [0.0]):.3g} s"
        if blind:
            said, longest = f"the source {blind[0]} is blind: whether it is silent cannot be told", math.nan
        elif process.last_step < 0:
            said, longest = "it has told no step yet", math.nan
        labels = {"role": process.role, "rank": str(process.rank)}
        yield Gauge(labels, "", moment.at - process.last_at, longest, ABOVE, said, "seconds of silence")


_SAMPLED = ("supervisor", "gpu", "host")  # no steps are expected of them, and their source says itself how it fares


def is_silent(params: Stall, process: Process, at: float) -> bool:
    """True where a process that lives has said nothing for too long at ``at``; of a trainer a step is expected."""
    silent = at - process.last_at
    # The first alone rules out nearly all: of a thousand ranks nobody's median is asked for at each look.
    return silent > params.after_seconds and _is_watched(process) and silent > limit(params, process)


def _is_watched(process: Process) -> bool:
    return not (
        process.ended
        or process.unseen
        or process.role in _SAMPLED
        or (process.last_step < 0 and process.role != "trainer")
    )


def limit(params: Stall, process: Process) -> float:
    """Seconds of silence that are too long for this process."""
    if not process.spoken:
        return max(params.after_seconds, params.first_seconds)
    pauses = process.step_seconds or [0.0]
    return max(params.after_seconds, params.times_step * median(pauses), 2.0 * max(pauses))
