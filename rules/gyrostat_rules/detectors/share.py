"""The share of one number in another: of a step's time that which waits for data, of a memory that which is used."""

from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.gauge import ABOVE, Gauge
from gyrostat_rules.detectors.looks import Look, Names, looks
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State


class Share(NamedTuple):
    """Breached where ``part`` is more than ``above`` of ``whole`` in ``needed`` of the last ``of`` values of it.

    Both of one process and one step, in one unit; of several wholes the first that is told counts. One step says
    nothing where a loader begins an epoch anew, or a cache is filled once.
    """

    part: Names
    whole: Names
    above: Annotated[float, Field(gt=0)]
    needed: Annotated[int, Field(ge=1)] = 3
    of: Annotated[int, Field(ge=1, le=64)] = 5


def share(params: Share, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a part that is too large. The onset is the first of the last values that were."""
    for look, whole in _pairs(params, state, moment):
        shares = _shares(look, dict(zip(whole.steps, whole.values, strict=True)))
        beyond = [step for step, value in shares.items() if value > params.above]
        if beyond and beyond[-1] == look.steps[-1] and len(beyond) >= min(params.needed, params.of):
            yield _reading(params, look, whole, shares, beyond)


def share_gauges(params: Share, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a part that is told beside a whole."""
    for look, whole in _pairs(params, state, moment):
        shares = _shares(look, dict(zip(whole.steps, whole.values, strict=True)))
        if look.steps[-1] in shares:
            beyond = sum(value > params.above for value in shares.values())
            said = f"{beyond} of the last {params.of} were, {min(params.needed, params.of)} are needed"
            now = shares[look.steps[-1]]
            yield Gauge(look.labels, look.series, now, params.above, ABOVE, said, f"of {whole.series}")


def _pairs(params: Share, state: State, moment: Moment) -> Iterator[tuple[Look, Look]]:
    """Each part with its whole."""
    wholes: dict[tuple[str, int], Look] = {}
    for look in looks(params.whole, state, moment, params.of):
        wholes.setdefault((look.role, look.rank), look)
    for look in looks(params.part, state, moment, params.of) if wholes else ():
        whole = wholes.get((look.role, look.rank))
        if whole is not None and whole.series != look.series:
            yield look, whole


def _shares(part: Look, wholes: Mapping[int, float]) -> dict[int, float]:
    """By step, oldest first; steps that do not tell both, or nothing to have a share in, are left out."""
    pairs = zip(part.steps, part.values, strict=True)
    return {step: value / wholes[step] for step, value in pairs if wholes.get(step, 0.0) > 0}


def _reading(params: Share, part: Look, whole: Look, shares: Mapping[int, float], beyond: list[int]) -> Reading:
    now = shares[beyond[-1]]
    why = (
        f"{part.series} is {now:.1%} of {whole.series} at step {beyond[-1]}, more than {params.above:.1%} in "
        f"{len(beyond)} of the last {params.of} values, since step {beyond[0]}"
    )
    evidence = {"series": part.series, "whole": whole.series, "value": part.values[-1], "share": now,
                "limit": params.above, "beyond": len(beyond), "of": params.of}  # fmt: skip
    return Reading(part.labels, now, beyond[0], why, evidence)
