"""Windows: the turns around each incident whose inputs are kept, so that it can be fed again from a snapshot before it.

Pure functions over what the journal says; called by its retention. A window begins behind the newest snapshot that is
at least ``BEFORE`` steps older than the onset, and ends ``AFTER`` turns behind the last word on the incident.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gyrostat_agent.journal.letgo import meets
from gyrostat_rules.entries import Entry, EntryKind

BEFORE = 64  # steps; a detector's own window, so that what led to the onset can be looked at
AFTER = 256  # turns; a process that tells by itself takes several a step
_OVER = ("resolved", "stopped")
_FOREVER = 2**62


class Happening(NamedTuple):
    """An incident as its entries tell it: its onset, a step; the turns that tell of it; whether it is over."""

    onset: int
    opened: int
    last: int
    over: bool


class Window(NamedTuple):
    """Turns whose inputs are kept, ``first`` to ``last``; ``snapshot`` is where a replay begins, 0 the very start.

    ``core`` is the last turn of what is kept while the incident is not ``over``, even where the disk is short.
    """

    first: int
    last: int
    snapshot: int
    core: int
    over: bool


def tell(known: dict[str, Happening], seq: int, entries: Iterable[Entry]) -> set[str]:
    """Take in what turn ``seq`` says of incidents; which it spoke of."""
    said = [e for e in entries if e.kind == EntryKind.INCIDENT]
    for entry in said:
        before = known.get(entry.subject)
        onset = entry.data.get("onset", entry.step)
        onset = min(onset, before.onset) if before else onset
        known[entry.subject] = Happening(onset, before.opened if before else seq, seq, entry.state in _OVER)
    return {e.subject for e in said}


def window(each: Happening, snapshots: Mapping[int, int], gone: Sequence[tuple[int, int]]) -> Window | None:
    """What is kept for an incident; None where it cannot be fed again from anywhere.

    ``snapshots`` are steps by turn; ``gone`` the stretches that were let go, across which nothing can be fed.
    """
    begins = sorted({0: -1, **snapshots}.items(), reverse=True)
    reach = [(s, step) for s, step in begins if s < each.opened and not meets(gone, s + 1, each.opened)]
    if not reach:
        return None
    early = [seq for seq, step in reach if seq == 0 or -1 < step <= each.onset - BEFORE]
    seq = early[0] if early else reach[-1][0]
    core = each.last + AFTER
    return Window(seq + 1, core if each.over else _FOREVER, seq, core, each.over)
