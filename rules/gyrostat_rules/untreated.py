"""Untreated: what an incident would have cost had nothing been done, as an interval of steps, and how sure that is.

"Not known" is a legal answer, and the usual one for what drifts: nobody has watched the run that was not mended. Where
a number rests on an assumption its ground says which one.
"""

from typing import NamedTuple

from gyrostat_rules.causes import DIVERGENCE, REQUEST
from gyrostat_rules.meter import in_steps
from gyrostat_rules.state import Action, Incident, State

CERTAIN, LIKELY, GUESS, UNKNOWN = "certain", "likely", "guess", "unknown"


class Estimate(NamedTuple):
    """At least ``low`` and at most ``high`` steps; None where that is not known. ``sure`` is of the least."""

    low: int | None
    high: int | None
    sure: str
    why: str


def untreated(state: State, incident: Incident, lost: int, idle: int) -> Estimate:
    """The estimate, at the incident's end. ``lost``: steps that were lost; ``idle``: those that were not applied."""
    if incident.kind == REQUEST:
        return Estimate(None, None, UNKNOWN, "a person asked for it; what they feared is not known here")
    if not done(incident):
        return _nothing_done(incident, lost)
    if _is_in_the_weights(incident):
        return _spoilt(state, incident)
    if incident.kind == "nonfinite":
        why = f"the trainer passed {idle} such steps over by itself; how often the data comes round is not known"
        return Estimate(idle, None, GUESS, why)
    if incident.kind in ("crash", "stall"):
        return _stands(state, incident)
    if "soonest" in incident.evidence and "latest" in incident.evidence:
        within = f"{incident.evidence['soonest']} to {incident.evidence['latest']} steps"
        return Estimate(None, None, GUESS, f"its limit was forecast within {within}; what lies behind it is not known")
    return Estimate(None, None, UNKNOWN, "whether it would have passed by itself is not known")


def spoilt_steps(incident: Incident) -> int:
    """Steps that stand on a bad update when nothing more is tried: all since the onset, where nobody went back."""
    went = any(target_of(action) is not None for action in done(incident))
    if incident.state != "stopped" or went or not _is_in_the_weights(incident):
        return 0
    return max(0, incident.fired_step - incident.onset) + 1 + incident.meter.told


def done(incident: Incident) -> list[Action]:
    """The actions that were carried out on the run; a page is none, and neither is taking one back."""
    return [a for a in incident.actions if a.number and a.applied_step >= 0 and a.remedy != "undo"]


def target_of(action: Action) -> int | None:
    """The step of the checkpoint that an action goes back to, None where it goes nowhere."""
    step = action.arguments.get("step")
    return step if isinstance(step, int) else None


def _is_in_the_weights(incident: Incident) -> bool:
    return incident.update_applied and incident.kind in ("nonfinite", DIVERGENCE, "knobs")


def _nothing_done(incident: Incident, lost: int) -> Estimate:
    if incident.state == "resolved":
        return Estimate(lost, lost, CERTAIN, "nothing was done, and this is what it came to")
    return Estimate(lost, None, CERTAIN, "nothing was done, and it had not ended when this was written")


def _spoilt(state: State, incident: Incident) -> Estimate:
    """Weights that a bad update is in: every step from the onset on is lost, and so is the way to a checkpoint."""
    targets = [t for a in done(incident) if (t := target_of(a)) is not None]
    behind = max(0, incident.onset - 1 - targets[-1]) if targets else 0
    low = behind + max(0, incident.fired_step - incident.onset) + 1 + incident.meter.told + _silent_steps(incident)
    finite = incident.kind == DIVERGENCE
    ground = (
        "bad updates stand in the weights until the run goes back"
        if finite
        else "an update that is not finite was applied: nothing after it can be used"
    )
    return _until_somebody_comes(state, incident, low, LIKELY if finite else CERTAIN, ground)


def _stands(state: State, incident: Incident) -> Estimate:
    ground = "a run that has ended stands still" if incident.kind == "crash" else "a run that hangs may go on by itself"
    return _until_somebody_comes(state, incident, _silent_steps(incident), GUESS, ground)


def _until_somebody_comes(state: State, incident: Incident, low: int, sure: str, ground: str) -> Estimate:
    seconds, usual = state.settings.hold_seconds, incident.meter.usual
    if not usual:
        return Estimate(low, None, sure, f"{ground}; how fast the run was is not known")
    high = low + in_steps(seconds, usual)
    return Estimate(low, high, sure, f"{ground}; at most: a person comes {seconds:g} s later, which is an assumption")


def _silent_steps(incident: Incident) -> int:
    return in_steps(incident.meter.dead, incident.meter.usual)
