"""One expert that gets nearly everything. Read from a record's counts: where each token goes to one expert, or few."""

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat.wire import Record
from gyrostat_rules import experts
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State, Window, key_of


class Overuse(NamedTuple):
    """Breached where one expert gets more than ``share`` of the assignments of its layer and loop, and in ``needed``
    steps, the newest among them, no more experts were in use than such a share leaves.

    Where a router gives each token to k experts, none gets more than 1 / k of the assignments.
    """

    share: Annotated[float, Field(gt=0.5, lt=1)] = 0.85
    needed: Annotated[int, Field(ge=1, le=32)] = 3


def overuse(params: Overuse, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a layer and loop with such an expert. The onset is the first of its steps in a row."""
    few = 1.05 / params.share**2  # effective experts: 1 / sum of squares, and a little for the finite sample
    for record in moment.records:
        windows = state.windows.get(key_of(record.role, record.rank), {})
        worst = windows.get(experts.RHO_EFF)
        if record.load is None or worst is None or worst.values[-1] * record.load.experts > few:
            continue  # the cheap way out: counts are looked at only where the worst row is as bad as that
        for layer, loop, counts in record.load.rows():
            window = windows.get(f"{experts.RHO_EFF}/{layer}/{loop}", worst)
            low = _low(window, few / record.load.experts)
            top = max(counts) / max(sum(counts), 1)
            if top > params.share and sum(counts) >= experts.ENOUGH * len(counts) and low >= params.needed:
                yield _reading(record, (layer, loop), counts, window.steps[-low])


def _low(window: Window, limit: float) -> int:
    """How many values at the end are below ``limit``."""
    count = 0
    for value in reversed(window.values):
        if value > limit:
            break
        count += 1
    return count


def _reading(record: Record, place: tuple[int, int], counts: Sequence[int], onset: int) -> Reading:
    layer, loop = place
    expert, top = max(range(len(counts)), key=counts.__getitem__), max(counts) / sum(counts)
    labels = {"role": record.role, "rank": str(record.rank), "layer": str(layer), "loop": str(loop)}
    why = f"expert {expert} of layer {layer} loop {loop} gets {top:.0%} of all assignments, since step {onset}"
    return Reading(labels, top, onset, why, {"layer": layer, "loop": loop, "expert": expert, "share": top})
