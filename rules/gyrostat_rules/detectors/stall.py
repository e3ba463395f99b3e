"""Silence: a process that lives, has spoken, and says nothing for far longer than its steps take."""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.inputs import SourceWord
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import Process, State


class Stall(NamedTuple):
    """Breached after ``after_seconds`` or ``times_step`` median steps of silence, whichever is longer.

    A life that has not told a step yet may be loading a large model: it has ``first_seconds``.
    """

    after_seconds: float = 120.0
    times_step: float = 10.0
    first_seconds: float = 900.0


def stall(params: Stall, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a silent process. A source that is known to be blind says nothing here (DESIGN §5)."""
    if any(s[0] in (SourceWord.GONE, SourceWord.FOREIGN) for s in state.sources.values()):
        return
    for process in state.processes.values():
        if process.ended or process.last_step < 0 or process.role == "supervisor":
            continue
        silent = moment.at - process.last_at
        if silent > limit(params, process):
            why = f"no record for {silent:.0f} s after step {process.last_step}"
            labels = {"role": process.role, "rank": str(process.rank)}
            yield Reading(labels, silent, process.last_step + 1, why)


def limit(params: Stall, process: Process) -> float:
    """Seconds of silence that are too long for this process."""
    if not process.spoken:
        return max(params.after_seconds, params.first_seconds)
    usual = median(process.step_seconds) if process.step_seconds else 0.0
    return max(params.after_seconds, params.times_step * usual)
