"""Guards: each a pure function that allows, holds or denies an action, with its reason.

*Hold* is asked again at every moment: it ends when its reason does. *Deny* ends the incident: nothing more is
tried, a person is asked; or, of a rung's own budget, this rung alone. The list below is the order of telling; the
gravest verdict decides. Undoing is never held up: a tripped breaker blocks harm and never blocks healing. Those that
count are in ``ceilings``; docs/guards.md has them all in one table.
"""

from collections.abc import Callable

from gyrostat_rules import series
from gyrostat_rules.arming import acts_on
from gyrostat_rules.breakage import unsure
from gyrostat_rules.causes import CRASH, NUMERIC, REQUEST, graver
from gyrostat_rules.ceilings import budget, ceiling, rung_budget, standstill
from gyrostat_rules.handover import far
from gyrostat_rules.hands import in_the_way
from gyrostat_rules.inputs import GPUS, LEDGER, SourceWord
from gyrostat_rules.remedies import CONTROL, ENDS_THE_POD, NEEDS_APPROVAL, REMEDIES, alive
from gyrostat_rules.silences import silenced, when
from gyrostat_rules.standing import LEADER, NODE, decides
from gyrostat_rules.state import State
from gyrostat_rules.verdicts import ALLOW, DENY, HOLD, Case, Verdict
from gyrostat_rules.verdicts import YES as _YES

_LAST_WORDS_SECONDS = 2.0  # a log without an end of line is read as a line after one
_TOLD_SECONDS = 60.0  # a page that was read longer ago than that says nothing of what goes on now


def judge(case: Case) -> Verdict:
    """The gravest verdict of all guards; among equals the first. A page touches nothing: a silence alone holds it back.

    What ends an incident is graver than a wait, and that than what passes one rung by: who waits has not tried it yet.
    """
    guards = ASKED if case.incident.kind == REQUEST else GUARDS
    if not REMEDIES[case.action.remedy].capability:
        guards = (silence,)
    verdicts = [guard(case) for guard in guards]
    for grave in ((DENY, False), (HOLD, False), (DENY, True)):
        for verdict in verdicts:
            if (verdict.word, verdict.next_rung) == grave:
                return verdict
    return _YES


def silence(case: Case) -> Verdict:
    """What a person has silenced waits until they wanted to hear of it again; that word is told before all others."""
    if (found := silenced(case.state, case.moment, case.incident)) is None:
        return _YES
    said = f"silenced until {when(found.ends)} by {found.by}: {found.reason} ({found.id})"
    return Verdict(HOLD, said, patient=True)


def trusted(case: Case) -> Verdict:
    """A run whose history cannot be read is only observed, and a pause holds for all."""
    settings = case.state.settings
    if settings.distrust:
        return Verdict(HOLD, f"observe only: {settings.distrust}")
    return Verdict(HOLD, "paused by a person") if settings.paused else _YES


def mode(case: Case) -> Verdict:
    """Only mode act does anything; in mode shadow, what an armed rule leads."""
    settings = case.state.settings
    if (verdict := trusted(case)).word != ALLOW:
        return verdict
    return _YES if acts_on(settings, case.incident) else Verdict(HOLD, f"mode is {settings.mode}")


def standing(case: Case) -> Verdict:
    """One agent decides for the run; of those who may, only that beside rank 0 can tell the trainer anything."""
    stands = case.state.standing
    if stands.follows:
        return Verdict(HOLD, decides(stands), patient=True)
    if far(case.state) and not _reaches_all(case):
        trainer = case.state.trainer()
        where = f", on {trainer.node}," if trainer is not None and trainer.node else ""
        return Verdict(HOLD, f"the agent beside rank 0{where} is gone", patient=True)
    return _YES


def _reaches_all(case: Case) -> bool:
    """True for what the job does, whose pods are everywhere; a supervisor that lets go has one launcher alone."""
    supervisor = case.state.supervisor()
    by_trainer = REMEDIES[case.action.remedy].capability == CONTROL
    return not by_trainer and supervisor is not None and "release" not in supervisor.procedures


def capability(case: Case) -> Verdict:
    """Somebody must be there to carry it out."""
    needs = REMEDIES[case.action.remedy].capability
    if not needs:
        return _YES
    who = case.state.trainer() if needs == CONTROL else case.state.supervisor()
    return _YES if alive(who) else Verdict(HOLD, f"nobody is there who could {case.action.remedy}")


def blind(case: Case) -> Verdict:
    """No action on the word of a source that is stale or not understood. Damage passed over is no blindness.

    Nor is a node whose agent is not heard, where a rank that is seen says the same, nor GPUs that are not measured
    any more, where it is not they alone that say it.
    """
    alerts = [case.state.alerts[key].labels for key in case.incident.alerts if key in case.state.alerts]
    tellers = [case.state.processes.get(f"{labels.get('role')}/{labels.get('rank')}") for labels in alerts]
    unseen = bool(tellers) and all(p is not None and p.unseen for p in tellers)
    measured = {labels.get("role") for labels in alerts} == {"gpu"}
    bad = [
        f"{name}: {s[1]}"
        for name, s in case.state.sources.items()
        if s[0] in (SourceWord.STALE, SourceWord.FOREIGN)
        and (unseen or not name.startswith(NODE))
        and (measured or not name.startswith(GPUS))
    ]
    return Verdict(HOLD, f"blind: {bad[0]}") if bad else _YES


def last_words(case: Case) -> Verdict:
    """A death waits for what its process told last, in another file than the news of its end: that may be the cause."""
    age = case.moment.at - case.incident.fired_at
    if case.incident.kind != CRASH or not 0.0 <= age < _LAST_WORDS_SECONDS:  # before it: the clock was set back since
        return _YES
    return Verdict(HOLD, "what it told last may still come", patient=True)


def written_down(case: Case) -> Verdict:
    """What may end the pod waits while the ledger cannot be written: who begins anew would know nothing of it."""
    said = case.state.sources.get(LEDGER)
    shared = case.state.standing.word == LEADER  # by it the next leader knows what this one has begun
    if not (shared or case.action.remedy in ENDS_THE_POD) or said is None or said[0] != SourceWord.DAMAGED:
        return _YES
    return Verdict(HOLD, said[1])


def sound(case: Case) -> Verdict:
    """No action for an alert whose rule throws: it can neither be believed nor be seen to end."""
    why = unsure(case.state, case.incident)
    return Verdict(HOLD, why) if why else _YES


def approval(case: Case) -> Verdict:
    """What cannot be undone needs a person's word, unless people have said otherwise."""
    action = case.action
    if not case.state.settings.approvals or action.remedy not in NEEDS_APPROVAL or action.approved:
        return _YES
    return Verdict(HOLD, f"needs approval: gyrostat approve {action.id}", asks=True)


def by_hand(case: Case) -> Verdict:
    """A knob that a person turned while an incident is open is theirs: only their word lets it be turned again."""
    action = case.action
    hand = None if action.approved else in_the_way(case.state, case.incident, action)
    if hand is None:
        return _YES
    said = f"{hand.knob} was turned by hand at step {hand.step}, mid-incident: it is theirs; "
    return Verdict(HOLD, f"{said}gyrostat approve {action.id} lets the agent turn it", asks=True)


def cooldown(case: Case) -> Verdict:
    """The same remedy for the same cause waits; a graver cause goes through."""
    state, action, incident = case.state, case.action, case.incident
    for closed in state.closed:
        age = case.moment.step - closed.step
        same = closed.remedy == action.remedy and not graver(incident.kind, closed.kind)
        if same and 0 <= age < case.playbook.cooldown and not any(a.number for a in incident.actions[:-1]):
            said = f"{action.remedy} ended at step {closed.step}; cooldown is {case.playbook.cooldown} steps"
            return Verdict(HOLD, said, patient=_steps_end_it(case))
    return _YES


def _steps_end_it(case: Case) -> bool:
    """True for a wait that the run's own steps end, however slow; whoever stands still for a stall has none to come."""
    return case.incident.kind in NUMERIC


def blast_radius(case: Case) -> Verdict:
    """What costs more than a playbook lets one action cost needs a person's word, whatever the approvals say."""
    action = case.action
    if action.approved:
        return _YES
    for count, most, what in _costs(case):
        if count > most:
            # Not how many: that grows with each step, and would be told at each.
            said = f"more than {most} {what}: needs approval: gyrostat approve {action.id}"
            return Verdict(HOLD, said, asks=True)
    return _YES


def _costs(case: Case) -> list[tuple[int, int, str]]:
    """What the action would cost, what it may, and in which words."""
    state, action, book = case.state, case.action, case.playbook
    lost = state.step - int(action.arguments.get("step", state.step))
    ended = state.world() if action.procedure in ("restart", "stop") and book.most_ranks else 0
    return [
        (lost, book.most_lost, "steps would be lost"),
        (len(action.knobs), book.most_knobs, "knobs would be turned"),
        (ended, book.most_ranks, "ranks would be ended"),
    ]


def busy(case: Case) -> Verdict:
    """One action at a time, and none while a checkpoint is being written or weights are on their way to the rollouts.

    A graver cause does not wait for a milder one's proof: entropy has forty steps to come back, a NaN has none.
    """
    for incident in case.state.incidents:
        watched = incident.state == "probation" and not graver(case.incident.kind, incident.kind)
        if incident is not case.incident and (watched or incident.state == "acting"):
            return Verdict(HOLD, f"incident {incident.id} is in {incident.state}", patient=_steps_end_it(case))
    doing = _in_flight(case)
    return Verdict(HOLD, doing) if doing else _YES


def _in_flight(case: Case) -> str:
    """What must not be broken off just now, as the trainer tells it, or engines that hold their requests for it."""
    state = case.state
    latest = state.recent.get("trainer/0", [])
    if latest and alive(state.trainer()):
        for name, doing in _DOINGS.items():
            if latest[-1].values.get(name, 0.0) == 1.0:
                return doing
    return _DOINGS[series.WEIGHT_SYNC_BUSY] if _engines_wait(state, case.moment.at) else ""


def _engines_wait(state: State, now: float) -> bool:
    """True where a rollout engine holds its requests back, which it does while new weights are put into it."""
    engines = [
        state.windows.get(key, {}).get(series.REQUESTS_PAUSED)
        for key, p in state.processes.items()
        if p.role == "rollout" and not p.ended and now - p.last_at < _TOLD_SECONDS
    ]
    return any(w is not None and w.values and w.values[-1] > 0.0 for w in engines)


_DOINGS = {
    series.CHECKPOINT_BUSY: "a checkpoint is being written",
    series.WEIGHT_SYNC_BUSY: "weights are on their way to the rollouts",
}
GUARDS: tuple[Callable[[Case], Verdict], ...] = (
    silence,
    mode,
    standing,
    capability,
    blind,
    last_words,
    written_down,
    sound,
    approval,
    by_hand,
    blast_radius,
    cooldown,
    rung_budget,
    budget,
    ceiling,
    standstill,
    busy,
)
# What a person asked for by name is approved by that, in whatever mode, and counts against no budget of the agent's.
ASKED: tuple[Callable[[Case], Verdict], ...] = (trusted, standing, capability, written_down, busy)
