"""Breakage: a rule whose detector throws is told as broken, and all others go on.

It is asked again at every moment, for what it throws on may be one odd number. Until then its alerts stay as they are,
and what they have opened is left alone: nobody could say whether a remedy has held.
"""

from pathlib import PurePath

from gyrostat_rules.entries import EntryKind
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import Rule
from gyrostat_rules.remembered import Broken
from gyrostat_rules.state import Incident, State

STEPS = 20  # without a throw, after which a rule works again: one that throws now and then is told once
_LONG = 200  # letters of what it threw


def breaks(state: State, moment: Moment, rule: Rule, error: Exception) -> None:
    """Remember that a rule threw; the first time it is written down, with the place for a report to its makers."""
    known = state.broken.get(rule.alert)
    why = f"{type(error).__name__}{_place(error)}: {str(error)[:_LONG]}"
    if known is not None and known.step == moment.step:
        return  # a Tick that changes nothing must leave no trace
    state.broken[rule.alert] = Broken(moment.step, why)
    moment.changed = True
    if known is None:
        text = f"rule {rule.alert} is broken and sees nothing, the others go on; please report: {why}"
        moment.write(EntryKind.RULE, rule.alert, "broken", text, detector=rule.detector)


def reads(state: State, moment: Moment, rule: Rule) -> None:
    """A rule that is known as broken has read: it works again where it has not thrown for so many steps."""
    if moment.step - state.broken[rule.alert].step < STEPS:
        return
    del state.broken[rule.alert]
    moment.changed = True
    moment.write(EntryKind.RULE, rule.alert, "works", f"rule {rule.alert} works again")


def unsure(state: State, incident: Incident) -> str:
    """Why nobody can say how this incident goes on, or '' where its rules work."""
    rules = {key.partition("{")[0] for key in incident.alerts} if state.broken else set()
    return next(
        (f"rule {name} is broken: {state.broken[name].why}" for name in sorted(rules & state.broken.keys())), ""
    )


def _place(error: Exception) -> str:
    """``, drop.py:62``: the innermost line of it; without folders, which differ from one machine to the next."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f", {PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else ""
