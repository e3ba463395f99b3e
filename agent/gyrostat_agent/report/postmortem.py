"""Post-mortem: a run's history with the curves of the incidents that are told, and what was left out of it."""

import os
from typing import NamedTuple

from gyrostat.wire import RunDirectory
from gyrostat_agent.errors import DistrustError, SetupError
from gyrostat_agent.journal import Journal, JournalError
from gyrostat_agent.report.case import Case
from gyrostat_agent.report.history import TOLD, History, gather
from gyrostat_agent.report.onset import ALONE, OF_MANY, Curve, curves
from gyrostat_agent.report.tally import ROWS

PLOTS = 50  # incidents of a run whose curves are drawn, the newest: each reads a part of the journal again
_NAMED = 8


class Told(NamedTuple):
    """One incident and its curves."""

    case: Case
    curves: tuple[Curve, ...]


class PostMortem(NamedTuple):
    """``alone``: of one incident, whose other history is not told. ``cut``: sentences on what was left out."""

    history: History
    told: tuple[Told, ...]
    alone: bool
    cut: tuple[str, ...]


def postmortem(run: RunDirectory, incident: str = "", plots: int = PLOTS) -> PostMortem:
    """Read it all; raises SetupError where there is no such incident, DistrustError where no journal can be read."""
    try:
        journal = Journal(os.path.join(run.agent, "journal.db"), readonly=True)
    except JournalError as error:
        raise DistrustError(str(error)) from None
    try:
        history = gather(run, journal)
        cases = [_the(history, incident)] if incident else [c for c in history.cases.values() if c.entries]
        drawn = {case.id for case in cases[-plots:]} if plots else set()
        size = ALONE if incident else OF_MANY
        told = tuple(Told(c, tuple(curves(journal, c, size)) if c.id in drawn else ()) for c in cases)
    finally:
        journal.close()
    return PostMortem(history, told, bool(incident), tuple(_cut(history, told, len(drawn), bool(incident))))


def _the(history: History, name: str) -> Case:
    case = history.cases.get(name)
    if case is None:
        known = list(history.cases)
        more = f" and {len(known) - _NAMED} older ones" if len(known) > _NAMED else ""
        there = f"there are {', '.join(known[-_NAMED:])}{more}" if known else "it had none"
        raise SetupError(f"{history.path} has no incident {name}; {there}")
    if not case.entries:
        raise SetupError(f"incident {name} is older than the newest {TOLD}, which are told in full; see it with "
                         f"gyrostat incidents {history.path}")  # fmt: skip
    return case


def _cut(history: History, told: tuple[Told, ...], drawn: int, alone: bool) -> list[str]:
    found = [f"{one.case.id}: {one.case.cut} entries in the middle of its story are left out" for one in told
             if one.case.cut]  # fmt: skip
    if merged := max((curve.merged for one in told for curve in one.curves), default=1) - 1:
        found.append(f"curves show means of up to {merged + 1} records in a row; what is not finite stands alone")
    if not alone and drawn < len(told):
        found.append(f"curves are drawn for the newest {drawn} incidents; --plots {len(told)} draws all")
    if not alone and history.lost_stories:
        found.append(f"the stories of the oldest {history.lost_stories} incidents are left out; the table has them")
    if not alone and (rest := len(history.cases) - ROWS) > 0:
        found.append(f"the table leaves out the oldest {rest} incidents; the figures count them")
    return found
