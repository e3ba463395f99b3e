"""Probation: the steps after an action in which it must prove itself, and what follows either way."""

from gyrostat.wire import KnobChange
from gyrostat_rules.breakage import unsure
from gyrostat_rules.causes import REQUEST, graver
from gyrostat_rules.experiment import harmful, inert
from gyrostat_rules.handover import far
from gyrostat_rules.incidents import HELD, OPEN, PROBATION, QUIET_STEPS, RESOLVED, STOPPED, move, still_bad, undone_at
from gyrostat_rules.ladder import send_undo
from gyrostat_rules.moment import Moment
from gyrostat_rules.outcome import DONE, INEFFECTIVE, UNKNOWN, conclude
from gyrostat_rules.remedies import alive, reachable
from gyrostat_rules.remembered import Deed
from gyrostat_rules.silences import silenced
from gyrostat_rules.state import Action, Incident, State

_REMEMBERED = 200


def check_probation(state: State, moment: Moment) -> None:
    """End what has proved itself, take back what has not, and let go of what has mended by itself."""
    for incident in state.incidents if state.may_plan(moment.at) else ():
        if incident.state == PROBATION and not far(state):  # what it gives back only the agent beside rank 0 can
            _watch(state, moment, incident, incident.actions[-1])
        elif incident.state in (OPEN, HELD):
            _let_go(state, moment, incident)


def _watch(state: State, moment: Moment, incident: Incident, action: Action) -> None:
    trainer, step = state.trainer(), state.examined()
    # The news of an end stands in another file than the last records: it is judged when all have been taken in.
    ended = not alive(trainer) and not moment.records
    if other := incident.ousted or (ended and _died_of(state, incident, action)):
        why = f"it was still being watched when another cause struck: {other}"
        _resolve(state, moment, incident, action, why, UNKNOWN)
        return
    if doubt := unsure(state, incident):
        if ended:
            move(moment, incident, STOPPED, f"the run ended, and nobody can say whether it has held: {doubt}")
        return
    if still_bad(state, moment, incident, action.applied_step + action.settle) or (
        ended and trainer is not None and trainer.died
    ):
        why = "it came back" if not ended else "the trainer died on it"
        _next(state, moment, incident, action, why)
    elif why := inert(state, action) or harmful(state, action):
        _next(state, moment, incident, action, why)
    elif ended and state.step <= incident.last_bad_step:
        move(moment, incident, STOPPED, "the run ended before the remedy could prove itself")
    elif ended:
        _resolve(state, moment, incident, action, f"the run ended at step {state.step}, clean since")
    elif step >= action.until_step:
        _resolve(state, moment, incident, action, f"{step - incident.last_bad_step} clean steps")


def _died_of(state: State, incident: Incident, action: Action) -> str:
    """The graver cause that struck while the action was watched: a death is that one's, and says nothing of this."""
    struck = (i for i in state.incidents if i.open and i.fired_step >= action.applied_step)
    return next((f"{i.id}, {i.kind}" for i in struck if i is not incident and graver(i.kind, incident.kind)), "")


def _next(state: State, moment: Moment, incident: Incident, action: Action, why: str) -> None:
    conclude(moment, action, INEFFECTIVE, why)
    if action.restores and action.procedure != "rollback" and alive(state.trainer()):
        send_undo(state, moment, incident, action, OPEN, f"{why}: the knobs go back")
        return
    incident.rung += 1
    move(moment, incident, OPEN, f"{action.remedy} did not hold")


def _resolve(state: State, moment: Moment, incident: Incident, action: Action, why: str, outcome: str = DONE) -> None:
    conclude(moment, action, outcome, why)
    if outcome == DONE:
        _close(state, moment, incident, action.remedy)
    kept = {c.name for c in action.restores} if action.keep else {*action.kept}
    action.restores = [_afterwards(state, action, change) for change in action.restores if change.name not in kept]
    if action.restores and alive(state.trainer()):
        send_undo(state, moment, incident, action, RESOLVED, "the incident is over: the knobs go back")
        return
    said = f"mended by {action.remedy}" if outcome == DONE else f"{action.remedy} has held so far"
    move(moment, incident, RESOLVED, f"{said}: {why}")


def _afterwards(state: State, action: Action, change: KnobChange) -> KnobChange:
    """Back to what it was, or only as far as to where the rung has it go when the incident is over."""
    wanted, trainer = action.later.get(change.name), state.trainer()
    knob = trainer.knobs.get(change.name) if trainer else None
    low, high = sorted((change.expect, change.value))
    if wanted is None or knob is None or not low <= wanted <= high:
        return change
    return change._replace(value=reachable(knob._replace(value=change.expect), wanted), undo_of=0)


def _let_go(state: State, moment: Moment, incident: Incident) -> None:
    """Nobody acted, and it is over: the alerts are gone and stay gone. Or a person was asked and never came.

    What a person asked for is not over by waiting. Steps under a remedy that was taken back prove nothing.
    """
    asked = bool(incident.actions) and bool(incident.actions[-1].outcome)
    if incident.state == HELD and asked and moment.at > incident.held_until and not silenced(state, moment, incident):
        move(moment, incident, STOPPED, f"nobody came: {incident.why}")
        return
    clean = state.examined() - max(incident.last_bad_step, undone_at(incident))
    if incident.kind == REQUEST or any(k in state.alerts for k in incident.alerts) or clean < QUIET_STEPS:
        return
    _close(state, moment, incident, "")
    move(moment, incident, RESOLVED, f"over by itself: {clean} clean steps")


def _close(state: State, moment: Moment, incident: Incident, remedy: str) -> None:
    state.closed = [*state.closed[1 - _REMEMBERED :], Deed(incident.kind, remedy, state.step, moment.at)]
