"""Ranks beside each other: one that takes longer than the others, for which all of them wait.

What a rank tells must be its own work. The wall time of a step is the same for all who wait in a collective, and shows
no straggler; where it is all that is told, one is seen that the others do not wait for.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, Gauge
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State


class Beside(NamedTuple):
    """Breached where a rank's value is more than ``times`` the median of the other ranks of its role, in ``needed`` of
    the last ``of`` steps, the newest among them. Two ranks are enough: the other one is the measure then.
    """

    series: Names
    times: Annotated[float, Field(gt=1)] = 1.5
    needed: Annotated[int, Field(ge=1)] = 3
    of: Annotated[int, Field(ge=1, le=64)] = 5


def beside(params: Beside, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a rank that is beyond the others. The onset is the first of the last ``of`` steps at which it was."""
    for ranks in _groups(params, state, moment):
        limit = params.times * median([look.values[-1] for look in ranks])
        newest = max(look.values[-1] for look in ranks)
        if newest <= limit and len(ranks) > 3:
            continue  # the cheap way out, of nearly every step
        told = [dict(zip(look.steps, look.values, strict=True)) for look in ranks]
        for place, look in enumerate(ranks):
            if look.values[-1] <= limit and len(ranks) > 3:
                continue
            beyond = _beyond(params, look, told[:place] + told[place + 1 :])
            if look.steps[-1] in beyond and len(beyond) >= min(params.needed, params.of):
                yield _reading(params, look, beyond)


def beside_gauges(params: Beside, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a rank, against the median of the others."""
    for ranks in _groups(params, state, moment):
        told = [dict(zip(look.steps, look.values, strict=True)) for look in ranks]
        for place, look in enumerate(ranks):
            others = told[:place] + told[place + 1 :]
            limit = params.times * median([values[look.steps[-1]] for values in others])
            count = len(_beyond(params, look, others))
            said = f"{count} of the last {params.of} were, {min(params.needed, params.of)} are needed"
            yield Gauge(look.labels, look.series, look.values[-1], limit, ABOVE, said)


def _groups(params: Beside, state: State, moment: Moment) -> Iterator[list[Look]]:
    """The ranks of each role and series that have told the moment's step; one alone is beside nobody."""
    groups: dict[tuple[str, str], list[Look]] = {}
    for look in looks(params.series, state, moment, params.of, every_rank=True):
        if look.steps[-1] == moment.step:
            groups.setdefault((look.role, look.series), []).append(look)
    return (ranks for ranks in groups.values() if len(ranks) > 1)


def _beyond(params: Beside, look: Look, others: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The steps at which a rank was beyond the others, and how many times their median it was."""
    found = {}
    for step, value in zip(look.steps, look.values, strict=True):
        theirs = [values[step] for values in others if step in values]
        usual = median(theirs) if theirs else 0.0
        if usual > 0 and value > params.times * usual:
            found[step] = value / usual
    return found


def _reading(params: Beside, look: Look, beyond: Mapping[int, float]) -> Reading:
    step, onset = look.steps[-1], min(beyond)
    why = (
        f"{look.series} of {look.role} {look.rank} is {look.values[-1]:.4g} at step {step}, {beyond[step]:.3g} times "
        f"that of the other ranks; more than {params.times:g} times in {len(beyond)} of the last {params.of} steps, "
        f"since step {onset}"
    )
    evidence = {"series": look.series, "value": look.values[-1], "times": beyond[step], "limit": params.times,
                "beyond": len(beyond), "of": params.of}  # fmt: skip
    return Reading(look.labels, look.values[-1], onset, why, evidence)
