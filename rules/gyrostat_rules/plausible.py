"""Plausible: whether what was read of a run's history can be one at all, before any of it is believed.

Called by the ledger, which lies where others may reach it. A value of a wrong type, or a kind of incident that nobody
knows, would be met only in the middle of deciding, where it ends the agent: again after every restart. Not promised:
that what is plausible is true.
"""

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gyrostat_rules.causes import KINDS, REQUEST
from gyrostat_rules.incidents import ACTING, HELD, OPEN, PROBATION
from gyrostat_rules.remedies import REMEDIES
from gyrostat_rules.remembered import Deed, Trial
from gyrostat_rules.state import Action, Incident

_WHOLE = 1 << 63  # beyond, SQLite and the wire refuse a number
_MOST = 100_000  # items of one list: a thousand times what a run leaves behind
_DEEP = 24  # mappings within each other, of data whose shape nobody declares
_KINDS = (REQUEST, *KINDS)
_REMEDIES = (*REMEDIES, "undo")


def misfit(kind: Any, value: Any, at: str) -> str:
    """Where ``value`` is not what ``kind`` declares, in words; '' where it is. ``at`` names the value."""
    return next(_misfits(kind, value, at, 0), "")


def unlikely(incidents: Sequence[Incident], deeds: Sequence[Deed | Trial]) -> str:
    """Why these, each of its type, are no history of a run, in words; '' where they may be one."""
    return next(_unlikely(incidents, deeds), "")


def _misfits(kind: Any, value: Any, at: str, deep: int) -> Iterator[str]:
    origin, args = typing.get_origin(kind) or kind, typing.get_args(kind)
    if deep > _DEEP:
        yield f"{at} is nested too deep"
    elif kind is Any:
        yield from _plain_misfits(value, at, deep)
    elif origin in (types.UnionType, typing.Union):
        if value is not None:
            yield from _misfits(next(a for a in args if a is not type(None)), value, at, deep)
    elif fields := _fields(kind):
        for name, hint in fields.items():
            yield from _misfits(hint, getattr(value, name), f"{at}.{name}", deep + 1)
    elif origin in (list, tuple):
        yield from _items_misfit(args[0], value, at, deep)
    elif origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        yield from _mapping_misfits((args or (str, Any))[1], value, at, deep)
    elif not _is_one(origin, value):
        yield f"{at} is {_shown(value)}"


@lru_cache(maxsize=64)
def _fields(kind: Any) -> dict[str, Any]:
    """The fields of a dataclass or NamedTuple with their types, in order; none of anything else."""
    named = dataclasses.is_dataclass(kind) or (isinstance(kind, type) and hasattr(kind, "_fields"))
    return typing.get_type_hints(kind) if named else {}


def _is_one(kind: Any, value: Any) -> bool:
    """True for a single value of its very type: a yes is no number here, and no number has a thousand digits."""
    if kind is int:
        return type(value) is int and -_WHOLE < value < _WHOLE
    return type(value) is kind


def _items_misfit(item: Any, value: Any, at: str, deep: int) -> Iterator[str]:
    if not isinstance(value, (list, tuple)) or len(value) > _MOST:
        yield f"{at} is {_shown(value)}"
        return
    for number, one in enumerate(value):
        yield from _misfits(item, one, f"{at}[{number}]", deep + 1)


def _mapping_misfits(item: Any, value: Any, at: str, deep: int) -> Iterator[str]:
    if not isinstance(value, Mapping) or len(value) > _MOST:
        yield f"{at} is {_shown(value)}"
        return
    for name, one in value.items():
        yield from _misfits(item, one, f"{at}.{name}", deep + 1)


def _plain_misfits(value: Any, at: str, deep: int) -> Iterator[str]:
    """Of data that nobody declares: its numbers and its depth."""
    if isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _misfits(Any, one, at, deep + 1)
    elif type(value) is int and not _is_one(int, value):
        yield f"{at} is {_shown(value)}"


def _unlikely(incidents: Sequence[Incident], deeds: Sequence[Deed | Trial]) -> Iterator[str]:
    for deed in deeds:
        if deed.kind not in _KINDS:
            yield f"no incident is a {_shown(deed.kind)}"
    for incident in incidents:
        yield from _unlikely_incident(incident)
        for action in incident.actions:
            if action.remedy not in _REMEDIES:
                yield f"{action.id}: no remedy is called {_shown(action.remedy)}"
            if not _is_its(incident, action) or action.number < 0 or action.rung < 0:
                yield f"{_shown(action.id)} is no action of {_shown(incident.id)}"


def _is_its(incident: Incident, action: Action) -> bool:
    """True for an action that bears its incident's name and a number behind it, from which the next one is counted."""
    number = action.id.removeprefix(f"{incident.id}.")
    return action.incident == incident.id and number.isdecimal() and len(number) < 10


def _unlikely_incident(incident: Incident) -> Iterator[str]:
    for kind in (incident.kind, incident.first_kind or incident.kind):
        if kind not in _KINDS:
            yield f"{_shown(incident.id)}: no incident is a {_shown(kind)}"
    if incident.state not in (OPEN, ACTING, PROBATION, HELD) or incident.rung < 0:
        yield f"{_shown(incident.id)} is no open incident"
    sent = bool(incident.actions) and incident.actions[-1].number > 0
    if incident.state in (ACTING, PROBATION) and not sent:
        yield f"{_shown(incident.id)} is in {incident.state}, and nothing was sent"


def _shown(value: Any) -> str:
    """A value in few words, whatever its size."""
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 80:
        return "a number beyond all bounds"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
