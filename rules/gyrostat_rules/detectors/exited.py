"""A process that ended unasked, with a status that says failure."""

from collections.abc import Iterator
from typing import NamedTuple

from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State


class Exited(NamedTuple):
    """No parameters."""


def exited(params: Exited, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a process that died."""
    for process in state.processes.values():
        if process.died:
            labels = {"role": process.role, "rank": str(process.rank)}
            why = f"{process.role} {process.rank} ended with {process.ended} after step {process.last_step}"
            yield Reading(labels, 1.0, process.last_step + 1, why)
