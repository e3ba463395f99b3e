"""The catalogue of remedies: what each needs, whether it can be undone, when it fits, what it orders.

``fit`` says in words why a remedy does not fit this incident now, or ''; ``order`` fills in an Action. Neither
changes the state. What nobody can carry out here is skipped, and the history says so.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from gyrostat.wire import KnobChange, KnobState
from gyrostat_rules import series
from gyrostat_rules.causes import CRASH
from gyrostat_rules.certify import choose
from gyrostat_rules.diagnosis import diagnose
from gyrostat_rules.evidence import DATA, suspects
from gyrostat_rules.floorcontrol import OFF, control
from gyrostat_rules.hands import reads
from gyrostat_rules.pack import Rung
from gyrostat_rules.profile import tellers
from gyrostat_rules.state import Action, Incident, Process, State

CONTROL, RESTART, NOTHING = "control", "restart", ""


class Remedy(NamedTuple):
    """``capability``: control (the trainer obeys), restart (a supervisor does) or nothing at all."""

    capability: str
    reversible: bool
    summary: str
    fit: Callable[[State, Incident, Rung], str]
    order: Callable[[State, Incident, Rung, Action], None]


def alive(process: Process | None) -> bool:
    """True where the process is known and has not ended."""
    return process is not None and not process.ended


def is_dead(state: State) -> bool:
    """True where a rank of the trainer has ended unasked: no other works on without it."""
    return any(p.died for p in state.processes.values() if p.role == "trainer")


def _offers(process: Process | None, who: str, procedure: str) -> str:
    if process is None:
        return f"there is no {who}"
    if process.ended:
        return f"the {who} has ended ({process.ended})"
    return "" if procedure in process.procedures else f"the {who} does not offer {procedure!r}"


# -- skip_data ----------------------------------------------------------------------------------------


def _skip_fits(state: State, incident: Incident, rung: Rung) -> str:
    if reason := _offers(state.trainer(), "trainer", "skip_data"):
        return reason
    if incident.update_applied:
        return "a bad update was applied: passing the data over does not take it back"
    if any(a.remedy == "skip_data" and a.outcome for a in incident.actions):
        return "it came back after the data had been passed over"
    return "" if _data(incident) else "the records do not say which data the step saw"


def _skip_order(state: State, incident: Incident, rung: Rung, action: Action) -> None:
    action.role, action.procedure, action.arguments = "trainer", "skip_data", _data(incident)
    what = action.arguments
    if "items" in what:
        several = "s" if len(what["items"]) > 1 else ""
        action.explanation = f"pass over item{several} {', '.join(map(str, what['items']))}"
    else:
        action.explanation = f"pass over items {what['cursor'][0]} to {what['cursor'][1]}"


def _data(incident: Incident) -> dict[str, list[int]]:
    """The suspect items where the trainer names them, else the whole batch by its place in the data."""
    if items := suspects(incident.evidence):
        return {"items": items}
    seen = incident.evidence.get(DATA, {})
    if series.DATA_CURSOR in seen and series.DATA_ITEMS in seen:
        first = seen[series.DATA_CURSOR]
        return {"cursor": [first, first + seen[series.DATA_ITEMS]]}
    return {}


# -- rollback and restart -----------------------------------------------------------------------------


def _rollback_fits(state: State, incident: Incident, rung: Rung) -> str:
    return _offers(state.trainer(), "trainer", "rollback") or _no_target(state, incident)


def _restart_fits(state: State, incident: Incident, rung: Rung) -> str:
    if incident.kind == CRASH and not is_dead(state):
        return "no rank of the trainer is dead"
    if rung.knobs and (trainer := state.trainer()) is not None and trainer.knobs:
        return "the trainer turns its knobs by itself: nothing of its command is changed"
    if rung.knobs and not _flags(state, rung):
        names = " or ".join(plan.name for plan in rung.knobs)
        return f"no flag of the command is known for {names}, or it is where this would put it"
    return _offers(state.supervisor(), "supervisor", "restart") or _no_target(state, incident)


def _no_target(state: State, incident: Incident) -> str:
    target, said = choose(state, incident)
    return "" if target else f"no certified checkpoint: {'; '.join(said[:4])}"


def _rollback_order(state: State, incident: Incident, rung: Rung, action: Action) -> None:
    _aim(state, incident, action)
    action.role, action.procedure = "trainer", "rollback"
    action.knobs = _turns(state, rung)


def _restart_order(state: State, incident: Incident, rung: Rung, action: Action) -> None:
    _aim(state, incident, action)
    action.role, action.procedure = "supervisor", "restart"
    action.knobs = _flags(state, rung)
    if action.knobs:
        action.arguments["knobs"] = {change.name: change.value for change in action.knobs}
        turned = ", ".join(f"{c.name} {c.expect:g} to {c.value:g}" for c in action.knobs)
        action.explanation = f"with {turned}; {action.explanation}"


def _flags(state: State, rung: Rung) -> list[KnobChange]:
    """The rung's knob plans as changes of flags, for a trainer that is known by its log alone."""
    supervisor = state.supervisor()
    return _changes(rung, lambda name: supervisor.knobs.get(name) if supervisor else None)


def _aim(state: State, incident: Incident, action: Action) -> None:
    target, said = choose(state, incident)
    assert target is not None  # fit() has found one
    items = _data(incident).get("items", [])
    action.arguments = {
        "checkpoint": target.path, "digest": target.digest, "step": target.step, "pass_over": items,
    }  # fmt: skip
    action.explanation = "; ".join(said[:4])


def _turns(state: State, rung: Rung) -> list[KnobChange]:
    """The rung's knob plans as changes, from what the knobs read now, held within their bounds."""
    return _changes(rung, lambda name: reads(state, name))


def _changes(rung: Rung, read: Callable[[str], KnobState | None]) -> list[KnobChange]:
    changes = []
    for plan in rung.knobs:
        knob = read(plan.name)
        if knob is None or not math.isfinite(knob.value):
            continue
        value = reachable(knob, plan.wanted(knob.value))
        if value != knob.value:
            changes.append(KnobChange(plan.name, knob.value, value))
    return changes


def reachable(knob: KnobState, wanted: float) -> float:
    """The nearest value to what is wanted that the trainer would take: its largest change, then its bounds."""
    now = knob.value
    if knob.max_step is not None:
        wanted = min(now + knob.max_step, max(now - knob.max_step, wanted))
    if knob.max_factor is not None and now > 0.0:
        wanted = min(now * knob.max_factor, max(now / knob.max_factor, wanted))
    return min(knob.high, max(knob.low, wanted))


# -- turn ----------------------------------------------------------------------------------------------


def _turn_fits(state: State, incident: Incident, rung: Rung) -> str:
    trainer = state.trainer()
    if not alive(trainer) or trainer is None:
        return "there is no trainer that could turn a knob"
    if not any(plan.name in trainer.knobs for plan in rung.knobs):
        return f"the trainer does not offer {' or '.join(plan.name for plan in rung.knobs)}"
    if incident.kind == "experts" and any(plan.name.startswith("router_") for plan in rung.knobs):
        found = diagnose(state, incident)
        if not found.router_loss_helps:
            return f"diagnosed as {found.word}, in which balancing harder does harm: {found.why}"
    if incident.kind == "entropy" and any(plan.name == "min_entropy_floor" for plan in rung.knobs):
        told = next((t for t in tellers(state) if t.key == "trainer/0"), None)
        if told is not None and control(state, told).word == OFF:
            return "the trainer's own control is off: its floor counts for nothing"
    return "" if _turns(state, rung) else "the knobs are where this would put them"


def _turn_order(state: State, incident: Incident, rung: Rung, action: Action) -> None:
    action.role, action.knobs = "trainer", _turns(state, rung)
    action.explanation = ", ".join(f"{c.name} {c.expect:g} to {c.value:g}" for c in action.knobs)


# -- put back ------------------------------------------------------------------------------------------


def _put_back_fits(state: State, incident: Incident, rung: Rung) -> str:
    trainer = state.trainer()
    if not alive(trainer) or trainer is None:
        return "there is no trainer that could turn a knob"
    if incident.update_applied:
        return "a bad update was applied: putting the knob back does not take it back"
    changes = _drifted(state, incident)
    if not changes:
        return "no knob is known to have been turned"
    return next((reason for change in changes if (reason := _too_far(trainer.knobs.get(change.name), change))), "")


def _put_back_order(state: State, incident: Incident, rung: Rung, action: Action) -> None:
    action.role, action.knobs = "trainer", _drifted(state, incident)
    turned = ", ".join(f"{c.name} from {c.expect:g} to {c.value:g}" for c in action.knobs)
    action.explanation = f"turned without a directive; back: {turned}"


def _drifted(state: State, incident: Incident) -> list[KnobChange]:
    """The changes that undo what a hand has turned, a knob each: from each alert's own evidence, never a mixture."""
    told = [state.alerts[key].evidence for key in incident.alerts if key in state.alerts]
    turned = {e["knob"]: (float(e["found"]), float(e["expected"])) for e in told if "knob" in e}
    return [KnobChange(name, found, expected) for name, (found, expected) in sorted(turned.items())]


def _too_far(knob: KnobState | None, change: KnobChange) -> str:
    """Why the trainer would not take the change, or ''."""
    if knob is None:
        return f"the trainer does not offer {change.name}"
    fits = knob.low <= change.value <= knob.high
    if fits and reachable(knob._replace(value=change.expect), change.value) == change.value:
        return ""
    return f"{change.name} {change.expect:g} to {change.value:g} is more than the trainer takes in one stride"


# -- stop and page ------------------------------------------------------------------------------------


def _stop_fits(state: State, incident: Incident, rung: Rung) -> str:
    return _offers(state.trainer(), "trainer", "stop")


def _stop_order(state: State, incident: Incident, rung: Rung, action: Action) -> None:
    action.role, action.procedure = "trainer", "stop"
    action.explanation = "stop the run: nothing milder has held"


def _page_order(state: State, incident: Incident, rung: Rung, action: Action) -> None:
    action.explanation = "page: a person is needed"


REMEDIES: dict[str, Remedy] = {
    "skip_data": Remedy(CONTROL, False, "pass the poisoned data over", _skip_fits, _skip_order),
    "rollback": Remedy(CONTROL, False, "go back to a certified checkpoint", _rollback_fits, _rollback_order),
    "restart": Remedy(RESTART, False, "restart from a certified checkpoint", _restart_fits, _restart_order),
    "put_back": Remedy(CONTROL, True, "put a knob back", _put_back_fits, _put_back_order),
    "turn": Remedy(CONTROL, True, "turn knobs", _turn_fits, _turn_order),
    "stop": Remedy(CONTROL, False, "stop the run", _stop_fits, _stop_order),
    "page": Remedy(NOTHING, True, "ask a person", lambda state, incident, rung: "", _page_order),
}
GO_BACK = ("rollback", "restart")  # what needs a checkpoint
ENDS_THE_POD = ("restart", "stop")  # or may: the ledger is written before
NEEDS_APPROVAL = ("rollback", "restart", "stop")  # what cannot be undone; skip_data loses one item of data
