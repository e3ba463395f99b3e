"""Outcomes: what came of an action, from acks, from its actuator, from a trainer that was replaced, from time."""

from typing import Any

from gyrostat.wire import Ack, Hello
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.experiment import apart, misread, moved
from gyrostat_rules.hands import left
from gyrostat_rules.incidents import ACTING, HELD, OPEN, PROBATION, RESOLVED, STOPPED, move
from gyrostat_rules.inputs import Answer, Delivery, DeliveryWord
from gyrostat_rules.jump import jumped, rewind
from gyrostat_rules.ladder import send_undo
from gyrostat_rules.moment import Moment
from gyrostat_rules.remembered import Jump
from gyrostat_rules.state import Action, Incident, State, key_of

FAILED, TIMED_OUT, INEFFECTIVE, UNKNOWN, DONE = "failed", "timed out", "ineffective", "unknown", "done"
_READ_BACK = ("turn", "put_back", "undo")
_GRACE = 30.0  # seconds after a directive's expiry in which its answer may still be on the way


def answered(state: State, moment: Moment, answer: Answer) -> None:
    """An Ack has come: settle its action when all who must answer have."""
    found = find(state, answer.ack.number)
    key = key_of(answer.role, answer.rank)
    if found is None:  # not of ours; that somebody gave orders to this trainer is worth a line all the same
        moment.write(
            EntryKind.RUN, key, "answered", f"directive {answer.ack.number}, {_words(answer)}", answer.ack.step
        )
        return
    incident, action = found
    if answer.role == "supervisor" and answer.ack.detail.get("flags") and answer.ack.action in ("", action.id):
        answer, key = _in_its_name(state, action, answer), "trainer/0"
    if key in action.answers or not _counts(action, answer):
        return
    if answer.ack.action not in ("", action.id):  # a number that another life of this run has used
        return
    action.answers[key] = answer.ack.result
    if action.remedy in _READ_BACK and answer.ack.result == Ack.APPLIED:
        names = {change.name for change in action.knobs}
        action.read[key] = {name: value for name, value in answer.ack.values.items() if name in names}
    moment.write(EntryKind.ACTION, action.id, answer.ack.result, _words(answer), answer.ack.step, by=key,
                 values=dict(answer.ack.values) or None, detail=dict(answer.ack.detail) or None)  # fmt: skip
    _keep_jump(state, moment, action, answer)
    if action.outcome:
        return  # too late to be followed up, a person has been asked; but what was done is history
    if len(action.answers) >= (state.world() if answer.role == "trainer" and action.role == "trainer" else 1):
        _settle(state, moment, incident, action, answer.ack)


def delivered(state: State, moment: Moment, delivery: Delivery) -> None:
    """An actuator could not deliver, or does not know whether it did."""
    for incident in state.incidents:
        for action in incident.actions:
            if action.id == delivery.action and not action.outcome and action.number:
                if delivery.outcome == DeliveryWord.PUT_OFF:
                    _put_off(state, moment, incident, action, delivery.reason)
                    continue
                word = FAILED if delivery.outcome == DeliveryWord.FAILED else UNKNOWN
                conclude(moment, action, word, delivery.reason)
                _fail(moment, incident, action, word, delivery.reason)


def _put_off(state: State, moment: Moment, incident: Incident, action: Action, why: str) -> None:
    """Nothing was begun: it counts against no budget, and its rung and its checkpoint may be tried again."""
    conclude(moment, action, FAILED, why)
    path = action.arguments.get("checkpoint")
    incident.tried_targets = [t for t in incident.tried_targets if t != path]
    deeds = [(d.kind, d.remedy, d.step) for d in state.deeds]
    deed = incident.kind, action.remedy, action.sent_step
    if deed in deeds:
        place = len(deeds) - 1 - deeds[::-1].index(deed)
        state.deeds = [*state.deeds[:place], *state.deeds[place + 1 :]]
    move(moment, incident, OPEN, f"put off: {why}")


def replaced(state: State, moment: Moment, hello: Hello) -> None:
    """The trainer began a new life. A directive to the old one is void; whether it was obeyed, Hello may tell."""
    for incident, action in in_flight(state):
        if action.role != "trainer" or action.remedy == "restart":
            continue
        if hello.last_directive >= action.number:
            _apply(state, moment, incident, action, state.step)
            continue
        reason = "the trainer was replaced before it answered"
        conclude(moment, action, UNKNOWN, reason)
        if action.remedy == "undo":
            _not_undone(moment, incident, action, reason)
            continue
        action.applied_step = 0  # its life begins somewhere back: whatever is bad in it counts
        action.until_step = max(state.step, incident.last_bad_step) + action.horizon
        move(moment, incident, PROBATION, f"{reason}: watching {action.horizon} steps")


def orphaned(state: State, moment: Moment) -> None:
    """A process ended with a directive unanswered: nobody will answer it, and what was done died with it.

    A stage of its own, behind all of a batch: the answer may stand in another file than the news of the death.
    """
    for incident, action in in_flight(state):
        process = state.processes.get(key_of(action.role, 0))
        if process is None or not process.ended:
            continue
        conclude(moment, action, UNKNOWN, f"the {action.role} ended before it answered")
        if action.remedy == "undo":
            _not_undone(moment, incident, action, f"the {action.role} ended before it answered")
            continue
        # Nothing came of the checkpoint, good or bad: it may be gone back to again, within the budget.
        incident.tried_targets = [t for t in incident.tried_targets if t != action.arguments.get("checkpoint")]
        incident.rung += 1
        move(moment, incident, OPEN, f"the {action.role} ended before it answered")


def overdue(state: State, moment: Moment) -> None:
    """Answers that never came: after its expiry a directive cannot be obeyed any more, so nothing is repeated."""
    for incident, action in in_flight(state):
        if moment.at <= action.expires_at + _GRACE:
            continue
        conclude(moment, action, TIMED_OUT, f"no answer to directive {action.number}")
        if action.then == RESOLVED:
            _not_undone(moment, incident, action, f"no answer to directive {action.number}")
            continue
        incident.held_until = moment.at + state.settings.hold_seconds
        move(moment, incident, HELD, f"no answer to directive {action.number}; it is not repeated")


def in_flight(state: State) -> list[tuple[Incident, Action]]:
    """Actions that were sent and are not answered."""
    return [(i, i.actions[-1]) for i in state.incidents if i.state == ACTING and not i.actions[-1].outcome]


def find(state: State, number: int) -> tuple[Incident, Action] | None:
    """The action that a directive's number belongs to."""
    for incident in reversed(state.incidents):
        for action in incident.actions:
            if action.number == number > 0:  # what was never sent has 0
                return incident, action
    return None


def conclude(moment: Moment, action: Action, outcome: str, why: str) -> None:
    """Write down what came of an action, once."""
    if action.outcome:
        return
    action.outcome = outcome
    moment.write(EntryKind.ACTION, action.id, outcome, f"{action.remedy} {outcome}: {why}", incident=action.incident,
                 rung=action.rung, remedy=action.remedy, verdict=action.verdict)  # fmt: skip


def _counts(action: Action, answer: Answer) -> bool:
    """A restart counts as done when the new trainer has loaded its checkpoint, not when it was started."""
    if action.remedy != "restart":
        return answer.role == action.role
    return answer.role == "trainer" or answer.ack.result != Ack.APPLIED


def _in_its_name(state: State, action: Action, answer: Answer) -> Answer:
    """A trainer known by its logs alone says nothing: its supervisor says where it was told to begin, by its flags."""
    trainer = state.trainer()
    if trainer is not None:
        trainer.ended, trainer.asked = "", False
    step = action.arguments.get("step", answer.ack.step)
    return answer._replace(role="trainer", rank=0, ack=answer.ack._replace(step=step))


def _settle(state: State, moment: Moment, incident: Incident, action: Action, ack: Ack) -> None:
    results = set(action.answers.values())
    if len(results) > 1:
        conclude(moment, action, FAILED, "the ranks answered differently")
        move(moment, incident, STOPPED, "the ranks answered differently: they may no longer agree")
    elif results == {Ack.APPLIED} and apart(action):
        conclude(moment, action, FAILED, "the ranks read back different values")
        move(moment, incident, STOPPED, "the ranks read back different values: they no longer train alike")
    elif results == {Ack.APPLIED} and (why := misread(action)):
        _misread(state, moment, incident, action, why)
    elif results == {Ack.APPLIED}:
        _apply(state, moment, incident, action, ack.step)
    else:
        word = FAILED if ack.result == Ack.FAILED else "refused"
        conclude(moment, action, FAILED, f"{word}: {ack.reason}")
        _fail(moment, incident, action, word, ack.reason)


def _misread(state: State, moment: Moment, incident: Incident, action: Action, why: str) -> None:
    """The trainer says yes, and its knobs say no: what did move goes back, and the next rung follows."""
    if action.remedy == "undo":
        conclude(moment, action, FAILED, why)
        _not_undone(moment, incident, action, why)
        return
    conclude(moment, action, INEFFECTIVE, why)
    if restores := left(state, moved(action)):
        action.restores = restores
        send_undo(state, moment, incident, action, OPEN, f"{why}: the knobs go back")
        return
    incident.rung += 1
    move(moment, incident, OPEN, f"{why}; the next rung follows")


def _apply(state: State, moment: Moment, incident: Incident, action: Action, step: int) -> None:
    """Applied: from here it must prove itself. A step back makes room to pass the fault's step again."""
    if action.remedy == "undo":
        action.applied_step = step
        _undone(moment, incident, action)
        return
    target = action.arguments.get("step")
    action.applied_step = step if target is None else min(step, target)
    back = [c._replace(expect=c.value, value=c.expect, undo_of=action.number) for c in action.knobs]
    action.restores = left(state, back)
    if action.remedy in ("put_back", "restart"):  # what a hand had made of it; a flag, that only a restart turns
        action.restores = []
    if target is not None:  # the steps behind the onset are undone, however many a person took to answer
        incident.last_bad_step = min(incident.last_bad_step, incident.onset)
    action.until_step = max(action.applied_step, incident.last_bad_step) + action.settle + action.horizon
    move(moment, incident, PROBATION, f"{action.remedy} applied; watched until step {action.until_step}")


def _undone(moment: Moment, incident: Incident, action: Action) -> None:
    conclude(moment, action, DONE, "the knobs are back")
    if action.then == RESOLVED:
        move(moment, incident, RESOLVED, "mended; the knobs are back where they were")
    else:
        incident.rung += 1
        move(moment, incident, OPEN, "undone; the next rung follows")


def _not_undone(moment: Moment, incident: Incident, action: Action, why: str) -> None:
    """Knobs that could not be given back make nothing worse: what was mended stays mended, and the history says so."""
    if action.then == RESOLVED:
        move(moment, incident, RESOLVED, f"mended; the knobs stay as they are: {why}")
    else:
        incident.rung += 1
        move(moment, incident, OPEN, f"not undone: {why}; the next rung follows")


def _fail(moment: Moment, incident: Incident, action: Action, word: str, reason: str) -> None:
    """Refused because a person turned the knob: theirs. Unknown: not repeated. Else the next rung.

    A checkpoint that could not be loaded does not use the rung up: an older one is tried, within the budget.
    """
    if action.remedy == "undo":
        _not_undone(moment, incident, action, f"{word}: {reason}")
        return
    if "somebody else has turned it" in reason or word == UNKNOWN:
        incident.held_until = moment.at + 3600.0
        move(moment, incident, HELD, reason)
        return
    path = action.arguments.get("checkpoint")
    if path and word == "refused":  # it expired, or was for another life: the checkpoint was not even looked at
        incident.tried_targets = [t for t in incident.tried_targets if t != path]
    incident.rung += 0 if path else 1
    move(moment, incident, OPEN, f"{word}: {reason}")


def _keep_jump(state: State, moment: Moment, action: Action, answer: Answer) -> None:
    """A rollback or restart that was applied leaves the segment, before any later record says so.

    All ranks leave it together and each says so: the run jumps at the first answer, a rank's own words at its own.
    """
    ack = answer.ack
    # Where a rollback does not say where it landed, it landed where it was sent.
    step = ack.step if action.procedure == "restart" else ack.detail.get("step", action.arguments.get("step"))
    if ack.result != Ack.APPLIED or action.procedure not in ("rollback", "restart") or not isinstance(step, int):
        return
    if list(action.answers.values()).count(Ack.APPLIED) == 1:
        jump = Jump(state.segment, step)
        if jump.segment not in [j.segment for j in state.jumps]:
            jumped(state, moment, jump)
            state.segment, state.step = jump.segment + 1, step
    rewind(state, moment, key_of(answer.role, answer.rank), step + 1)


def _words(answer: Answer) -> str:
    ack: Any = answer.ack
    who = f"{answer.role} {answer.rank}"
    return f"{who}: {ack.result} at step {ack.step}" + (f": {ack.reason}" if ack.reason else "")
