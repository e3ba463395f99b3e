"""The ledger's facts: the few that must outlive the run directory, for restarting the pod is one of our remedies.

A reboot loop begins where the monitor loses its memory. So budgets, ceilings, what was tried, and the number of
the last directive are written beside the checkpoints before anything is done that may end the pod.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, get_type_hints

from gyrostat_rules.plausible import misfit, unlikely
from gyrostat_rules.remembered import Deed, Jump, Trial
from gyrostat_rules.silences import doubtful
from gyrostat_rules.snapshot import from_plain, to_plain
from gyrostat_rules.state import Incident, State
from gyrostat_rules.theirs import Silence

VERSION = 1
_MOST = 1 << 53  # of directives, incidents and segments: beyond, other readers of JSON round
_SAID = 200  # characters of why a ledger is not believed: it may say anything


class _Facts(NamedTuple):
    """What a ledger holds, by its keys; those without a default must be there."""

    incidents: list[Incident]
    deeds: list[Deed]
    closed: list[Deed]
    jumps: list[Jump]
    next_directive: int
    incident_count: int
    segment: int
    run: str = ""
    paused: bool = False
    tags: Mapping[str, list[str]] = {}
    trials: tuple[Trial, ...] = ()
    armed: Mapping[str, str] = {}
    armed_as: Mapping[str, str] = {}
    silences: Mapping[str, Silence] = {}
    silence_count: int = 0
    term: int = 0


_NEEDED = tuple(n for n in _Facts._fields if n not in _Facts._field_defaults)


def facts(state: State) -> dict[str, Any]:
    """What to write down."""
    return {
        "version": VERSION,
        "run": state.run,
        "next_directive": state.next_directive,
        "incident_count": state.incident_count,
        "incidents": to_plain([i for i in state.incidents if i.open]),
        "deeds": to_plain(state.deeds),
        "closed": to_plain(state.closed),
        "jumps": to_plain(state.jumps),
        "segment": state.segment,
        "paused": state.settings.paused,
        "tags": to_plain(state.tags),
        "trials": to_plain(state.trials),
        "armed": to_plain(state.settings.armed),
        "armed_as": to_plain(state.settings.armed_as),
        "silences": to_plain(state.silences),
        "silence_count": state.silence_count,
        **({"term": state.standing.term} if state.standing.term else {}),
    }


def restore(state: State, written: Mapping[str, Any]) -> str:
    """Take the facts up again; returns what to say of it. Raises nothing: a ledger it cannot read it distrusts."""
    try:
        found = _read(written)
    except ValueError as error:
        state.settings.distrust = f"this run has a history, but its ledger cannot be read: {error}"
        return f"the ledger cannot be read ({error}): observe only"
    state.incidents, state.deeds, state.closed, state.jumps = found.incidents, found.deeds, found.closed, found.jumps
    state.tags, state.trials = {**found.tags, **state.tags}, list(found.trials)
    state.next_directive = max(state.next_directive, found.next_directive)
    state.incident_count, state.segment = max(state.incident_count, found.incident_count), found.segment
    whose = f" of run {found.run[:_SAID]}" if state.run and found.run not in ("", state.run) else ""
    state.run = state.run or found.run
    state.settings.paused = state.settings.paused or found.paused
    state.settings.armed = {**found.armed, **state.settings.armed}
    state.settings.armed_as = {**found.armed_as, **state.settings.armed_as}
    _silence(state, found)
    state.taken_up = str(written.get("journal_head", ""))[:_SAID]
    state.plan_from = math.inf  # until the trainer has said Hello: nothing can be judged without it
    return (
        f"ledger{whose} read: {len(found.incidents)} open incidents, {len(found.deeds)} actions so far, "
        f"next directive {found.next_directive}"
    )


def _silence(state: State, found: _Facts) -> None:
    """Silences that stood beside those made here since, before the trainer spoke: an id that was given twice is new."""
    state.silence_count = max(state.silence_count, found.silence_count)
    for one in found.silences.values():
        if state.silences.get(one.id, one) != one:
            state.silence_count += 1
            one = replace(one, id=f"s{state.silence_count:04d}")
        state.silences = {**state.silences, one.id: one}


def doubt(written: Mapping[str, Any]) -> str:
    """Why this ledger cannot be taken up, in words; '' where it can."""
    try:
        _read(written)
    except ValueError as error:
        return str(error)
    return ""


def _read(written: Mapping[str, Any]) -> _Facts:
    """The facts, each of its type and all of them plausible; raises ValueError, in few words whatever is there."""
    if (version := written.get("version")) != VERSION:
        newer = type(version) is int and version > VERSION
        raise ValueError("a newer agent wrote it: upgrade this one" if newer else f"version {version!r}"[:_SAID])
    try:
        found = _typed(written)
    except KeyError as error:
        raise ValueError(f"{error} is missing"[:_SAID]) from None
    except (AttributeError, OverflowError, RecursionError, TypeError, ValueError, StopIteration) as error:
        raise ValueError(f"{error or type(error).__name__}"[:_SAID]) from None
    if why := misfit(_Facts, found, "ledger") or unlikely(
        found.incidents, [*found.deeds, *found.closed, *found.trials]
    ):
        raise ValueError(why[:_SAID])
    if why := doubtful(found.silences.values()):
        raise ValueError(why[:_SAID])
    counted = (found.next_directive - 1, found.incident_count, found.segment, found.silence_count)
    if not all(0 <= count < _MOST - 1 for count in counted):
        raise ValueError("it counts what no run can have counted")
    return found


def _typed(written: Mapping[str, Any]) -> _Facts:
    kinds = get_type_hints(_Facts)
    return _Facts(**{n: from_plain(k, written[n]) for n, k in kinds.items() if n in written or n in _NEEDED})
