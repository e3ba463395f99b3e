"""Ceilings: the guards that count. How often a rung, a cause, a place and the run may be acted on.

Each is a pure function of a Case. What they count outlives pod and machine in the ledger; it is counted in steps, and
a run that does not get on uses up no window: what was done at a step beyond the newest one counts as done just now.

A ceiling counts what is known. Where nobody can say whether the run came on after an action (the trainer was replaced,
the answer never came, the node was taken away), it uses up neither of the two, for it proves nothing about the remedy.
Budgets count it all the same, so that even a run of which nothing is ever known is not acted on for ever.
"""

from gyrostat_rules.moment import Moment
from gyrostat_rules.remembered import Deed, Trial
from gyrostat_rules.state import Incident, State
from gyrostat_rules.verdicts import DENY, YES, Case, Verdict

RUN_ACTIONS, RUN_STEPS = 12, 1000  # of all kinds together, whatever the playbooks say
_REMEMBERED = 200
_KNOWN = ("done", "ineffective")  # outcomes after which it is known whether the run came on


def rung_budget(case: Case) -> Verdict:
    """So often for one rung, where the playbook says how often; the next rung follows."""
    rungs = case.playbook.rungs[case.action.rung :]
    if not rungs or not (rung := rungs[0]).budget_actions:  # the playbook may have lost it since this was planned
        return YES
    steps = rung.budget_steps or case.playbook.budget_steps
    mine = [d for d in _lately(case, case.state.deeds, steps) if _of_rung(d, case)]
    if len(mine) < rung.budget_actions:
        return YES
    return Verdict(
        DENY, f"{rung.remedy} was tried {len(mine)} times in {steps} steps: this rung's budget is spent", True
    )


def budget(case: Case) -> Verdict:
    """So many actions in so many steps for one cause, and for the run."""
    deeds, book = case.state.deeds, case.playbook
    same = [d for d in _lately(case, deeds, book.budget_steps) if d.kind == case.incident.kind]
    if len(same) >= book.budget_actions:
        return Verdict(DENY, f"{len(same)} actions in {book.budget_steps} steps: the budget is spent")
    every = _lately(case, deeds, RUN_STEPS)
    if len(every) >= RUN_ACTIONS:
        return Verdict(DENY, f"{len(every)} actions in {RUN_STEPS} steps of this run: its budget is spent")
    return YES


def ceiling(case: Case) -> Verdict:
    """The same cause again and again is no accident that a remedy mends."""
    book = case.playbook
    same = [d for d in _lately(case, case.state.closed, book.ceiling_steps) if d.kind == case.incident.kind]
    if len(same) >= book.ceiling_incidents:
        return Verdict(DENY, f"{len(same)} {case.incident.kind} incidents in {book.ceiling_steps} steps")
    return YES


def standstill(case: Case) -> Verdict:
    """The same cause at the same place: whatever was done, mended or not, the run does not get past it."""
    book, incident = case.playbook, case.incident
    same = [t for t in case.state.trials if t.kind == incident.kind and t.incident != incident.id]
    here = [t for t in same if abs(t.onset - incident.onset) <= book.standstill_steps]
    if len(here) < book.standstill_incidents:
        return YES
    return Verdict(
        DENY,
        f"{len(here)} {incident.kind} incidents were acted on around step {incident.onset}: the run gets no further",
    )


def remember(state: State, moment: Moment) -> None:
    """A stage: keep of each incident that has ended where it was, if something came of what was done about it."""
    known = {t.incident for t in state.trials[-_REMEMBERED:]}
    for incident in state.incidents:
        if not incident.open and incident.id not in known and _is_proved(incident):
            trial = Trial(incident.id, incident.kind, incident.onset)
            state.trials = [*state.trials[1 - _REMEMBERED :], trial]


def _is_proved(incident: Incident) -> bool:
    return any(a.number and a.remedy != "undo" and a.outcome in _KNOWN for a in incident.actions)


def _lately(case: Case, deeds: list[Deed], steps: int) -> list[Deed]:
    return [d for d in deeds if case.moment.step - d.step < steps]


def _of_rung(deed: Deed, case: Case) -> bool:
    """True for the same rung of the same playbook, also of another incident."""
    return (deed.kind, deed.rung, deed.remedy) == (case.incident.kind, case.action.rung, case.action.remedy)
