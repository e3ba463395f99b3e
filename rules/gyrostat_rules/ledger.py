"""The ledger's facts: the few that must outlive the run directory, for restarting the pod is one of our remedies.

A reboot loop begins where the monitor loses its memory. So budgets, ceilings, what was tried, and the number of
the last directive are written beside the checkpoints before anything is done that may end the pod.
"""

import math
from collections.abc import Mapping
from typing import Any

from gyrostat_rules.snapshot import from_plain, to_plain
from gyrostat_rules.state import Deed, Incident, Jump, State

VERSION = 1


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
    }


def restore(state: State, written: Mapping[str, Any]) -> str:
    """Take the facts up again; returns what to say of it. Raises nothing: a ledger it cannot read it distrusts."""
    try:
        if written.get("version") != VERSION:
            raise ValueError(f"version {written.get('version')!r}")
        incidents = from_plain(list[Incident], written["incidents"])
        deeds, closed = from_plain(list[Deed], written["deeds"]), from_plain(list[Deed], written["closed"])
        jumps = from_plain(list[Jump], written["jumps"])
        tags = from_plain(dict[str, list[str]], written.get("tags", {}))
        number, count = int(written["next_directive"]), int(written["incident_count"])
        segment, paused = int(written["segment"]), bool(written.get("paused"))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError, StopIteration) as error:
        state.settings.distrust = "this run has a history, but its ledger cannot be read"
        return f"the ledger cannot be read ({error}): observe only"
    state.incidents, state.deeds, state.closed, state.jumps = incidents, deeds, closed, jumps
    state.tags = tags | state.tags
    state.next_directive = max(state.next_directive, number)
    state.incident_count, state.segment = max(state.incident_count, count), segment
    state.run = state.run or str(written.get("run", ""))
    state.settings.paused = state.settings.paused or paused
    state.plan_from = math.inf  # until the trainer has said Hello: nothing can be judged without it
    return f"ledger read: {len(incidents)} open incidents, {len(deeds)} actions so far, next directive {number}"
