"""Bill: what an incident came to, written once, when it is over: lost, repaired, and against doing nothing.

A stage of its own, behind all that may end an incident. Its formulae stand in docs/report.md.
"""

from typing import Any

from gyrostat_rules import series
from gyrostat_rules.entries import EntryKind
from gyrostat_rules.meter import at_its_end, read_meters, usual_seconds
from gyrostat_rules.moment import Moment
from gyrostat_rules.state import Incident, State
from gyrostat_rules.untreated import Estimate, done, spoilt_steps, target_of, untreated


def bill(state: State, moment: Moment) -> None:
    """Let the meters run, and write the bill of each incident that has ended since."""
    if not state.incidents:
        return
    read_meters(state, moment)
    for incident in state.incidents:
        if not incident.open and not incident.meter.billed and incident.meter.told >= 0:
            _write(state, moment, incident)


def _write(state: State, moment: Moment, incident: Incident) -> None:
    incident.meter.billed = True
    incident.meter.usual = incident.meter.usual or usual_seconds(state)
    at_its_end(state, moment, incident)
    found = _figures(state, moment, incident)
    moment.write(EntryKind.BILL, incident.id, incident.state, _words(incident, found), **found)


def _figures(state: State, moment: Moment, incident: Incident) -> dict[str, Any]:
    """All that a bill says; seconds are None where the run's pace was never known."""
    meter, lost = incident.meter, _lost(state, incident)
    estimate = untreated(state, incident, lost["steps"], lost["not_applied"])
    acts = [a for a in incident.actions if a.number]
    return {
        "incident_kind": incident.kind, "onset": incident.onset, "fired_step": incident.fired_step,
        "acted_step": meter.acted_step if meter.acted_told >= 0 else None, "closed_step": moment.step,
        "step_seconds": meter.usual or None,
        "detection": _detection(incident), "reaction": _reaction(incident), "repair": _repair(moment, incident),
        "held_seconds": meter.held, "lost": lost,
        "actions": [{"id": a.id, "remedy": a.remedy, "outcome": a.outcome, "applied_step": a.applied_step}
                    for a in acts if a.remedy != "undo"],
        "taken_back": sum(a.remedy == "undo" and a.outcome == "done" for a in acts),
        "mode": state.settings.mode, "would": _would(incident),
        "untreated": estimate._asdict(), "saved": _saved(estimate, lost["steps"]),
    }  # fmt: skip


def _lost(state: State, incident: Incident) -> dict[str, Any]:
    """Steps gone back over, and those that stand and taught nothing; the silence; items of data not seen again."""
    meter, idle, spoilt = incident.meter, _idle(state, incident), spoilt_steps(incident)
    whole = meter.undone + max(idle, spoilt)  # one that was not applied, after a bad update, is one step
    return {
        "steps": whole, "undone": meter.undone, "not_applied": idle, "spoilt": spoilt, "dead_seconds": meter.dead,
        "seconds": _seconds(whole, meter.usual, meter.dead), "items": _items(incident),
    }  # fmt: skip


def _detection(incident: Incident) -> dict[str, Any]:
    """From the onset to the firing; what fires on silence took that silence too."""
    late = max(0, incident.fired_step - incident.onset)
    return {"steps": late, "seconds": _seconds(late, incident.meter.usual, incident.meter.late)}


def _reaction(incident: Incident) -> dict[str, Any] | None:
    """From the firing to the first directive; of that, the seconds that it was held are told apart."""
    meter = incident.meter
    if meter.acted_told < 0:
        return None
    seconds = max(0.0, meter.acted_at - incident.fired_at)  # a clock may be set back
    return {"steps": meter.acted_told, "seconds": seconds, "held_seconds": meter.waited}


def _repair(moment: Moment, incident: Incident) -> dict[str, Any] | None:
    """From the first directive to the proof that it has held; None where there is none."""
    meter = incident.meter
    if meter.acted_told < 0 or incident.state != "resolved":
        return None
    return {"steps": meter.told - meter.acted_told, "seconds": max(0.0, moment.at - meter.acted_at)}


def _seconds(many: int, usual: float, more: float) -> float | None:
    return many * usual + more if usual or not many else None


def _idle(state: State, incident: Incident) -> int:
    """Steps since the onset, of those that stand, whose update was not applied; of the last few hundred steps."""
    window = state.windows.get("trainer/0", {}).get(series.STEP_APPLIED)
    if window is None:
        return 0
    return sum(v == 0.0 for s, v in zip(window.steps, window.values, strict=True) if s >= incident.onset)


def _items(incident: Incident) -> int:
    """Items of data that will not be seen again: named one by one, or by their place in the data."""
    named: set[int] = set()
    spans = 0
    for given in (action.arguments for action in done(incident)):
        named.update(given.get("items", ()), given.get("pass_over", ()))
        first, last = given.get("cursor", (0, 0))
        spans += last - first
    return len(named) + spans


def _would(incident: Incident) -> dict[str, Any] | None:
    """What was planned last and never done, where nothing was."""
    planned = [a for a in incident.actions if a.role and a.verdict != "deny"]
    if any(a.number for a in incident.actions) or not planned:
        return None
    action = planned[-1]
    target = target_of(action)
    undone = None if target is None else max(0, incident.fired_step - target)
    return {"remedy": action.remedy, "explanation": action.explanation, "undone": undone, "held": action.reason}


def _saved(estimate: Estimate, lost: int) -> dict[str, int | None]:
    return {name: None if end is None else end - lost for name, end in (("low", estimate.low), ("high", estimate.high))}


# -- in one line --------------------------------------------------------------------------------------


def _words(incident: Incident, found: dict[str, Any]) -> str:
    lost, estimate = found["lost"], found["untreated"]
    parts = [
        f"seen after {steps(found['detection']['steps'])}",
        _done_words(incident, found),
        f"lost {steps(lost['steps'])}{_in_seconds(lost['seconds'])}",
        f"against doing nothing: {span(estimate['low'], estimate['high'])} ({estimate['sure']}: {estimate['why']})",
    ]
    return f"bill of {incident.kind}: {'; '.join(parts)}"


def _done_words(incident: Incident, found: dict[str, Any]) -> str:
    would = found["would"]
    if not found["actions"]:
        planned = f", {would['remedy']} would have been ({would['held']})" if would else ""
        return f"nothing was done{planned}"
    back = f", {found['taken_back']} taken back" if found["taken_back"] else ""
    named = ", ".join(a["remedy"] for a in found["actions"])
    if (reaction := found["reaction"]) is None:  # sent by an older agent, which had no meter
        return f"{named}, when it was sent is not known{back}"
    held = f", of that held {reaction['held_seconds']:.0f} s" if reaction["held_seconds"] else ""
    took = f"{named} after {reaction['seconds']:.0f} s{held}{back}"
    repair = found["repair"]
    return f"{took}, proved {steps(repair['steps'])} later" if repair else f"{took}, not proved"


def _in_seconds(seconds: float | None) -> str:
    return "" if seconds is None else f" and {seconds:.0f} s"


def span(low: int | None, high: int | None) -> str:
    """An interval of steps in words."""
    if low is None:
        return "not known"
    if high is None:
        return f"at least {steps(low)}"
    return steps(low) if low == high else f"{low} to {steps(high)}"


def steps(number: int) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number} step{'' if number == 1 else 's'}"
