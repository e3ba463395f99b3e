"""Plan, judge, decide: from an open incident to a directive, by the rungs of its playbook."""

import math
from statistics import median
from typing import Any

from gyrostat.wire import Directive, Resume
from gyrostat_rules.causes import CRASH
from gyrostat_rules.certify import unfit
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.guards import judge
from gyrostat_rules.hands import reads
from gyrostat_rules.incidents import ACTING, HELD, OPEN, QUIET_STEPS, RESOLVED, STOPPED, move, undone_at
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Playbook, Rung
from gyrostat_rules.remedies import GO_BACK, REMEDIES
from gyrostat_rules.remembered import Deed
from gyrostat_rules.standing import decides
from gyrostat_rules.state import Action, Incident, State
from gyrostat_rules.verdicts import ALLOW, DENY, HOLD, Case, Verdict

_ANSWER_SECONDS, _ANSWER_STEPS = 60.0, 5.0
_RESTART_SECONDS = 1800.0  # to end the old trainer, start a new one and load a large checkpoint
_REMEMBERED = 500
_ENDS = "exit"  # the detector that sees a process end, and begin anew
_UNSENT = 20  # plans of one incident that came to nothing: while a silence holds it, a knob on the move makes many


def plan(state: State, moment: Moment) -> None:
    """Give each open incident the mildest rung that fits; what does not fit is named and passed by."""
    for incident in state.incidents if state.may_plan(moment.at) else ():
        book = moment.pack.playbook(incident.kind)
        if incident.state not in (OPEN, HELD):
            continue
        if state.standing.follows and _current(incident) is None:  # nothing is planned where another decides
            incident.held_until = math.inf
            move(moment, incident, HELD, decides(state.standing))
            continue
        if book is None:
            move(moment, incident, STOPPED, f"no playbook for {incident.kind}")
            continue
        if (action := _current(incident)) is not None:
            if not (reason := _outdated(state, incident, action, book)):
                continue
            action.verdict, action.reason = DENY, reason
            _tell(moment, action, "passed by", f"{action.remedy} no longer fits: {reason}")
        elif incident.state == HELD or _is_quiet(state, incident):
            continue
        if _lives_again(state, moment, incident):
            move(moment, incident, RESOLVED, "what had ended lives again: somebody else has begun it anew")
            continue
        _climb(state, moment, incident, book)


def decide(state: State, moment: Moment) -> None:
    """Judge each planned action; send what is allowed, keep what is held, end what is denied."""
    for incident in state.incidents if state.may_plan(moment.at) else ():
        book = moment.pack.playbook(incident.kind)
        while incident.state in (OPEN, HELD) and book is not None and (action := _current(incident)) is not None:
            verdict = judge(Case(state, moment, book, incident, action))
            if not verdict.next_rung:
                _heed(state, moment, incident, action, verdict)
                break
            _pass_by(state, moment, incident, action, verdict, book)


def _heed(state: State, moment: Moment, incident: Incident, action: Action, verdict: Verdict) -> None:
    """Do what the guards say of an action: send it, let it wait, or give the incident to a person."""
    changed = (verdict.word, verdict.reason) != (action.verdict, action.reason)
    action.verdict, action.reason = verdict.word, verdict.reason
    if verdict.word == ALLOW:
        _send(state, moment, incident, action)
    elif changed:
        _tell(moment, action, verdict.word, f"{action.remedy} {verdict.word}: {verdict.reason}")
        _put_off(state, moment, incident, verdict)
    if incident.state == HELD and verdict.word == HOLD and moment.at > incident.held_until:
        move(moment, incident, STOPPED, f"nobody answered: {verdict.reason}")


def _pass_by(
    state: State, moment: Moment, incident: Incident, action: Action, verdict: Verdict, book: Playbook
) -> None:
    """Leave a rung whose own budget is spent for the next one that fits."""
    action.verdict, action.reason = verdict.word, verdict.reason
    _tell(moment, action, "passed by", f"{action.remedy} passed by: {verdict.reason}")
    incident.rung += 1
    _climb(state, moment, incident, book)


def send_undo(state: State, moment: Moment, incident: Incident, action: Action, then: str, why: str) -> None:
    """Order an action's knobs back to where it found them; ``then`` is the incident's state afterwards."""
    undo = _new(incident, action.rung, Rung("undo", 0))
    undo.role, undo.knobs, undo.then = "trainer", list(action.restores), then
    undo.verdict, undo.explanation = ALLOW, why
    _issue(state, moment, incident, undo)


def _lives_again(state: State, moment: Moment, incident: Incident) -> bool:
    """True of a crash where each process whose end was seen has begun anew; a rule that reads logs has seen none."""
    names = {key.partition("{")[0] for key in incident.alerts}
    if incident.kind != CRASH or any(r.alert in names and r.detector != _ENDS for r in moment.pack.rules):
        return False
    told = [state.alerts[key].labels for key in incident.alerts if key in state.alerts]
    ended = [state.processes.get(f"{labels.get('role')}/{labels.get('rank')}") for labels in told]
    return not any(process is not None and process.died for process in ended)


def _is_quiet(state: State, incident: Incident) -> bool:
    """True where an undo came when nothing had been bad for long: the next rung waits until something is."""
    return undone_at(incident) >= 0 and state.examined() - incident.last_bad_step >= QUIET_STEPS


def _climb(state: State, moment: Moment, incident: Incident, book: Playbook) -> None:
    while incident.rung < len(book.rungs):
        rung = book.rungs[incident.rung]
        remedy = REMEDIES[rung.remedy]
        reason = remedy.fit(state, incident, rung)
        if reason and rung.remedy in GO_BACK and state.may_look(moment.at):
            if incident.state == HELD:  # nothing waits for a word now
                move(moment, incident, OPEN, f"{reason}; checkpoints are still being looked at")
            return  # its checkpoints are still being verified: not having seen them is not having none
        action = _new(incident, incident.rung, rung)
        if reason:
            action.verdict, action.reason = DENY, reason
            _tell(moment, action, "passed by", f"{rung.remedy} does not fit: {reason}")
            incident.rung += 1
            continue
        remedy.order(state, incident, rung, action)
        _tell(moment, action, "planned", f"rung {incident.rung + 1}: {remedy.summary}; {action.explanation}")
        return
    tried = any(a.number for a in incident.actions)
    why = "every rung that fits has been tried" if tried else f"no rung fits: {incident.actions[-1].reason}"
    move(moment, incident, STOPPED, f"{why}; a person is needed")


def _outdated(state: State, incident: Incident, action: Action, book: Playbook) -> str:
    """Why an action that waits can no longer be carried out as planned, or ''."""
    if action.rung >= len(book.rungs) or book.rungs[action.rung].remedy != action.remedy:
        return "the playbook has changed"
    if path := action.arguments.get("checkpoint"):
        seen = state.checkpoints.get(path)
        if seen is None or (reason := unfit(state, incident, seen, milder_too=True)):
            return f"step {action.arguments['step']}: {reason if seen else 'the checkpoint is gone'}"
    for change in action.knobs if action.remedy != "put_back" else ():
        if (knob := reads(state, change.name)) is not None and knob.value != change.expect:
            return f"{change.name} reads {knob.value:g} by now, not {change.expect:g}"
    return REMEDIES[action.remedy].fit(state, incident, book.rungs[action.rung])


def _new(incident: Incident, place: int, rung: Rung) -> Action:
    number = int(incident.actions[-1].id.rpartition(".")[2]) if incident.actions else 0
    name = f"{incident.id}.{number + 1}"
    action = Action(name, incident.id, place, rung.remedy, rung.horizon, settle=rung.settle)
    action.kept = [plan.name for plan in rung.knobs if plan.keep]
    action.later = {plan.name: plan.then for plan in rung.knobs if plan.then is not None}
    action.effects, action.harm = list(rung.effects), rung.harm
    gone = [a.id for a in incident.actions if not a.number and not a.outcome][:-_UNSENT]
    incident.actions = [*(a for a in incident.actions if a.id not in gone), action]
    return action


def _current(incident: Incident) -> Action | None:
    """The action that is planned and not yet sent, if any."""
    last = incident.actions[-1] if incident.actions else None
    return last if last is not None and not last.number and last.verdict != DENY and not last.outcome else None


def _put_off(state: State, moment: Moment, incident: Incident, verdict: Verdict) -> None:
    """Hold it or end it. What asks nobody waits for ever; whoever is asked afterwards has the whole time to answer."""
    if verdict.word == DENY:
        move(moment, incident, STOPPED, verdict.reason)
        return
    if verdict.patient:
        incident.held_until = math.inf
    elif verdict.asks or incident.state != HELD or incident.held_until == math.inf:
        incident.held_until = moment.at + state.settings.hold_seconds
    move(moment, incident, HELD, verdict.reason)


def _send(state: State, moment: Moment, incident: Incident, action: Action) -> None:
    if not action.role:  # a page: nobody's hands are needed but a person's
        action.outcome = "done"
        incident.held_until = moment.at + state.settings.hold_seconds
        _tell(moment, action, "paged", f"{incident.kind}: {incident.why}")
        move(moment, incident, HELD, "waits for a person")
        return
    if path := action.arguments.get("checkpoint"):
        incident.tried_targets.append(path)
    state.deeds = [*state.deeds[1 - _REMEMBERED :], _deed(moment, incident, action)]
    _issue(state, moment, incident, action)


def _deed(moment: Moment, incident: Incident, action: Action) -> Deed:
    return Deed(incident.kind, action.remedy, moment.step, moment.at, action.rung)


def _issue(state: State, moment: Moment, incident: Incident, action: Action) -> None:
    """Number the directive and write the intent. It is carried out only after the journal has it."""
    action.number, action.sent_step = state.next_directive, moment.step
    state.next_directive += 1
    action.expires_at = moment.at + _answer_seconds(state, action)
    who = state.trainer() if action.role == "trainer" else state.supervisor()
    assert who is not None
    # A flag is no knob that can be set as it runs: it goes with what the restart is told.
    knobs = () if action.remedy == "restart" else tuple(action.knobs)
    directive = Directive(
        action.number, state.run, action.role, who.incarnation, state.segment if action.role == "trainer" else 0,
        action.id, action.expires_at, -1, knobs, action.procedure, action.arguments, incident.why[:300],
    )  # fmt: skip
    action.orders = {"directive": directive.encode().decode()}
    if action.remedy == "restart":
        action.orders["resume"] = _resume(state, action).encode().decode()
    _tell(
        moment,
        action,
        "sent",
        f"directive {action.number}: {action.explanation or action.remedy}",
        orders=action.orders,
        target=_target(action),
    )
    move(moment, incident, ACTING, f"{action.remedy} sent as directive {action.number}")


def _target(action: Action) -> dict[str, Any] | None:
    """The checkpoint that is about to be used: its digest is looked at once more before the directive is laid."""
    if path := action.arguments.get("checkpoint"):
        return {"path": path, "digest": action.arguments["digest"]}
    return None


def _resume(state: State, action: Action) -> Resume:
    a = action.arguments
    # A restart may wait in a queue for hours; what it resumes to is certified for as long.
    expires = action.expires_at + 24 * 3600.0
    return Resume(action.number, state.run, a["checkpoint"], a["digest"], a["step"], expires, {},
                  tuple(a["pass_over"]), action.explanation[:300])  # fmt: skip


def _answer_seconds(state: State, action: Action) -> float:
    if action.procedure == "restart":
        return _RESTART_SECONDS
    trainer = state.trainer()
    usual = median(trainer.step_seconds) if trainer and trainer.step_seconds else 0.0
    return max(_ANSWER_SECONDS, _ANSWER_STEPS * usual)


def _tell(moment: Moment, action: Action, state: str, text: str, **data: Any) -> None:
    moment.write(
        EntryKind.ACTION, action.id, state, text, incident=action.incident, rung=action.rung, remedy=action.remedy,
        verdict=action.verdict, number=action.number or None, **data,
    )  # fmt: skip
