"""Verdict: what a chaos run came to, by what its trainer printed, its last checkpoint and its journal.

mended   it came to its last step, its faults' incidents are resolved, knobs and reward are back
held     not mended; a person was asked, and all evidence is there
worse    something was done that must not be: twice, to a healthy run, or to its harm
lost     not mended, and nobody was told
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from chaos import course
from chaos.disturbances import DISTURBANCES
from chaos.draw import Draw
from chaos.evidence import Evidence, done_to_the_run
from chaos.faults import LEAST, MOST, TURNED
from chaos.play import Played

MENDED, HELD, WORSE, LOST = VERDICTS = ("mended", "held", "worse", "lost")
_OF_FAULTS = ("nonfinite", "knobs", "divergence", "entropy", "experts", "mismatch")  # incidents of the founding faults
_HIGH = 0.90  # reward that is back, whatever it was before
_LESS, _BEFORE = 0.05, 10  # reward may be so much less than the mean of so many steps before the fault
_BACK = 15  # last steps among which the best are looked for: the scenarios ask the same behind an action
_WORSE = 0.10  # reward, so much less than the untreated twin's, is harm and not luck
_LONGEST = 90.0  # seconds between two steps; longer, and somebody held the trainer up


class Facts(NamedTuple):
    """All there is to judge by. ``knobs``: of the newest checkpoint. ``wrong``: what a bystander saw."""

    draw: Draw
    played: Played
    evidence: Evidence
    knobs: dict[str, float]
    wrong: tuple[str, ...]


class Verdict(NamedTuple):
    """One of VERDICTS, and why not mended, or how."""

    word: str
    why: str


def judged(facts: Facts) -> Verdict:
    """Judge a run that had a sidecar."""
    for check in _HARM:
        if why := check(facts):
            return Verdict(WORSE, why)
    whys = [why for check in _MENDS if (why := check(facts))]
    if not whys:
        return Verdict(MENDED, _how(facts))
    if facts.evidence.pages:
        return Verdict(HELD, f"{whys[0]}; {facts.evidence.pages[-1]}")
    return Verdict(LOST, "; ".join(whys))


def beside_its_twin(verdict: Verdict, reward: float | None, twin: float | None) -> Verdict:
    """Compare one that was not mended with the same run left alone, whose reward is None where it died."""
    if verdict.word == MENDED or (reward or 0.0) >= (twin or 0.0) - _WORSE:
        return verdict
    return Verdict(WORSE, f"reward {reward or 0.0:.3f}, left alone {twin or 0.0:.3f}; {verdict.why}")


def reward_of(facts: Facts) -> float | None:
    """Mean of the last ten steps; None where it did not come to its end."""
    return None if _reached_its_end(facts) else course.reward(facts.played.steps)


# -- what must not be ----------------------------------------------------------------------------------------


def _journal_adds_up(facts: Facts) -> str:
    return "; ".join([*facts.evidence.faults, *facts.wrong])


def _nothing_done_to_the_healthy(facts: Facts) -> str:
    """Where no fault is, nothing may be turned, skipped, undone or ended."""
    odd = any(DISTURBANCES[d.name].alters for d in facts.draw.disturbances)
    if facts.draw.faults or odd:
        return ""
    deeds = [f"{d.remedy} for {c.kind}" for c in facts.evidence.cases.values() for d in done_to_the_run(c)]
    return f"nothing was broken, and there was {', '.join(deeds)}" if deeds else ""


def _trainer_not_held_up(facts: Facts) -> str:
    return (
        f"{facts.played.gap:.0f} s between two steps" if facts.played.gap > _LONGEST and facts.played.pods == 1 else ""
    )


# -- what a mend is ------------------------------------------------------------------------------------------


def _reached_its_end(facts: Facts) -> str:
    played = facts.played
    last = played.steps[-1].step if played.steps else 0
    if played.silent:
        return f"it hangs at step {last} of {facts.draw.steps}"
    if played.status:
        return f"it ended with {played.status} at step {last} of {facts.draw.steps}"
    return "" if last >= facts.draw.steps else f"it came to step {last} of {facts.draw.steps}"


def _incidents_resolved(facts: Facts) -> str:
    cases = {n: c for n, c in facts.evidence.cases.items() if c.kind in _OF_FAULTS}
    if facts.draw.faults and not cases and _harmless(facts):
        return ""
    if facts.draw.faults and not cases:
        return "no incident was opened"
    waits = [f"{name} ({case.kind}) is {case.state}" for name, case in cases.items() if case.state != "resolved"]
    return "; ".join(waits)


def _harmless(facts: Facts) -> bool:
    """A fault that did no harm need not be found: an item that a new epoch or a new order of data never served."""
    return all(s.name.startswith("nan_") for s in facts.draw.faults) and not any(
        one.skipped or not math.isfinite(one.reward) for one in facts.played.steps
    )


def _knobs_are_back(facts: Facts) -> str:
    for name in [name for strike in facts.draw.faults for name in TURNED.get(strike.name, ())]:
        value = facts.knobs.get(name, math.nan)
        if not LEAST.get(name, 0.0) <= value <= MOST[name]:
            return f"{name} is {value:g} in the last checkpoint"
    return ""


def _reward_is_back(facts: Facts) -> str:
    """Of a fault from the start, high at the end; else, at its best in the last steps, as it was before the fault."""
    if not facts.draw.faults:
        return ""
    steps, first = facts.played.steps, min((s.step for s in facts.draw.faults if not s.from_start), default=0)
    before = course.reward([one for one in steps if one.step < first], _BEFORE) if first else None
    now = (course.best(steps, _BACK) if first else course.reward(steps)) or 0.0
    wanted = min(_HIGH, before - _LESS if before is not None and math.isfinite(before) else _HIGH)
    return "" if now >= wanted else f"the reward at the end is {now:.3f}, where {wanted:.3f} is due"


def _how(facts: Facts) -> str:
    done = [
        f"{d.remedy} ({c.kind}): {d.outcome or 'no outcome'}"
        for c in facts.evidence.cases.values()
        for d in done_to_the_run(c)
    ]
    return ", ".join(done) or "nothing had to be done"


Check = Callable[[Facts], str]
_HARM: Sequence[Check] = (_journal_adds_up, _nothing_done_to_the_healthy, _trainer_not_held_up)
_MENDS: Sequence[Check] = (_reached_its_end, _incidents_resolved, _knobs_are_back, _reward_is_back)
