"""Handover: what follows where another agent begins to decide for the run, and where this one does.

Whoever leads takes up the ledger beside the checkpoints: open incidents, budgets and the number of the next directive
are the run's, whichever agent wrote them. Whoever leads no more lets go of its incidents: they go on at the new leader.
"""

import math
from collections.abc import Mapping
from typing import Any

from gyrostat_rules import fellows
from gyrostat_rules.arming import taken_up
from gyrostat_rules.incidents import HELD, OPEN, STOPPED, move
from gyrostat_rules.ledger import doubt, restore
from gyrostat_rules.moment import Moment
from gyrostat_rules.standing import ALONE, FOLLOWER, LEADER, Standing, decides
from gyrostat_rules.state import State

_SEEN_SECONDS = 5.0  # for what other nodes forward to a new leader to be there before it plans
_UNHEARD_SECONDS = 30.0
_NAMED = 100


def stand(state: State, moment: Moment, arguments: Mapping[str, Any]) -> str:
    """Take up a standing; with ``ledger``, what the last leader wrote down comes first."""
    word, term = str(arguments.get("as", "")), arguments.get("term", 0)
    if word not in (ALONE, LEADER, FOLLOWER) or type(term) is not int or term < 0:
        return f"standing {word[:_NAMED]!r} is not known; {state.standing.word} stays"
    node, leader = (str(arguments.get(key, ""))[:_NAMED] for key in ("node", "leader"))
    old, new = state.standing, Standing(word, node, leader, max(term, state.standing.term))
    if new == old:
        return ""
    state.standing = new
    if word == FOLLOWER:
        if not old.follows:
            _let_go(state, moment)
            fellows.forget(state, moment)
        return f"follows: {decides(new)}"
    said = _take_up(state, moment, arguments.get("ledger")) if word == LEADER else ""
    if old.follows:
        _go_on(state, moment)
    return f"leads the run in term {new.term}{said}" if word == LEADER else "stands alone"


def far(state: State) -> bool:
    """True where the trainer's rank 0 is on another node, or a leader never heard of it: no order reaches it."""
    trainer = state.trainer()
    if trainer is None or not trainer.incarnation:
        return state.standing.word == LEADER
    return trainer.node != ""


def _let_go(state: State, moment: Moment) -> None:
    for incident in state.incidents:
        if incident.open:
            incident.meter.billed = True  # whoever ends it bills it
            move(moment, incident, STOPPED, f"handed over: {decides(state.standing)}")


def _take_up(state: State, moment: Moment, written: Any) -> str:
    if not isinstance(written, Mapping):
        return ""
    own = [i for i in state.incidents if i.open]
    if not doubt(written):  # what people said stands there as they said it last: none of it was said here since
        settings = state.settings
        settings.paused, settings.armed, settings.armed_as, state.silences, state.tags = False, {}, {}, {}, {}
    said = restore(state, written)
    if state.settings.distrust:
        return f"; {said}"
    for incident in own:  # folded anew, into what was taken up where it is of the same cause
        if incident.id not in [i.id for i in state.incidents]:
            incident.meter.billed = True
            move(moment, incident, STOPPED, "folded anew, with what the last leader wrote down")
    for alert in state.alerts.values():
        alert.incident = ""
    taken_up(state, moment)
    # One that has said Hello before says none now; one that was never heard may be gone with its node.
    state.plan_from = moment.at + (_SEEN_SECONDS if state.trainer() is not None else _UNHEARD_SECONDS)
    return f"; {said}"


def _go_on(state: State, moment: Moment) -> None:
    """What was only watched while another decided is now this agent's to plan for."""
    for incident in state.incidents:
        if incident.state == HELD and not incident.actions:
            incident.held_until = 0.0
            move(moment, incident, OPEN, "this agent decides from now on")
    if state.plan_from != math.inf:
        state.plan_from = max(state.plan_from, moment.at + _SEEN_SECONDS)
