"""Entropy of the policy, in nats a token: each look a rule of its own, calibrated on the run.

A fixed floor misfires, for entropy varies tenfold with model, temperature and masking: the floor here is the
smaller of a fixed one and half of what the run began with. ``level`` and ``explosion`` are for warnings,
``forecast`` is for information alone (every healthy run descends at first), ``act`` and ``collapse`` are grave.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, linear_regression, median
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from gyrostat_rules.detectors.entropytrack import LEAST, Track, track_of
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.floorcontrol import OFF, SATURATED, control
from gyrostat_rules.moment import Moment
from gyrostat_rules.profile import Told, is_fresh, named, newest, reference, tellers
from gyrostat_rules.state import State, Window

_STILL, _STEEP = 0.95, 3.0  # of the mean three steps ago; most that a run may fall at first and come back
_FORECAST = (12, 20)  # fewest and most rows by which a fall is called one
_NOW = 6  # newest rows, whose pace is projected: over twenty the mean still tells of the time before the fall
_REST = 0.1  # of the pace over twenty: a fall that has come to rest, whose steps to the floor are without end
_LATELY = 3  # steps: a small batch is far from the mean for one or two
# Steps that falls took, over those at their pace: tenth, half and nine tenths of the falls of the split `calibrate`,
# by benchmarks/detection/calibrate_forecast.py. What bends a fall, or shakes it, is in them and in no other term.
TOOK = (0.79, 1.04, 1.48)


class Entropy(NamedTuple):
    """``look``: level, act, forecast, collapse or explosion. Of a running mean, ``needed`` of ``of`` steps:

    level: below the floor, which is ``floor`` nats or ``relative`` times the start, the smaller;
    act: below ``share`` of the floor; below ``spent`` of it where the trainer's own control is at its limit; and below
    all of it where it is off, when twice is often enough, and the floor is of the very first values if that is higher;
    forecast: falling by ``fall`` a step (of its logarithm) and the floor less than ``within`` steps away. The pace of
    the newest rows is projected to the floor, and the interval is those steps times the tenth and the nine tenths of
    what falls took in a calibration, in whole steps. It holds 80 % of the first forecasts of falls that go on to the
    floor; whether one will, it doesn't say, and a healthy one need not;
    explosion: above ``times`` the start and the first values. And of single values, without the mean:
    rate: below ``lost`` of the highest within ``span`` steps, while the reward is not told or has not risen;
    collapse: below ``sudden`` of the ten steps' median before, twice running; or below ``nothing`` nats, thrice; or
    nothing is left to learn from, while the reward is below ``saturated``: a task that is solved is no collapse.
    """

    look: Literal["level", "act", "forecast", "collapse", "explosion", "rate"] = "level"
    series: str = "entropy"
    floor: float = 0.3
    relative: float = 0.5
    share: float = 0.5
    spent: float = 0.6
    fall: float = 0.02
    within: float = 12.0
    times: float = 1.5
    sudden: float = 0.25
    nothing: float = 0.01
    saturated: float = 0.95
    lost: float = 0.4
    span: int = 25
    needed: Annotated[int, Field(ge=1)] = 3
    of: Annotated[int, Field(ge=1, le=64)] = 5


class _Found(NamedTuple):
    value: float
    onset: int
    why: str
    evidence: Mapping[str, Any] = {}


def entropy(params: Entropy, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a process whose entropy is breached by the look.

    The onset of level, act and explosion is where the unbroken fall, or rise, past the limit began; of the forecast
    where the present fall began; of a collapse its first low value, or the first step without anything to learn.
    """
    for told in tellers(state):
        window = named(told.windows, params.series)
        track = tracked(params, window, moment) if window and is_fresh(window, told.process) else None
        if track is None:
            continue
        if found := _LOOKS[params.look](params, track, state, told):
            yield Reading(told.labels, found.value, found.onset, found.why, {**_shown(track, told), **found.evidence})


def tracked(params: Entropy, window: Window, moment: Moment) -> Track | None:
    """The track of a window, followed once an input for all rules of the same floor."""
    newest_row = len(window.steps), window.steps[-1], window.values[-1]
    key = "entropy", id(window), newest_row, params.floor, params.relative
    if key not in moment.memo:
        moment.memo[key] = track_of(window, params.floor, params.relative)
    return moment.memo[key]  # type: ignore[no-any-return]


def _shown(track: Track, told: Told) -> dict[str, Any]:
    out = {"entropy": track.values[-1], "entropy_mean": track.means[-1]}
    if math.isfinite(track.start):
        out |= {"entropy_start": track.start, "floor": track.floor}
    if own := newest(told.windows.get("entropy_floor"), 1):  # shown beside ours: it may move with the run, ours never
        out["trainers_floor"] = own[0]
    return out


def _level(params: Entropy, track: Track, state: State, told: Told) -> _Found | None:
    return _beyond(params, track, track.floor, -1, f"the floor of {track.floor:.3g}")


def _act(params: Entropy, track: Track, state: State, told: Told) -> _Found | None:
    judged = control(state, told)
    limit, needed, name = act_limit(params, track, judged.word)
    found = _beyond(params._replace(needed=needed), track, limit, -1, name)
    if found is None:
        return None
    evidence = {**found.evidence, "control": judged.word}
    return found._replace(why=f"{found.why}; {judged.why}", evidence=evidence)


def act_limit(params: Entropy, track: Track, word: str) -> tuple[float, int, str]:
    """The limit, how often a mean must be below it, and its name."""
    floor, share = track.floor, {OFF: 1.0, SATURATED: params.spent}.get(word, params.share)
    # At its limit, control was seen to hold runs that learnt on at 0.73 of their floor: that is no collapse yet.
    if word == OFF:
        # Nothing slows a fall: one that is steep from the first step on would be taken for the run's own start.
        floor = max(floor, min(params.floor, params.relative * track.first)) if _falls(track) else floor
    needed = min(params.needed, 2) if word == OFF else params.needed
    return share * floor, needed, f"{'' if share == 1.0 else f'{share:.3g} of '}the floor of {floor:.3g}"


def _falls(track: Track) -> bool:
    """True where the mean is still going down: one that has come to rest is as low as this run is."""
    means = track.means
    return track.floor > 0 and len(means) > LEAST and means[-1] < _STILL * means[-4]


def _explosion(params: Entropy, track: Track, state: State, told: Told) -> _Found | None:
    limit = explosion_limit(params, track)  # by the values themselves: on a climb their mean is steps late
    return _beyond(params, track, limit, 1, f"{params.times:.3g} times its start", track.values)


def explosion_limit(params: Entropy, track: Track) -> float:
    """What the mean must be above; NaN while that is not known."""
    if not track.settled:  # before, the start is that of a few values, and so is what is far above it
        return math.nan
    # A run that fell steeply at first has a low start, and back where it came from is no explosion.
    return params.times * max(track.start, min(track.first, _STEEP * track.start))


def _beyond(
    params: Entropy, track: Track, limit: float, sign: int, name: str, values: Sequence[float] = ()
) -> _Found | None:
    """Beyond the limit, above for ``sign`` 1 and below for -1, often enough: the means, or other ``values``."""
    values = values or track.means
    if (
        sum(sign * (value - limit) > 0 for value in values[-params.of :]) < params.needed
    ):  # none where no limit is known
        return None
    beyond = [sign * (value - limit) > 0 for value in values]
    first = len(beyond) - 1 - beyond[::-1].index(True)
    while first and beyond[first - 1]:
        first -= 1
    onset = _began(track, first, sign)
    word = "above" if sign > 0 else "below"
    why = f"entropy {values[-1]:.3g} nats is {word} {name} since step {track.steps[first]}"
    why += f"; the run's start was {track.start:.3g}, and it moved there from step {onset} on"
    return _Found(values[-1], onset, why, {"limit": limit})


def _began(track: Track, place: int, sign: int) -> int:
    """The step at which the mean, moving without a break, began to go where it is at ``place``."""
    while place and sign * (track.means[place] - track.means[place - 1]) > 0:
        place -= 1
    return track.steps[min(place + 1, len(track.steps) - 1)]


def _forecast(params: Entropy, track: Track, state: State, told: Told) -> _Found | None:
    going = pace_of(track)
    if going is None or going.fall <= params.fall or going.way / going.fall >= params.within:
        return None
    now, way, logs = track.means[-1], going.way, going.logs
    pace = -_slope(track.steps[-_NOW:], logs[-_NOW:])
    if pace <= _REST * going.fall:
        return None
    straight = way / pace
    soonest, likely, latest = (max(1, round(share * straight)) for share in TOOK)
    why = f"entropy {now:.3g} nats falls by {pace:.1%} a step: if it goes on, it is below the floor of"
    why += f" {track.floor:.3g} in {soonest} to {latest} steps"
    evidence = {"pace": pace, "straight": straight, "steps": likely, "soonest": soonest, "latest": latest}
    return _Found(float(likely), _began(track, len(track.means) - 1, -1), why, evidence)


class Pace(NamedTuple):
    """How fast the mean's logarithm falls a row, how far it has to go to the floor, and those logarithms."""

    fall: float
    way: float
    logs: list[float]


def pace_of(track: Track) -> Pace | None:
    """None where it is too early to say, or the mean is at its floor, or near its start."""
    means = track.means[-_FORECAST[1] :]
    now = means[-1]
    if len(means) < _FORECAST[0] or min(means) <= 0 or not track.floor < now < 0.7 * track.start:
        return None
    logs = [math.log(mean) for mean in means]
    return Pace(-_slope(range(len(logs)), logs), math.log(now / track.floor), logs)


def _slope(places: Sequence[float], values: Sequence[float]) -> float:
    return float(linear_regression(places, values).slope)


def _collapse(params: Entropy, track: Track, state: State, told: Told) -> _Found | None:
    return fell_to(params, track) or _nothing_left(params, track, told)


def _rate(params: Entropy, track: Track, state: State, told: Told) -> _Found | None:
    """Steeper than learning explains: a healthy run that becomes surer of itself is paid for it."""
    now, step = lately(track), track.steps[-1]
    high, since = highest(params, track)
    if now >= params.lost * high or _has_risen(named(told.windows, "reward"), since):
        return None
    why = f"entropy fell from {high:.3g} nats at step {since} to {now:.3g} at step {step}, and no reward was won by it"
    return _Found(now, since, why, {"high": high})


def lately(track: Track) -> float:
    """The highest value of the newest three steps; of a log that tells one every tenth step it is the newest."""
    since = track.steps[-1] - _LATELY
    return max(value for value, at in zip(track.values[-_LATELY:], track.steps[-_LATELY:], strict=True) if at > since)


def highest(params: Entropy, track: Track) -> tuple[float, int]:
    """The highest of the newest steps, and its step."""
    since = track.steps[-1] - params.span
    return max((value, at) for at, value in zip(track.steps, track.values, strict=True) if at >= since)


def _has_risen(reward: Window | None, since: int) -> bool:
    """True where the reward is higher than it was when the fall began."""
    if reward is None or len(reward.values) < 2:
        return False
    before = [v for s, v in zip(reward.steps, reward.values, strict=True) if s <= since and math.isfinite(v)][-5:]
    after = newest(reward, 5)
    return not before or not after or fmean(after) > fmean(before)


def fell_to(params: Entropy, track: Track) -> _Found | None:
    """A value below a share of the ten before it, and no way back since."""
    values = track.values
    if len(values) <= LEAST + 1 or max(values[-2:]) >= params.sudden * max(values):
        return None
    for place in range(LEAST, len(values) - 1):
        usual = median(values[place - LEAST : place])
        if max(values[place:]) < params.sudden * usual:
            step = track.steps[place]
            why = f"entropy fell from {usual:.3g} to {values[place]:.3g} nats at step {step} and stays there"
            return _Found(values[-1], step, why, {"usual": usual})
    return None


def _nothing_left(params: Entropy, track: Track, told: Told) -> _Found | None:
    """No entropy at all, or groups whose completions are all alike, and a reward that says the task isn't solved."""
    rewards = newest(named(told.windows, "reward"), 5)
    if rewards and fmean(rewards) >= params.saturated:
        return None
    low = [v < params.nothing for v in track.values]
    if len(low) >= 3 and all(low[-3:]):
        first = len(low) - low[::-1].index(False) if False in low else 0
        why = f"entropy {track.values[-1]:.2g} nats is next to nothing since step {track.steps[first]}"
        return _Found(track.values[-1], track.steps[first], why)
    return _alike(params, track, told, rewards)


def _alike(params: Entropy, track: Track, told: Told, rewards: list[float]) -> _Found | None:
    groups, answers = told.windows.get("zero_advantage_fraction"), told.windows.get("unique_fraction")
    alike, unique = newest(groups, 5), newest(answers, 5)
    if groups is None or not rewards or not unique or len(alike) < 5 or min(alike) <= 0.9:
        return None
    began, now = reference(answers, 0, 5, least=1), fmean(unique)
    if len(groups.values) < LEAST or now >= 0.5 * began:
        return None
    place = len(groups.values) - 1
    while place and groups.values[place - 1] > 0.9:
        place -= 1
    why = f"{alike[-1]:.0%} of the groups are without advantage since step {groups.steps[place]}, unique answers are"
    why += f" {now:.0%} (at first {began:.0%}), and the reward is {fmean(rewards):.3g}: nothing is learnt any more"
    return _Found(track.values[-1], groups.steps[place], why, {"zero_advantage_fraction": alike[-1], "unique": now})


_LOOKS: dict[str, Callable[[Entropy, Track, State, Told], _Found | None]] = {
    "level": _level,
    "act": _act,
    "forecast": _forecast,
    "collapse": _collapse,
    "explosion": _explosion,
    "rate": _rate,
}
