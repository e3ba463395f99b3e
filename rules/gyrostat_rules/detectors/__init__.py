"""Detectors: pure functions from the state and a moment to readings. One module each, one table."""

from collections.abc import Sequence

from gyrostat_rules.detectors.apart import Apart, apart
from gyrostat_rules.detectors.balance import ExpertBalance, expert_balance
from gyrostat_rules.detectors.behind import Behind, behind
from gyrostat_rules.detectors.beside import Beside, beside
from gyrostat_rules.detectors.damaged import Damaged, damaged
from gyrostat_rules.detectors.drift import Drift, drift
from gyrostat_rules.detectors.drop import Drop, drop
from gyrostat_rules.detectors.entropy import Entropy, entropy
from gyrostat_rules.detectors.exited import Exited, exited
from gyrostat_rules.detectors.faultline import FaultLines, fault_line
from gyrostat_rules.detectors.filling import Filling, filling
from gyrostat_rules.detectors.frozen import Frozen, frozen
from gyrostat_rules.detectors.grows import Grows, grows
from gyrostat_rules.detectors.hollow import Hollow, hollow
from gyrostat_rules.detectors.idle import Idle, idle
from gyrostat_rules.detectors.knobdrift import KnobDrift, knob_drift
from gyrostat_rules.detectors.level import Level, level
from gyrostat_rules.detectors.loops import Loops, loops
from gyrostat_rules.detectors.nonfinite import NonFinite, nonfinite
from gyrostat_rules.detectors.overdue import Overdue, overdue
from gyrostat_rules.detectors.overuse import Overuse, overuse
from gyrostat_rules.detectors.quiet import Quiet, quiet
from gyrostat_rules.detectors.raised import Raised, raised
from gyrostat_rules.detectors.reading import Detector, Reading
from gyrostat_rules.detectors.regression import Regression, regression
from gyrostat_rules.detectors.resumed import Resumed, resumed
from gyrostat_rules.detectors.rise import Rise, rise
from gyrostat_rules.detectors.share import Share, share
from gyrostat_rules.detectors.skips import Skips, skips
from gyrostat_rules.detectors.spike import Spike, spike
from gyrostat_rules.detectors.stall import Stall, stall
from gyrostat_rules.detectors.stuck import Stuck, stuck
from gyrostat_rules.detectors.trend import Trend, trend

_PROCESS, _SERIES = ("role", "rank"), ("role", "rank", "series")


def _series(params: Spike | Drift | Drop | Level | Stuck | Trend | Grows | Beside | Behind | Rise) -> Sequence[str]:
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
    "raised": Detector(raised, Raised, by_record=True, series=lambda params: params.series),
    "idle": Detector(idle, Idle, by_record=True, series=lambda params: params.series),
    "resumed": Detector(resumed, Resumed, by_record=True, series=lambda params: params.series),
    "filling": Detector(filling, Filling, by_record=True, series=lambda params: params.series),
    "frozen": Detector(frozen, Frozen, by_record=True, series=lambda params: params.series),
    "regression": Detector(regression, Regression, by_record=True, series=lambda params: params.series),
    "hollow": Detector(hollow, Hollow, by_record=True, series=lambda params: params.series),
    "overuse": Detector(overuse, Overuse, by_record=True, labels=(*_PROCESS, "layer", "loop")),
    "loops": Detector(loops, Loops, by_record=True, labels=(*_PROCESS, "loop")),
    "skips": Detector(skips, Skips, by_record=True, series=lambda params: params.series),
    "entropy": Detector(entropy, Entropy, by_record=True, series=lambda params: (params.series,), labels=_PROCESS),
    "expert_balance": Detector(expert_balance, ExpertBalance, by_record=True, labels=(*_SERIES, "layer", "loop")),
    "knob_drift": Detector(knob_drift, KnobDrift, by_record=True),
    "rise": Detector(rise, Rise, by_record=True, series=_series),
    "grows": Detector(grows, Grows, by_record=True, series=_series),
    "share": Detector(share, Share, by_record=True, series=lambda params: params.part),
    "beside": Detector(beside, Beside, by_record=True, series=_series),
    "behind": Detector(behind, Behind, by_record=True, series=_series),
    "quiet": Detector(quiet, Quiet, by_time=True, labels=_PROCESS),
    "overdue": Detector(overdue, Overdue, by_time=True, labels=_PROCESS),
    "damaged": Detector(damaged, Damaged, by_time=True, labels=_PROCESS),
    "exit": Detector(exited, Exited, by_time=True, labels=_PROCESS),
    "fault_line": Detector(fault_line, FaultLines, labels=(*_PROCESS, "kind")),
}

__all__ = ["DETECTORS", "Detector", "Reading"]
