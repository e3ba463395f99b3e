"""Detectors: pure functions from the state and a moment to readings. One module each, one table."""

from gyrostat_rules.detectors.exited import Exited, exited
from gyrostat_rules.detectors.nonfinite import NonFinite, nonfinite
from gyrostat_rules.detectors.reading import Detector, Reading
from gyrostat_rules.detectors.stall import Stall, stall

DETECTORS: dict[str, Detector] = {
    "nonfinite": Detector(nonfinite, NonFinite, by_record=True),
    "stall": Detector(stall, Stall, by_time=True),
    "exit": Detector(exited, Exited, by_time=True),
}

__all__ = ["DETECTORS", "Detector", "Reading"]
