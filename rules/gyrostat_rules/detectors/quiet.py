"""A process that fell silent while those beside it speak: a node, a server or a card that is gone.

``stall`` waits long, because a whole run may rightly pause. Where the others of its role go on there is no pause.
"""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, Gauge
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.inputs import SourceWord
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import Process, State

_BLIND = (SourceWord.GONE, SourceWord.FOREIGN)


class Quiet(NamedTuple):
    """Breached where a process of one of ``roles`` lives, has told ``spoke`` records, and has said nothing for
    ``after_seconds``, ``times_step`` of its median pauses, and twice the longest recent one: whichever is longest. And
    another of its role has spoken within a third of that, and ``ahead`` steps beyond it."""

    roles: Annotated[tuple[str, ...], Field(min_length=1)]
    after_seconds: float = 120.0
    times_step: float = 10.0
    ahead: Annotated[int, Field(ge=0)] = 3
    spoke: Annotated[int, Field(ge=1)] = 5


def quiet(params: Quiet, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a silent process. A source that is known to be blind says nothing here."""
    theirs = [p for p in state.processes.values() if p.role in params.roles and not p.ended and p.spoken]
    if len(theirs) < 2 or any(said[0] in _BLIND for said in state.sources.values()):
        return
    for process in theirs:
        silent, limit = moment.at - process.last_at, _limit(params, process)
        if process.told >= params.spoke and silent > limit and _goes_on(params, process, theirs, moment.at - limit / 3):
            why = f"no record for {silent:.0f} s after step {process.last_step}, while the others of its role go on"
            labels = {"role": process.role, "rank": str(process.rank)}
            yield Reading(labels, silent, process.last_step + 1, why, {"limit": limit})


def quiet_gauges(params: Quiet, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a process of those roles: how long it has said nothing."""
    for process in state.processes.values():
        if process.role in params.roles and not process.ended and process.spoken:
            said = f"since step {process.last_step}; others of its role must have gone on for {params.ahead} steps"
            labels = {"role": process.role, "rank": str(process.rank)}
            limit, silent = _limit(params, process), moment.at - process.last_at
            yield Gauge(labels, "", silent, limit, ABOVE, said, "seconds of silence")


def _limit(params: Quiet, process: Process) -> float:
    pauses = process.step_seconds or [0.0]
    return max(params.after_seconds, params.times_step * median(pauses), 2.0 * max(pauses))


def _goes_on(params: Quiet, silent: Process, others: Sequence[Process], since: float) -> bool:
    return any(
        other.role == silent.role and other.last_at >= since and other.last_step >= silent.last_step + params.ahead
        for other in others
    )
