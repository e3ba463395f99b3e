"""Guards: each a pure function that allows, holds or denies an action, with its reason.

*Hold* is asked again at every moment: it ends when its reason does. *Deny* ends the incident: nothing more is
tried, a person is asked. The list below is the order of telling; the gravest verdict decides. Undoing is never
held up: a tripped breaker blocks harm and never blocks healing.
"""

from collections.abc import Callable
from typing import NamedTuple

from gyrostat_rules import series
from gyrostat_rules.breakage import unsure
from gyrostat_rules.causes import REQUEST, graver
from gyrostat_rules.inputs import SourceWord
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Playbook
from gyrostat_rules.remedies import CONTROL, NEEDS_APPROVAL, REMEDIES, alive
from gyrostat_rules.state import Action, Incident, State

ALLOW, HOLD, DENY = "allow", "hold", "deny"


class Verdict(NamedTuple):
    """A guard's word and its reason; allow has none."""

    word: str
    reason: str = ""


class Case(NamedTuple):
    """What a guard judges: one action of one incident, under its playbook."""

    state: State
    moment: Moment
    playbook: Playbook
    incident: Incident
    action: Action


_YES = Verdict(ALLOW)
RUN_ACTIONS, RUN_STEPS = 12, 1000  # of all kinds together, whatever the playbooks say


def judge(case: Case) -> Verdict:
    """The gravest verdict of all guards; among equals the first. A page touches nothing: nothing may hold it back."""
    guards = ASKED if case.incident.kind == REQUEST else GUARDS
    if not REMEDIES[case.action.remedy].capability:
        guards = ()
    verdicts = [guard(case) for guard in guards]
    for word in (DENY, HOLD):
        for verdict in verdicts:
            if verdict.word == word:
                return verdict
    return _YES


def trusted(case: Case) -> Verdict:
    """A run whose history cannot be read is only observed, and a pause holds for all."""
    settings = case.state.settings
    if settings.distrust:
        return Verdict(HOLD, f"observe only: {settings.distrust}")
    return Verdict(HOLD, "paused by a person") if settings.paused else _YES


def mode(case: Case) -> Verdict:
    """Only mode act does anything."""
    settings = case.state.settings
    if (verdict := trusted(case)).word != ALLOW:
        return verdict
    return _YES if settings.mode == "act" else Verdict(HOLD, f"mode is {settings.mode}")


def capability(case: Case) -> Verdict:
    """Somebody must be there to carry it out."""
    needs = REMEDIES[case.action.remedy].capability
    if not needs:
        return _YES
    who = case.state.trainer() if needs == CONTROL else case.state.supervisor()
    return _YES if alive(who) else Verdict(HOLD, f"nobody is there who could {case.action.remedy}")


def blind(case: Case) -> Verdict:
    """No action on the word of a source that is stale or not understood. Damage passed over is no blindness."""
    bad = [
        f"{name}: {s[1]}" for name, s in case.state.sources.items() if s[0] in (SourceWord.STALE, SourceWord.FOREIGN)
    ]
    return Verdict(HOLD, f"blind: {bad[0]}") if bad else _YES


def sound(case: Case) -> Verdict:
    """No action for an alert whose rule throws: it can neither be believed nor be seen to end."""
    why = unsure(case.state, case.incident)
    return Verdict(HOLD, why) if why else _YES


def approval(case: Case) -> Verdict:
    """What cannot be undone needs a person's word, unless people have said otherwise."""
    action = case.action
    if not case.state.settings.approvals or action.remedy not in NEEDS_APPROVAL or action.approved:
        return _YES
    return Verdict(HOLD, f"needs approval: gyrostat approve {action.id}")


def cooldown(case: Case) -> Verdict:
    """The same remedy for the same cause waits; a graver cause goes through."""
    state, action, incident = case.state, case.action, case.incident
    for closed in state.closed:
        age = case.moment.step - closed.step
        same = closed.remedy == action.remedy and not graver(incident.kind, closed.kind)
        if same and 0 <= age < case.playbook.cooldown and not any(a.number for a in incident.actions[:-1]):
            return Verdict(
                HOLD, f"{action.remedy} ended at step {closed.step}; cooldown is {case.playbook.cooldown} steps"
            )
    return _YES


def budget(case: Case) -> Verdict:
    """So many actions in so many steps for one cause, and for the run."""
    deeds, step, book = case.state.deeds, case.moment.step, case.playbook
    same = [d for d in deeds if d.kind == case.incident.kind and step - d.step < book.budget_steps]
    if len(same) >= book.budget_actions:
        return Verdict(DENY, f"{len(same)} actions in {book.budget_steps} steps: the budget is spent")
    every = [d for d in deeds if step - d.step < RUN_STEPS]
    if len(every) >= RUN_ACTIONS:
        return Verdict(DENY, f"{len(every)} actions in {RUN_STEPS} steps of this run: its budget is spent")
    return _YES


def ceiling(case: Case) -> Verdict:
    """The same cause again and again is no accident that a remedy mends."""
    book, step = case.playbook, case.moment.step
    same = [d for d in case.state.closed if d.kind == case.incident.kind and step - d.step < book.ceiling_steps]
    if len(same) >= book.ceiling_incidents:
        return Verdict(DENY, f"{len(same)} {case.incident.kind} incidents in {book.ceiling_steps} steps")
    return _YES


def busy(case: Case) -> Verdict:
    """One action at a time, and none while a checkpoint is being written.

    A graver cause does not wait for a milder one's proof: entropy has forty steps to come back, a NaN has none.
    """
    for incident in case.state.incidents:
        watched = incident.state == "probation" and not graver(case.incident.kind, incident.kind)
        if incident is not case.incident and (watched or incident.state == "acting"):
            return Verdict(HOLD, f"incident {incident.id} is in {incident.state}")
    trainer = case.state.trainer()
    latest = case.state.recent.get("trainer/0", [])
    writing = bool(latest) and latest[-1].values.get(series.CHECKPOINT_BUSY, 0.0) == 1.0
    return Verdict(HOLD, "a checkpoint is being written") if writing and alive(trainer) else _YES


GUARDS: tuple[Callable[[Case], Verdict], ...] = (
    mode,
    capability,
    blind,
    sound,
    approval,
    cooldown,
    budget,
    ceiling,
    busy,
)
# What a person asked for by name is approved by that, in whatever mode, and counts against no budget of the agent's.
ASKED: tuple[Callable[[Case], Verdict], ...] = (trusted, capability, busy)
