"""A well-known error line in a log: an Xid, memory that ran out, a collective that timed out.

A line is a thing of one moment and may have been got over, so that it counts for some steps and no longer. It counts
no more when the process, or trainer 0, begins a new life, when the process says goodbye, or when the run has gone
back: what still ails it will be said again.
"""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.inputs import FaultKind
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State


class FaultLines(NamedTuple):
    """Which ``kinds`` count, and for how many steps after the newest line of a kind."""

    kinds: Annotated[tuple[FaultKind, ...], Field(min_length=1)]
    keep: int = 20


def fault_line(params: FaultLines, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a kind and process. Its value counts the lines; the onset is the newest step when it was said."""
    for seen in state.faults.values():
        if seen.kind not in params.kinds or seen.segment < state.segment or moment.step - seen.step > params.keep:
            continue
        labels = {"role": seen.role, "rank": str(seen.rank), "kind": seen.kind}
        often = f" ({seen.count} such lines)" if seen.count > 1 else ""
        evidence = {"kind": seen.kind, "line_step": seen.step, "lines": seen.count}
        yield Reading(labels, float(seen.count), max(seen.step, 0), seen.why + often, evidence)
