"""Keeping: which checkpoints must not be lost to a trainer's rotation, the most needed first.

What a trainer keeps by age says nothing of health: while poisoned weights are being saved, the last healthy ones are
those that go. Kept are the newest that could be gone back to now, and what is newer and may yet become one.
"""

import math
from functools import lru_cache
from typing import NamedTuple

from gyrostat_rules.certify import name_of, newest_first, unfit
from gyrostat_rules.detectors.looks import PATTERNS
from gyrostat_rules.incidents import HELD
from gyrostat_rules.inputs import CheckpointSeen, Fit
from gyrostat_rules.jump import abandoned
from gyrostat_rules.requests import LAST_STABLE, target, well_until
from gyrostat_rules.state import Incident, State

HOPEFUL = 4  # newer than the newest certified: of a run that saves often only the newest few are kept
_TOLD_BY = 2  # validations below the best in a row, until it is told: the one before them may be the last good one


class Keep(NamedTuple):
    """Names of checkpoints: those to keep, best first, so that what must go goes from the end; and all that are judged.

    What is not judged yet is nobody's to let go. ``sure``: so many of the first stay however full the disk is.
    """

    names: tuple[str, ...]
    judged: frozenset[str]
    sure: int = 1


def keep(state: State, certified: int) -> Keep:
    """Those that people have tagged, so many certified ones, and newer ones that may become it.

    While an incident is open all that is verified is kept: which is needed is not known yet. For one that waits for
    days, as a silence has it, that would fill any disk: of those are kept as many as ever.
    """
    good, hopeful = list[str](), list[str]()
    now, troubled = _now(state), any(i.open and not _waits_for_long(i) for i in state.incidents)
    for seen in _newest_first(state):
        if not unfit(state, now, seen):
            good.append(name_of(seen.path))
        elif troubled or not good:
            hopeful.append(name_of(seen.path))
    judged = frozenset(name_of(s.path) for s in state.checkpoints.values() if not _gone(s))
    if not troubled:
        good, hopeful = [*good[:certified], *_planned(state), *_validated(state)], hopeful[:HOPEFUL]
    best = dict.fromkeys((*good[:1], *state.tags) if certified else state.tags)
    return Keep(tuple(best | dict.fromkeys((*good, *hopeful) if certified else ())), judged, len(best) or 1)


def _planned(state: State) -> list[str]:
    """What is gone back to when the wait is over."""
    last = [incident.actions[-1].arguments for incident in state.incidents if incident.open and incident.actions]
    return [name_of(given["checkpoint"]) for given in last if "checkpoint" in given]


def _validated(state: State) -> list[str]:
    """What would be proposed if a validation went back: the newest of what the last good one may have looked at."""
    until = well_until(state)
    if until is not None:
        stable, _ = target(state, LAST_STABLE)
        return [name_of(stable.path)] if stable else []
    windows = [w for each in state.windows.values() for name, w in each.items() if _is_validation(name)]
    until = min((w.steps[-1 - _TOLD_BY] for w in windows if len(w.steps) > _TOLD_BY), default=-1)
    now = _now(state)
    found = (seen for seen in _newest_first(state) if seen.step <= until and not unfit(state, now, seen))
    return [name_of(seen.path) for seen in found][:1]


@lru_cache(maxsize=4096)
def _is_validation(name: str) -> bool:
    return bool(PATTERNS["any validation score"](name))


def _newest_first(state: State) -> list[CheckpointSeen]:
    """Each checkpoint once, wherever it lies; without those that are ill, or of a stretch that was left."""
    found: dict[str, CheckpointSeen] = {}
    for seen in newest_first(state):
        if seen.fit == Fit.VERIFIED and not abandoned(state, seen.segment, seen.step):
            found.setdefault(name_of(seen.path), seen)
    return list(found.values())


def _gone(seen: CheckpointSeen) -> bool:
    return seen.fit == Fit.UNFIT and seen.why == Fit.GONE


def _waits_for_long(incident: Incident) -> bool:
    return incident.state == HELD and incident.held_until == math.inf


def _now(state: State) -> Incident:
    """The trouble that begins with the next step: what would be certified against it is certified now."""
    step = state.step + 1
    return Incident("", "", "open", step, step, 0.0, [], step)
