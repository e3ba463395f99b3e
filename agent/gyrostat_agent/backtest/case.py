"""Case: one line of a corpus, read and checked. What a line must bear, and what it may, is told in docs/backtest.md.

``corpus`` calls it for each line; a line that cannot be used says all that is wrong with it. Fields that are not known
are let be, and a number may be spelled in any way that trainers spell one.
"""

import json
import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from gyrostat_agent.sources.logs.numerals import number

NO_TIME = ("rank", "expert", "compare")  # what a series' places count where they count no time
ORDER = "order"
_MOST_STEP = 1 << 62
_SHOWN = 60


class Case(NamedTuple):
    """What is known of one fault, or of one healthy stretch that a naive rule would call ``kind``.

    ``series``: step and value, as told; ``run``: the lines of one run share it; ``basis``: what the steps count;
    ``onset`` and ``deadline``: steps, None where nobody can place them; ``marked``: long enough to test a detector;
    ``grouped``: the run has a name of its own.
    """

    file: str
    line: int
    id: str
    run: str
    kind: str
    signal: str
    healthy: bool
    series: tuple[tuple[int, float], ...]
    onset: int | None
    deadline: int | None
    trainer: str = ""
    basis: str = "step"
    evidence: str = ""
    marked: bool = False
    grouped: bool = False

    @property
    def unfit(self) -> str:
        """Why it cannot be replayed, or ''."""
        if self.basis in NO_TIME:
            return f"its numbers are no time series ({self.basis})"
        if not self.series:
            return f"it has no numbers ({self.evidence})" if self.evidence else "it has no numbers"
        return ""


def read(data: bytes, file: str, line: int) -> tuple[Case | None, list[str]]:
    """The case that a line tells, or all that is wrong with it, each with its fix."""
    try:
        raw = json.loads(data.decode("utf-8-sig" if line == 1 else "utf-8"))
    except UnicodeDecodeError:
        return None, ["this is no text in UTF-8; a corpus is a file of JSON lines, one case a line"]
    except (ValueError, RecursionError) as error:
        return None, [f"this is no JSON ({getattr(error, 'msg', None) or error}); write one case a line"]
    if not isinstance(raw, dict):
        return None, ["this is no JSON object; write one case a line, {...}"]
    found: dict[str, Any] = {}
    wrong = [mistake for field in _FIELDS if (mistake := _take(raw, field, found))]
    found |= {"run": found.get("run") or found.get("id", ""), "grouped": bool(found.get("run"))}
    if not wrong and found["basis"] == ORDER and (back := _backwards(found["series"])):
        wrong = [f"`series` goes from place {back[0]} to {back[1]}; where `step_basis` is order, number them 1, 2, 3"]
    return (None, wrong) if wrong else (Case(file, line, **found), [])


class _Field(NamedTuple):
    """A field of a line, what it becomes, and its value where it may be left out."""

    name: str
    to: str
    read: Callable[[Any], Any]
    default: Any = ...


def _take(raw: Mapping[str, Any], field: _Field, found: dict[str, Any]) -> str:
    """Read one field into ``found``; what is wrong with it, or ''."""
    if field.name not in raw and field.default is not ...:
        found[field.to] = field.default
        return ""
    if field.name not in raw:
        return f"`{field.name}` is missing; {_HOW[field.read]}"
    try:
        found[field.to] = field.read(raw[field.name])
    except ValueError as error:
        return f"`{field.name}`: {error}; {_HOW[field.read]}"
    return ""


def _word(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{_shown(value)} is no name")
    return value.strip()


def _text(value: Any) -> str:
    """What may be left out may also be null."""
    return "" if value is None or value == "" else _word(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{_shown(value)} is neither true nor false")
    return value


def _step(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value != int(value):
        raise ValueError(f"{_shown(value)} is no step")
    if not 0 <= value < _MOST_STEP:
        raise ValueError(f"step {_shown(value)} is {'negative' if value < 0 else 'too large'}")
    return int(value)


def _place(value: Any) -> int | None:
    return None if value is None else _step(value)


def _points(value: Any) -> tuple[tuple[int, float], ...]:
    if not isinstance(value, list):
        raise ValueError(f"{_shown(value)} is no list")
    return tuple(_point(one, place) for place, one in enumerate(value, 1))


def _point(value: Any, place: int) -> tuple[int, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"point {place}, {_shown(value)}, is no pair")
    try:
        return _step(value[0]), _value(value[1])
    except ValueError as error:
        raise ValueError(f"point {place}: {error}") from None


def _value(value: Any) -> float:
    """A number in any spelling; null is NaN, for JSON writers put it in its place."""
    found = math.nan if value is None else number(value) if isinstance(value, str) else value
    if not isinstance(found, int | float):
        raise ValueError(f"{_shown(value)} is no number")
    try:
        return float(found)
    except OverflowError:
        raise ValueError(f"{_shown(value)} is larger than any number a trainer has") from None


def _backwards(series: tuple[tuple[int, float], ...]) -> tuple[int, int] | None:
    """The first two places that are out of order. Elsewhere a step back is a run that was resumed."""
    steps = [step for step, _ in series]
    return next(((a, b) for a, b in pairwise(steps) if b <= a), None)


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except ValueError:  # a whole number of more digits than Python writes
        return "this"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_FIELDS = (
    _Field("id", "id", _word),
    _Field("kind", "kind", _word),
    _Field("signal", "signal", _word),
    _Field("healthy", "healthy", _truth),
    _Field("series", "series", _points),
    _Field("onset_step", "onset", _place),
    _Field("must_fire_by_step", "deadline", _place),
    _Field("group", "run", _text, ""),
    _Field("trainer", "trainer", _text, ""),
    _Field("step_basis", "basis", _text, "step"),
    _Field("evidence", "evidence", _text, ""),
    _Field("replay", "marked", _truth, False),
)
_HOW: Mapping[Callable[[Any], Any], str] = {
    _word: "write a name, in quotes",
    _text: "write a name, in quotes, or leave it out",
    _truth: "write true or false, without quotes",
    _points: 'write [[step, value], ...], a value that is not finite as "NaN", none at all as []',
    _place: "write a whole number, or null where nobody can place it",
}
