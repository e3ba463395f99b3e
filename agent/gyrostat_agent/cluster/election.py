"""Election: when to take the lease, renew it, give way, and stop acting. Pure functions over what one agent has seen.

Times are the observer's own monotonic seconds: a lease is dead when this observer has not seen it change for long,
whatever any clock says. What keeps two from acting at once, in order:

1. No term is held by two: the store sees to that.
2. A leader stops acting ``STOP_AFTER`` seconds after it began its last renewal that succeeded; nobody takes a lease
   that they saw change less than ``TAKE_AFTER`` seconds ago. The second is longer, so the first has stopped by then;
   two seconds are more than clocks of one rate drift apart in ten.
3. Who was held up in between (a stopped process, a disk that hung) finds a newer term where its orders are written
   down, and its orders bear the old one.
"""

from enum import Enum
from math import inf
from typing import NamedTuple

from gyrostat_agent.cluster.lease import Holding, Wish

RENEW_EVERY, STOP_AFTER, TAKE_AFTER = 2.0, 8.0, 10.0
WISH_LASTS = 5.0  # seconds; a wish that has not changed for so long is of an agent that is gone again


class Turn(Enum):
    """What an agent does next about the lease."""

    WAIT = "wait"
    TAKE = "take"
    RENEW = "renew"
    GIVE_WAY = "give way"
    STEP_DOWN = "step down"


class Sight(NamedTuple):
    """What one agent has seen. ``changed_at`` and ``wished_at``: when it saw lease and wish change last.

    ``held`` is the lease while it is this agent's own, ``renewed_at`` when it began the last renewal that succeeded.
    """

    holding: Holding = Holding()
    changed_at: float = -inf
    wish: Wish = Wish()
    wished_at: float = -inf
    held: Holding | None = None
    renewed_at: float = -inf


def see(sight: Sight, holding: Holding, wish: Wish, now: float) -> Sight:
    """Take in what the store says. An older term than one already seen is a late word of an old leader: no change."""
    first = sight.changed_at == -inf
    if first or (holding != sight.holding and holding.term >= sight.holding.term):
        sight = sight._replace(holding=holding, changed_at=now)
    if wish != sight.wish:
        # What lay there at the first look may be of long ago: it counts once it changes.
        sight = sight._replace(wish=wish, wished_at=-inf if first else now)
    return sight


def took(sight: Sight, held: Holding, began: float, now: float) -> Sight:
    """The lease was taken, or renewed, by what was begun at ``began``."""
    return sight._replace(holding=held, changed_at=now, held=held, renewed_at=began)


def lost(sight: Sight, now: float) -> Sight:
    """It is not ours any more; or another was faster: then the whole wait begins again."""
    return sight._replace(held=None, changed_at=now)


def turn(sight: Sight, node: str, beside: bool, now: float) -> Turn:
    """What ``node`` does next; ``beside``: the trainer's rank 0 is on it, and its agent is well."""
    if sight.held is not None:
        return _leading(sight, node, beside, now)
    holding, unchanged = sight.holding, now - sight.changed_at
    if unchanged >= TAKE_AFTER:
        return Turn.TAKE
    free = not holding.holder
    if free and (holding.promised == node or (beside and not holding.promised)):
        return Turn.TAKE  # whoever is not beside rank 0 gives it time to come first
    return Turn.WAIT


def _leading(sight: Sight, node: str, beside: bool, now: float) -> Turn:
    assert sight.held is not None
    if not may_act(sight, now) or sight.holding.term > sight.held.term:
        return Turn.STEP_DOWN
    wished = sight.wish.node not in ("", node) and now - sight.wished_at < WISH_LASTS
    if wished and not beside:
        return Turn.GIVE_WAY
    return Turn.RENEW if now - sight.renewed_at >= RENEW_EVERY else Turn.WAIT


def may_act(sight: Sight, now: float) -> bool:
    """True while this agent leads and nobody else can."""
    return sight.held is not None and now - sight.renewed_at < STOP_AFTER
