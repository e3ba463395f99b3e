"""Detectors: pure functions from the state and a moment to readings. One module each, one table."""

from collections.abc import Sequence

from gyrostat_rules.detectors.apart import Apart, apart
from gyrostat_rules.detectors.balance import ExpertBalance, expert_balance
from gyrostat_rules.detectors.drift import Drift, drift
from gyrostat_rules.detectors.drop import Drop, drop
from gyrostat_rules.detectors.entropy import Entropy, entropy
from gyrostat_rules.detectors.exited import Exited, exited
from gyrostat_rules.detectors.faultline import FaultLines, fault_line
from gyrostat_rules.detectors.knobdrift import KnobDrift, knob_drift
from gyrostat_rules.detectors.level import Level, level
from gyrostat_rules.detectors.nonfinite import NonFinite, nonfinite
from gyrostat_rules.detectors.reading import Detector, Reading
from gyrostat_rules.detectors.spike import Spike, spike
from gyrostat_rules.detectors.stall import Stall, stall
from gyrostat_rules.detectors.stuck import Stuck, stuck
from gyrostat_rules.detectors.trend import Trend, trend

_PROCESS, _SERIES = ("role", "rank"), ("role", "rank", "series")


def _series(params: Spike | Drift | Drop | Level | Stuck | Trend) -> Sequence[str]:
    return params.series


DETECTORS: dict[str, Detector] = {
    "nonfinite": Detector(nonfinite, NonFinite, by_record=True, labels=_PROCESS, in_silence=True),
    "stall": Detector(stall, Stall, by_time=True, labels=_PROCESS),
    "spike": Detector(spike, Spike, by_record=True, series=_series),
    "drift": Detector(drift, Drift, by_record=True, series=_series, labels=(*_SERIES, "direction")),
    "drop": Detector(drop, Drop, by_record=True, series=_series),
    "level": Detector(level, Level, by_record=True, series=_series, labels=(*_SERIES, "side")),
    "stuck": Detector(stuck, Stuck, by_record=True, series=_series),
    "trend": Detector(trend, Trend, by_record=True, series=_series),
    "apart": Detector(apart, Apart, by_record=True, series=lambda params: params.falling),
    "entropy": Detector(entropy, Entropy, by_record=True, series=lambda params: (params.series,), labels=_PROCESS),
    "expert_balance": Detector(expert_balance, ExpertBalance, by_record=True, labels=(*_SERIES, "layer", "loop")),
    "knob_drift": Detector(knob_drift, KnobDrift, by_record=True),
    "exit": Detector(exited, Exited, by_time=True, labels=_PROCESS),
    "fault_line": Detector(fault_line, FaultLines, labels=(*_PROCESS, "kind")),
}

__all__ = ["DETECTORS", "Detector", "Reading"]
