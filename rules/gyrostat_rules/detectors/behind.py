"""Rollouts of an old policy: an engine whose weights are versions behind those of the trainer."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, Gauge
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State, key_of

_TRAINER = "trainer"


class Behind(NamedTuple):
    """Breached where a process that is no trainer tells a version of ``series`` by more than ``versions`` below that
    which trainer 0 has told last."""

    series: Names
    versions: Annotated[float, Field(ge=0)] = 8.0


def behind(params: Behind, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a process that is behind. The onset is the first step at which it told the version it has."""
    for look in looks(params.series, state, moment):
        if look.role == _TRAINER:
            continue
        window = state.windows.get(key_of(_TRAINER, 0), {}).get(look.series)
        if window is not None and window.values and window.values[-1] - look.values[-1] > params.versions:
            yield _reading(params, look, window.values[-1])


def behind_gauges(params: Behind, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a process that is no trainer: how many versions it is behind."""
    for look in looks(params.series, state, moment):
        window = state.windows.get(key_of(_TRAINER, 0), {}).get(look.series)
        if look.role != _TRAINER and window is not None and window.values:
            said = f"it has {look.values[-1]:g}, the trainer {window.values[-1]:g}"
            far = window.values[-1] - look.values[-1]
            yield Gauge(look.labels, look.series, far, params.versions, ABOVE, said, "versions behind")


def _reading(params: Behind, look: Look, newest: float) -> Reading:
    held = look.values[-1]
    onset = look.steps[-1]
    for step, value in zip(reversed(look.steps), reversed(look.values), strict=True):
        if value != held:
            break
        onset = step
    why = (
        f"{look.series} of {look.role} {look.rank} is {held:g}, {newest - held:g} versions behind the trainer's "
        f"{newest:g}; the limit is {params.versions:g}"
    )
    evidence = {"series": look.series, "value": held, "trainer": newest, "limit": params.versions}
    return Reading(look.labels, newest - held, onset, why, evidence)
