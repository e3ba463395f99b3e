"""Meter: what an open incident costs, read off as it happens: steps told, steps gone back over, seconds of silence.

Called by ``bill`` at every step. Of several incidents that are open at once one alone pays for a jump or a silence, so
that the bills of a run may be added up: the one that ordered the run back, else the newest.
"""

import math

from gyrostat.wire import Record
from gyrostat_rules.moment import Moment
from gyrostat_rules.remedies import GO_BACK
from gyrostat_rules.remembered import Meter
from gyrostat_rules.state import Incident, State

_LEAST = 1e-6  # seconds of a step; below, a clock that stands is looked at
_MOST = 1e12  # steps; the time that a trainer tells may be anything
_GAP = 3.0  # times a usual step: what takes longer was silence, and no slow step
_SILENT = ("crash", "stall")  # kinds that fire on silence: until then nothing was told


def read_meters(state: State, moment: Moment) -> None:
    """Start the meters of what has opened, and let those that run count this moment's step."""
    found = [incident for incident in state.incidents if incident.open]
    if not found:
        return
    told = _told(moment)
    payer = _payer(found)
    for incident in found:
        if incident.meter.told < 0:
            _begin(state, moment, incident, told)
        elif told is not None:
            _count(incident.meter, told, pays=incident is payer)


def at_its_end(state: State, moment: Moment, incident: Incident) -> None:
    """Take in what no record will tell any more: steps given up by a jump, and the silence up to now."""
    meter, trainer = incident.meter, state.trainer()
    if state.segment > meter.segment and meter.step > state.step >= 0:
        _go_back(meter, state.segment, state.step)
    silent = trainer is None or trainer.died or (incident.kind in _SILENT and not trainer.ended)
    if silent and meter.at:
        meter.dead += _silence(meter, moment.at)


def usual_seconds(state: State) -> float:
    """Median seconds of the trainer's newest steps, 0 where none are known."""
    trainer = state.trainer()
    found = sorted(trainer.step_seconds) if trainer else []
    middle = found[len(found) // 2] if found else 0.0
    return middle if _LEAST <= middle < math.inf else 0.0


def in_steps(seconds: float, usual: float) -> int:
    """The usual steps that a time would have held, 0 where their length is not known."""
    return round(min(seconds / usual, _MOST)) if usual else 0


def _told(moment: Moment) -> Record | None:
    """Rank 0's record of a step that is complete; where its time is no number, that of its arrival stands for it."""
    found = (r for r in moment.records if r.role == "trainer" and r.rank == 0)
    told = next(found, None) if moment.closed else None
    return told if told is None or math.isfinite(told.time) else told._replace(time=moment.at)


def _payer(found: list[Incident]) -> Incident:
    went = (i for i in found if any(a.number and not a.outcome and a.remedy in GO_BACK for a in i.actions[-1:]))
    return next(went, found[-1])


def _begin(state: State, moment: Moment, incident: Incident, told: Record | None) -> None:
    trainer, meter = state.trainer(), incident.meter
    meter.told, meter.usual = 0, usual_seconds(state)
    meter.at = told.time if told else trainer.last_at if trainer else 0.0
    meter.step, meter.segment = state.step, state.segment
    if incident.kind in _SILENT and not moment.records and meter.at:
        meter.late = max(0.0, moment.at - meter.at)
    moment.changed = True


def _count(meter: Meter, record: Record, *, pays: bool) -> None:
    """One more step. A late record of a stretch that was left counts for nothing."""
    if record.segment < meter.segment or (record.segment, record.step) == (meter.segment, meter.step):
        return
    back = record.segment > meter.segment or record.step < meter.step
    if pays and (back or (meter.usual and record.time - meter.at > _GAP * meter.usual)):
        meter.dead += _silence(meter, record.time)
    if pays and back:
        _go_back(meter, record.segment, record.step - 1)
    meter.told += 1
    meter.at, meter.step, meter.segment = max(meter.at, record.time), record.step, record.segment


def _go_back(meter: Meter, segment: int, step: int) -> None:
    meter.undone += max(0, meter.step - step)
    meter.step, meter.segment = step, segment


def _silence(meter: Meter, until: float) -> float:
    """Seconds beyond those that a step takes; none where no record was known before."""
    silent = until - meter.at - meter.usual if meter.at else 0.0
    return silent if 0.0 < silent < math.inf else 0.0
