"""Checkpoints that are not fit to go back to: not whole, changed, or with numbers in them that are not finite."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.inputs import CheckpointSeen, Fit
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State

# What is said of one that a rotation has taken away, and of one that is looked at again: neither is damage.
_NO_DAMAGE = ("gone", "changed after it was verified")


class Damaged(NamedTuple):
    """Breached where one of the ``newest`` checkpoints, by the time they were saved, was looked at and found unfit."""

    newest: Annotated[int, Field(ge=1, le=200)] = 3


def damaged(params: Damaged, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading for trainer 0, of the newest that is unfit. The onset is the step that it was saved at."""
    if all(seen.fit != Fit.UNFIT for seen in state.checkpoints.values()):
        return
    newest = sorted(state.checkpoints.values(), key=attrgetter("saved_at"), reverse=True)
    there = [seen for seen in newest if seen.why != "gone"][: params.newest]
    for seen in there:
        if _is_ill(seen):
            why = f"the checkpoint of step {seen.step} at {seen.path} is not fit to go back to: {seen.why}"
            evidence = {"path": seen.path, "checkpoint_step": seen.step}
            yield Reading({"role": "trainer", "rank": "0"}, float(seen.step), max(seen.step, 0), why, evidence)
            return


def _is_ill(seen: CheckpointSeen) -> bool:
    return seen.fit == Fit.UNFIT and not seen.why.startswith(_NO_DAMAGE)
