"""Throttle: why a GPU runs slower than it could, as the driver's bits by name.

Bits and meaning: NVML's "clocks event reasons", which older drivers call throttle reasons.
"""

from collections.abc import Iterator

PREFIX = "gpu_throttle_"
REASONS = {
    0x001: "idle",  # nothing to do: no fault
    0x002: "clocks_setting",  # somebody set the application clocks
    0x004: "power_cap",  # at its power limit: usual under full load
    0x008: "hardware_slowdown",  # heat or power, told by the board
    0x010: "sync_boost",
    0x020: "software_thermal",
    0x040: "hardware_thermal",
    0x080: "power_brake",  # the power supply asked for it
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}
OTHER = "other"


def flags(bits: int) -> Iterator[tuple[str, float]]:
    """Each reason's series with 1 or 0; bits that no reason here has are ``other``."""
    for bit, name in REASONS.items():
        yield PREFIX + name, float(bool(bits & bit))
    yield PREFIX + OTHER, float(bool(bits & ~sum(REASONS)))
