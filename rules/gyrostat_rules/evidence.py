"""Evidence: what an incident knows of its cause, put together from its alerts.

What one rank says does not undo what another said: the item that is at fault is named by the rank that had it, and the
others, whose step failed with it, name none.
"""

from collections.abc import Mapping
from typing import Any

from gyrostat_rules.series import SUSPECT_ITEM

DATA, SUSPECTS = "data", "suspects"
_MOST = 64  # items that are remembered, the newest


def joined(known: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """``more`` beside what was known; of the data that the steps saw, all suspects are kept."""
    out = {**known, **more}
    if isinstance(known.get(DATA), Mapping) and isinstance(more.get(DATA), Mapping):
        out[DATA] = {**known[DATA], **more[DATA]}
    items = _suspects(known, more)
    if isinstance(out.get(DATA), Mapping) and items != suspects({DATA: {**out[DATA], SUSPECTS: ()}}):
        out[DATA] = {**out[DATA], SUSPECTS: items}
    return out


def suspects(evidence: Mapping[str, Any]) -> list[int]:
    """The items that the trainer has named, oldest first; none where it names none."""
    data = evidence.get(DATA)
    if not isinstance(data, Mapping):
        return []
    newest = [data[SUSPECT_ITEM]] if SUSPECT_ITEM in data else []
    return list(dict.fromkeys([*data.get(SUSPECTS, ()), *newest]))


def _suspects(known: Mapping[str, Any], more: Mapping[str, Any]) -> list[int]:
    return list(dict.fromkeys([*suspects(known), *suspects(more)]))[-_MOST:]
