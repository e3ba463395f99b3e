"""Estimates: what the algorithms carry from step to step, and how it lies in a checkpoint.

All of it is the same on every rank but the pool of pivots. A rollback that left it behind would judge the restored
policy by the entropy of the one that failed.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from gyrostat_reference import task
from gyrostat_reference.gepo import Band
from gyrostat_reference.opefo import Flow
from gyrostat_reference.pivotrl import Pivot, Pool


class Estimates(NamedTuple):
    """``sigma``: sigma_B, NaN before the first; GEPO's band, OPEFO's flow, PivotRL's pool; running averages by name.

    ``warm_from``: the step before the first of a learning-rate warm-up. ``noise_since``: the step at which router
    noise was turned on, -1 where it is off.
    """

    sigma: float = math.nan
    band: Band = Band()
    flow: Flow = Flow()
    pool: Pool = Pool()
    averages: Mapping[str, float] = {}
    warm_from: int = 0
    noise_since: int = -1

    def encode(self) -> dict[str, Any]:
        """As JSON; a number that is not there yet is null."""
        return {
            "sigma": _told(self.sigma), "averages": dict(self.averages),
            "warm_from": self.warm_from, "noise_since": self.noise_since,
            "band": [_told(v) for v in self.band],
            "flow": {**{k: _told(v) for k, v in self.flow._asdict().items() if k != "first"}, "first": self.flow.first},
            "pool": [_told(v) for v in self.pool[1:]],
            "pivots": [[list(p.prefix), p.item] for p in self.pool.pivots],
        }  # fmt: skip

    @classmethod
    def decode(cls, raw: Mapping[str, Any]) -> "Estimates":
        """Read ``encode``'s JSON; raises ValueError, KeyError or TypeError on anything else."""
        low, high, seen, ramp = raw["band"]
        profiled, spread, share, odd = raw["pool"]
        flow = raw["flow"]
        numbers = {name: _number(flow[name]) for name in ("average", "alpha", "strength", "balance", "length")}
        return cls(
            _number(raw["sigma"]),
            Band(_number(low), _number(high), _count(seen), _number(ramp)),
            Flow(first=tuple(_finite(v) for v in flow["first"]), **numbers),
            Pool(
                tuple(_pivot(p) for p in raw["pivots"]), _count(profiled), _number(spread), _number(share), _count(odd)
            ),
            _averages(raw["averages"]),
            _count(raw["warm_from"]),
            _count(raw["noise_since"], least=-1),
        )


def _told(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(value: object) -> float:
    return math.nan if value is None else _finite(value)


def _finite(value: object) -> float:
    try:
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{str(value)[:40]} is no finite number")
    return number


def _averages(raw: object) -> dict[str, float]:
    if not isinstance(raw, dict):
        raise ValueError(f"{str(raw)[:40]} is no mapping of averages")
    return {str(name): _finite(value) for name, value in raw.items()}


def _count(value: object, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{value!r} is no whole number of at least {least}")
    return value


def _pivot(raw: Any) -> Pivot:
    prefix, item = raw
    pivot = Pivot(tuple(_count(token) for token in prefix), _count(item))
    if not 0 <= pivot.depth < task.ANSWER_LENGTH or max(pivot.prefix) >= task.VOCABULARY:
        raise ValueError(f"{prefix!r} is no prefix of a sequence")
    return pivot
