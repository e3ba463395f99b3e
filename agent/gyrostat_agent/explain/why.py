"""Why: what a rule did at one step of a run, and for what reason.

The verdict is the engine's own: what stood after that moment. The reasons are its gauges', its ``for`` and its muting.
"""

from typing import NamedTuple

from gyrostat_agent.explain.account import Account
from gyrostat_agent.explain.numbers import away, name_of, number
from gyrostat_agent.explain.sight import Key, Sight, Standing
from gyrostat_agent.explain.witness import way
from gyrostat_rules.detectors.gauge import Gauge

SILENT, NOT_ASKED, HOLDS_ON = "silent", "not asked", "holds on"
_MOST = 3  # gauges that are shown about a step, the nearest to their limits first


class Point(NamedTuple):
    """One row about the step: a gauge's value and limit then."""

    step: int
    segment: int
    gauge: Gauge


class Course(NamedTuple):
    """One gauge about the step, oldest first."""

    name: str
    points: tuple[Point, ...]


class Why(NamedTuple):
    """``looked``: the step of the look that answers, -1 where none did; ``because``: sentences, the main one first."""

    step: int
    looked: int
    verdict: str
    because: tuple[str, ...]
    courses: tuple[Course, ...]


def why(found: Account, step: int) -> Why:
    """What the rule did at the step, and why; of a step that the run told twice, the last time."""
    there = [sight for sight in found.witness.near if sight.step == step]
    sight = there[-1] if there else found.witness.before
    if sight is None:
        return Why(step, -1, NOT_ASKED, (_unasked(found),), ())
    verdict, because = _judged(found, sight)
    if not there:
        told = f"step {step} told nothing for this rule to look at; this is its look at step {sight.step}"
        because = (told, *because)
    return Why(step, sight.step, verdict, because, _courses(found, sight))


def _unasked(found: Account) -> str:
    if found.silent:
        return f"nobody tells {' or '.join(found.unmet)}"
    return "up to that step nothing was told that it looks at"


def _judged(found: Account, sight: Sight) -> tuple[str, tuple[str, ...]]:
    if sight.standing:
        said = [line for key, stood in sorted(sight.standing.items()) for line in _stood(key, stood, sight)]
        firing = any(stood.state == "firing" for stood in sight.standing.values())
        kept = not sight.breached
        return (HOLDS_ON if kept else "firing") if firing else "pending", tuple(said)
    if not sight.gauges:
        reason = f"its detector could not be asked: {found.witness.broken}" if found.witness.broken else _nothing(found)
        return SILENT, (reason,)
    return SILENT, tuple(_silence(sight, key, sight.gauges[key]) for key in _nearest(sight))


def _nothing(found: Account) -> str:
    return f"nothing of the kind was there; there are no numbers for detector {found.rule.detector}"


def _stood(key: str, stood: Standing, sight: Sight) -> list[str]:
    said = [f"{key} {stood.state} since step {stood.since}, onset {stood.onset}: {stood.why}"]
    if stood.lasted and stood.state == "pending":
        said.append(stood.lasted)
    if key not in sight.breached:
        said.append("it was not breached at this step; what was breached before still counts")
    if stood.muted_by:
        said.append(f"muted by {stood.muted_by}")
    return said


def _silence(sight: Sight, key: Key, gauge: Gauge) -> str:
    said = f"{name_of(gauge)} is {number(gauge.value)}; {away(gauge)}"
    out = sight.out.get(key, "")
    return f"{said}; {gauge.sentence}" + (f"; {out}" if out else "")


def _nearest(sight: Sight) -> list[Key]:
    return sorted(sight.gauges, key=lambda key: way(sight.gauges[key]))[:_MOST]


def _courses(found: Account, sight: Sight) -> tuple[Course, ...]:
    return tuple(
        Course(
            name_of(sight.gauges[key]),
            tuple(Point(s.step, s.segment, s.gauges[key]) for s in found.witness.near if key in s.gauges),
        )
        for key in _nearest(sight)
    )
