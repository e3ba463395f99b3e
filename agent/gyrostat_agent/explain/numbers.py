"""Numbers: how a gauge is said to people and written for machines."""

import math
from typing import Any

from gyrostat.wire.messages import spell
from gyrostat_rules.detectors.gauge import BELOW, Gauge


def number(value: float) -> str:
    """Four digits; what is not finite is spelled."""
    return f"{value:.4g}" if math.isfinite(value) else spell(value)


def name_of(gauge: Gauge) -> str:
    """``trainer/0 reward, mean of the last 3``: whose it is, of what, and what is measured of it."""
    more = [f"{k} {v}" for k, v in gauge.labels.items() if k not in ("role", "rank", "series")]
    whose = f"{gauge.labels.get('role', '')}/{gauge.labels.get('rank', '0')}"
    said = " ".join(part for part in (whose, *more, gauge.series) if part)
    return f"{said}, {gauge.measure}" if gauge.measure else said


def away(gauge: Gauge) -> str:
    """The limit, and how far the value is from it."""
    if math.isnan(gauge.limit):
        return "no limit holds"
    if math.isinf(gauge.limit):
        return "no value is beyond its limit now"
    far = abs(gauge.value - gauge.limit)
    where = f"beyond it by {number(far)}" if gauge.beyond else f"{number(far)} away"
    return f"too much is {gauge.side} {number(gauge.limit)} ({where})"


def plain(gauge: Gauge) -> dict[str, Any]:
    """A gauge for machines; null where a number is not finite."""
    return {
        "labels": dict(gauge.labels), "series": gauge.series, "measure": gauge.measure, "value": _finite(gauge.value),
        "limit": _finite(gauge.limit), "side": "below" if gauge.side == BELOW else gauge.side, "beyond": gauge.beyond,
        "sentence": gauge.sentence,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
