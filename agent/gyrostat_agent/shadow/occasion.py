"""Occasion: an incident in which the agent would have acted, or did, and what came of it (docs/shadow.md).

One incident is one occasion, however many rungs it had: they answer one question, whether to act at all.
"""

from typing import NamedTuple


class Verdict:
    """``hit``: it was called for. ``miss``: the run was fine without. ``acted``: it was done, so nobody knows."""

    HIT = "hit"
    MISS = "miss"
    UNDECIDED = "undecided"
    ACTED = "acted"


class Occasion(NamedTuple):
    """``step`` and ``at`` (Unix seconds) are of the would-be action; ``declared`` names its rule as it was then.

    ``cost``: steps that going back would have undone, 0 for what undoes none, None where it is not known.
    ``to_death``: steps from the would-be action to the run's death, None where it did not die.
    """

    rule: str
    incident: str
    kind: str
    remedy: str
    step: int
    at: float
    declared: str
    verdict: str
    why: str
    cost: int | None = None
    to_death: int | None = None


def saved(occasion: Occasion) -> int | None:
    """Steps that acting would have saved, by estimate; negative where going back costs more; None: not known.

    Known only of a run that died: the steps from the would-be action to the death were lost, those that going back
    would have undone are what it would have cost.
    """
    if occasion.verdict != Verdict.HIT or occasion.to_death is None or occasion.cost is None:
        return None
    return occasion.to_death - occasion.cost


def thrown_away(occasion: Occasion) -> int | None:
    """Steps that acting would have thrown away where it was not called for; None: not known."""
    return occasion.cost if occasion.verdict == Verdict.MISS else None
