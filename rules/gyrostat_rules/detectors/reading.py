"""Reading: what a detector returned. Detector: the function, its parameters, and when it may run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gyrostat_rules.moment import Moment
from gyrostat_rules.state import State


class Reading(NamedTuple):
    """One label set that is breached now: its value, the step it dates the onset back to, and why in words.

    A detector returns breached label sets alone; what it no longer returns is no longer breached.
    """

    labels: Mapping[str, str]
    value: float
    onset: int
    why: str
    evidence: Mapping[str, Any] = {}


class Detector(NamedTuple):
    """``read(params, state, moment)``. ``by_record`` ones look at records alone: they also run before a step is
    complete, and what they found stays until the same process has said something better. ``by_time`` ones look
    at processes and time alone: they run once an input, when all of its news has been taken in.

    ``series``: of the parameters, those that it looks at and says nothing without. ``in_silence``: a ``by_record`` one
    that looks at what there is without a record too. ``labels``: names of those that its readings may bear.

    ``params`` is a NamedTuple class: the fields, types and defaults that a pack may give under ``with``.
    """

    read: Callable[[Any, State, Moment], Iterable[Reading]]
    params: type
    by_record: bool = False
    by_time: bool = False
    labels: tuple[str, ...] = ("role", "rank", "series")
    series: Callable[[Any], Sequence[str]] | None = None
    in_silence: bool = False
