"""Points: an export of OTLP metrics as plain values, whichever encoding it came in.

Field numbers and names are those of opentelemetry/proto/metrics/v1, version 1.5. Both decoders give the same exports
for the same request; a test holds them to it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gyrostat_agent.sources.buckets import Buckets

DELTA, CUMULATIVE = 1, 2
NO_VALUE = 1  # flag of a point that says that there is none
NAME_LENGTH = 200
ATTRIBUTES = 64  # of a point or resource that are looked at


class Point(NamedTuple):
    """One value of one metric. ``at`` and ``start`` are Unix seconds, 0 where they are not told.

    ``growing``: a sum that never falls, or a histogram; ``delta``: told since the last export, not since ``start``.
    ``buckets`` is set for a histogram alone; its ``value`` is the number of values.
    """

    name: str
    attributes: Mapping[str, str]
    at: float
    start: float
    value: float
    growing: bool = False
    delta: bool = False
    buckets: Buckets | None = None


class Export(NamedTuple):
    """What one resource says. ``unread``: points of kinds that are not read (summary, exponential histogram)."""

    resource: Mapping[str, str]
    points: tuple[Point, ...]
    unread: int = 0
