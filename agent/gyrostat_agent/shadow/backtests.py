"""Backtests: what ``gyrostat backtest --json`` says of a rule: faults found in time, and healthy runs called ill.

It says nothing of whether a remedy would have done any good, and its cases may be those the rule was made with. So it
is shown apart from what real runs say, and pooled with it only where that is asked for.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat_rules.pack import Severity


class Backtest(NamedTuple):
    """One result. ``hits`` and ``misses`` by rule; ``name`` is of its content: given twice, it counts once."""

    path: str
    name: str
    hits: Mapping[str, int]
    misses: Mapping[str, int]


def is_one(raw: Any) -> bool:
    """True for what looks like a backtest's result."""
    return isinstance(raw, dict) and isinstance(raw.get("cases"), list) and isinstance(raw.get("overall"), dict)


def read(path: str, data: bytes, raw: Mapping[str, Any]) -> Backtest:
    """The result; raises ValueError where a case is not what a backtest writes.

    Lines of one run that tell one kind are one case, as in the backtest's own table: found where each of them is.
    """
    cases: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    for case in raw["cases"]:
        try:
            told = _told(case)
            key = str(case["group"]), str(case["kind"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a case of it is not what gyrostat backtest --json writes: {error!r}") from None
        if told is not None:
            cases.setdefault(key, []).append(told)
    hits, misses = Counter[str](), Counter[str]()
    for lines in cases.values():
        rule = lines[0][0]
        (hits if all(well for _, well in lines) else misses)[rule] += 1
    return Backtest(path, hashlib.blake2b(data, digest_size=16).hexdigest(), hits, misses)


def _told(case: Mapping[str, Any]) -> tuple[str, bool] | None:
    """The rule that would have acted, and whether on a fault; None where none would. A warning acts on nothing."""
    if not case["replayed"]:
        return None
    if case["healthy"]:
        return (str(case["alert"]), False) if case["failed"] else None
    critical = case["alert"] if case["severity"] == Severity.CRITICAL else None
    rule = case.get("opened_by", critical)  # an older backtest does not say whose incident it was
    return (str(rule), True) if case["found"] and rule else None
