"""What each look at the entropy measures against what, by the same functions as the looks themselves."""

import math
from collections.abc import Iterator
from statistics import median

from gyrostat_rules.detectors.entropy import (
    Entropy,
    act_limit,
    explosion_limit,
    fell_to,
    highest,
    lately,
    pace_of,
    tracked,
)
from gyrostat_rules.detectors.entropytrack import LEAST, Track
from gyrostat_rules.detectors.gauge import ABOVE, BELOW, Gauge, Side
from gyrostat_rules.floorcontrol import control
from gyrostat_rules.moment import Moment
from gyrostat_rules.profile import Told, is_fresh, named, tellers
from gyrostat_rules.state import State


def entropy_gauges(params: Entropy, state: State, moment: Moment) -> Iterator[Gauge]:
    """One gauge a process, two where the look has two limits."""
    for told in tellers(state):
        window = named(told.windows, params.series)
        track = tracked(params, window, moment) if window and is_fresh(window, told.process) else None
        if track is not None:
            yield from (g._replace(series=params.series) for g in _gauges(params, track, state, told))


def _gauges(params: Entropy, track: Track, state: State, told: Told) -> Iterator[Gauge]:
    if params.look == "level":
        yield _of_mean(told, track, track.floor, BELOW, params.needed, params.of)
    elif params.look == "act":
        word = control(state, told).word
        limit, needed, name = act_limit(params, track, word)
        gauge = _of_mean(told, track, limit, BELOW, needed, params.of)
        yield gauge._replace(sentence=f"{name}, for the trainer's own control is {word}; {gauge.sentence}")
    elif params.look == "explosion":
        yield _of_values(told, track, explosion_limit(params, track), params)
    elif params.look == "rate":
        high, since = highest(params, track)
        said = f"it was {high:.3g} at step {since}; where the reward has risen since, nothing is said"
        yield Gauge(told.labels, "", lately(track), params.lost * high, BELOW, said, "the highest of three steps")
    elif params.look == "forecast":
        yield _of_pace(params, track, told)
    else:
        yield from _of_collapse(params, track, told)


def _of_mean(told: Told, track: Track, limit: float, side: Side, needed: int, of: int) -> Gauge:
    count = sum(mean > limit if side == ABOVE else mean < limit for mean in track.means[-of:])
    said = f"{count} of the last {of} were, {needed} are needed; "
    said += "the run's start is not known yet" if math.isnan(limit) else f"the run's start was {track.start:.3g}"
    return Gauge(told.labels, "", track.means[-1], limit, side, said, "running mean")


def _of_values(told: Told, track: Track, limit: float, params: Entropy) -> Gauge:
    count = sum(value > limit for value in track.values[-params.of :])
    said = f"{count} of the last {params.of} were, {params.needed} are needed; "
    said += "the run's start is not known yet" if math.isnan(limit) else f"the run's start was {track.start:.3g}"
    return Gauge(told.labels, "", track.values[-1], limit, ABOVE, said)


def _of_pace(params: Entropy, track: Track, told: Told) -> Gauge:
    pace = pace_of(track)
    if pace is None or pace.fall <= params.fall:
        said = "it does not fall fast enough to ask when" if pace else "it is at its floor, near its start, or too new"
        return Gauge(told.labels, "", track.means[-1], math.nan, BELOW, said, "running mean")
    said = f"it falls by {pace.fall:.1%} a row towards its floor of {track.floor:.3g}"
    return Gauge(told.labels, "", pace.way / pace.fall, params.within, BELOW, said, "steps to its floor")


def _of_collapse(params: Entropy, track: Track, told: Told) -> Iterator[Gauge]:
    values, found = track.values, fell_to(params, track)
    if len(values) > LEAST + 1:
        usual = float(found.evidence["usual"]) if found else median(values[-LEAST - 2 : -2])
        said = f"usually {usual:.3g} before"
        yield Gauge(told.labels, "", max(values[-2:]), params.sudden * usual, BELOW, said, "the higher of the last two")
    said = "where the reward is not that of a task that is solved"
    yield Gauge(told.labels, "", max(values[-3:]), params.nothing, BELOW, said, "the highest of the last three")
