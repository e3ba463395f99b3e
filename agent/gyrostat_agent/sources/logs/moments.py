"""Moments: the time of day that a line of a log bears, as Unix seconds."""

import re
from datetime import datetime
from functools import lru_cache

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d):(\d\d(?:[.,]\d{1,9})?)([+-]\d\d:?\d\d)?")
_LOOKED_AT = 120  # characters; a line's stamp stands at its head


def moment(text: str, start: int = 0) -> float | None:
    """The first stamp from ``start`` on, None where there is none: ``2026-01-02 03:04:05,678`` and ISO 8601.

    A stamp without a zone is read as UTC: what matters is the time between two lines of one log.
    """
    found = _STAMP.search(text, start, start + _LOOKED_AT)
    if found is None:
        return None
    minute, seconds, zone = found.groups()
    whole = _minute(minute, zone)
    return None if whole is None else whole + float(seconds.replace(",", "."))


@lru_cache(maxsize=256)  # many lines are of one minute
def _minute(stamp: str, zone: str | None) -> float | None:
    hours, minutes = (zone[:3], zone[-2:]) if zone else ("+00", "00")
    try:
        return datetime.fromisoformat(f"{stamp}{hours}:{minutes}").timestamp()
    except ValueError:  # the 45th of a month
        return None
